// SPDX-License-Identifier: MIT
#include "painn/cpu/evaluator.h"

#include <algorithm>
#include <cmath>

#include "engine/edge_results.h"
#include "painn/cpu/block_plan.h"
#include "painn/cpu/filters.h"
#include "painn/cpu/update_rows.h"
#include "painn/near_field.h"
#include "painn/repulsion.h"

namespace mlff::painn::cpu {
namespace {

// Messages: a strip of channels of so many atoms at a time.
constexpr int64_t kAtomsPerChunk = 64;
int64_t chunk_count(int64_t atom_count) { return (atom_count + kAtomsPerChunk - 1) / kAtomsPerChunk; }

// Dense layers want several atoms at a time, threads want several tiles. It depends on the system only, not on the number of threads.
constexpr int64_t kFewestAtoms = 4, kMostAtoms = 16;  // in a tile
static_assert(3 * kMostAtoms <= kMostRows);
int64_t atoms_per_tile(int64_t atom_count) { return std::clamp(atom_count / 12 / kFewestAtoms * kFewestAtoms, kFewestAtoms, kMostAtoms); }

struct Tile {
    int64_t begin, end;

    int count() const { return static_cast<int>(end - begin); }
};

// What a block leaves for the blocks around it and for its own reverse pass. Rows of F, [atom][...].
template <class Real>
struct BlockState {
    Buffer<Real> senders;                             // what messages are made of: [strip][atom][phi_s, phi_v, phi_u, v][channel]; not in the first
    Buffer<Real> message_slopes;                      // [1]; not in the first
    Buffer<Real> mixed, norms, update_slopes, gates;  // [3][2], [1], [1], [3 or 2]
    Buffer<Real> scalars_gradient, vectors_gradient;  // [1], [3]: of what the messages were added to
};

// Memory of one worker.
template <class Real>
struct Scratch {
    Buffer<Real> input, hidden, gates, mixed;            // [atom of the tile][2, 1, 3, 6][F]
    Buffer<Real> scalars_gradient, vectors_gradient;     // [atom of the tile][1, 3][F]
    typename Filters<Real>::Scratch filters;
};

template <class Real>
class CpuEvaluator : public Evaluator {
public:
    CpuEvaluator(std::shared_ptr<const Weights> weights, const CpuOptions& options)
        : weights_(std::move(weights)),
          hidden_(weights_->hidden),
          kernels_(kernels::choose_kernels<Real>()),
          filters_(*weights_, options.exact_radial),
          repulsion_(repulsion_pairs(*weights_)),
          readout_(weights_->readout_hidden) {
        for (size_t b = 0; b < weights_->blocks.size(); ++b) plans_.emplace_back(*weights_, b);
        states_.resize(plans_.size());
    }

    void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override {
        evaluate_joined({&system, 1}, edges, {&outputs, 1}, team);
    }
    bool can_join(const SystemView&, const SystemView&) const override { return true; }

    // Each pass reads of other atoms only what passes before it have written, and writes of its own atoms, edges and channels only.
    void evaluate_joined(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs, ThreadTeam& team) override {
        edges_ = &edges;
        find_elements(*weights_, systems, elements_);
        wants_gradients_ = std::any_of(outputs.begin(), outputs.end(), [](const Outputs& o) { return o.forces || o.virial || o.atom_virials; });
        reserve(static_cast<size_t>(team.size()));
        for_each_chunk(team, [this](Tile atoms) { start_atoms(atoms); });
        for (size_t b = 0; b < plans_.size(); ++b) {
            for_each_strip(team, [this, b](int strip, Tile atoms, Scratch<Real>& scratch) { sum_messages(b, strip, atoms, scratch); });
            for_each_tile(team, [this, b](Tile tile, Scratch<Real>& scratch) { compute_atoms(b, tile, scratch); });
        }
        write_energies(systems, outputs);
        if (!wants_gradients_) return;
        for (size_t b = plans_.size(); b-- > 0;) {
            for_each_strip(team, [this, b](int strip, Tile atoms, Scratch<Real>& scratch) { reverse_messages(b, strip, atoms, scratch); });
            for_each_tile(team, [this, b](Tile tile, Scratch<Real>& scratch) { reverse_atoms(b, tile, scratch); });
        }
        for_each_system(systems, [&](size_t s, int64_t begin, int64_t end) {
            write_forces(edges, vector_gradient_.data(), begin, end, outputs[s]);
            write_virials(edges, vector_gradient_.data(), begin, end, outputs[s]);
        });
    }

private:
    // ---- memory and tiles ----

    void reserve(size_t worker_count) {
        const size_t atoms = elements_.size(), width = static_cast<size_t>(hidden_);
        const auto resize = [&](Buffer<Real>& buffer, size_t rows) { buffer.resize_discard(rows * width); };
        const auto edges = static_cast<size_t>(edges_->edge_count);
        resize(scalars_, atoms);
        resize(middle_, 3 * atoms);
        filters_.start(edges_->edge_count);
        if (!weights_->closest.empty()) seen_.resize_discard(edges);
        directions_.resize_discard(3 * edges);
        readout_energy_.resize(atoms);
        for (size_t b = 0; b < plans_.size(); ++b) {
            BlockState<Real>& state = states_[b];
            if (b > 0) {
                resize(state.senders, 6 * atoms);
                resize(state.message_slopes, atoms);
            }
            resize(state.mixed, 6 * atoms);
            resize(state.norms, atoms);
            resize(state.update_slopes, atoms);
            resize(state.gates, 3 * atoms);
            if (!wants_gradients_) continue;
            resize(state.scalars_gradient, atoms);
            resize(state.vectors_gradient, 3 * atoms);
        }
        if (wants_gradients_) {
            resize(received_, 4 * atoms);
            resize(phi_gradient_, 3 * atoms);
            resize(vectors_sent_, 3 * atoms);
            strip_gradients_.resize_discard(static_cast<size_t>(strip_count()) * edges * 4);
            edge_gradient_.resize(edges * 4);
            vector_gradient_.resize(edges * 3);
        }
        scratch_.resize(worker_count);
        for (Scratch<Real>& scratch : scratch_) {
            constexpr size_t kAtoms = kMostAtoms;
            for (Buffer<Real>* buffer : {&scratch.hidden, &scratch.scalars_gradient}) resize(*buffer, kAtoms);
            resize(scratch.input, 2 * kAtoms);
            for (Buffer<Real>* buffer : {&scratch.gates, &scratch.vectors_gradient}) resize(*buffer, 3 * kAtoms);
            resize(scratch.mixed, 6 * kAtoms);
        }
    }

    template <class Work>
    void for_each_tile(ThreadTeam& team, const Work& work) {
        const int64_t atoms = static_cast<int64_t>(elements_.size()), size = atoms_per_tile(atoms);
        team.run((atoms + size - 1) / size, [this, &work](int64_t chunk, int worker) {
            const int64_t all = static_cast<int64_t>(elements_.size()), per_tile = atoms_per_tile(all);
            work({chunk * per_tile, std::min(all, (chunk + 1) * per_tile)}, scratch_[static_cast<size_t>(worker)]);
        });
    }

    int strip_count() const { return hidden_ / kernels::kRowPadding; }
    Tile chunk_at(int64_t chunk) const { return {chunk * kAtomsPerChunk, std::min((chunk + 1) * kAtomsPerChunk, edges_->atom_count)}; }
    template <class Work>
    void for_each_chunk(ThreadTeam& team, const Work& work) {
        team.run(chunk_count(edges_->atom_count), [this, &work](int64_t chunk, int) { work(chunk_at(chunk)); });
    }
    template <class Work>
    void for_each_strip(ThreadTeam& team, const Work& work) {
        team.run(strip_count() * chunk_count(edges_->atom_count), [this, &work](int64_t item, int worker) {
            const int64_t chunks = chunk_count(edges_->atom_count);
            work(static_cast<int>(item / chunks), chunk_at(item % chunks), scratch_[static_cast<size_t>(worker)]);
        });
    }

    // `parts` rows of F for each atom; those of the tile.
    Real* of_atom(Buffer<Real>& buffer, int64_t atom, int parts) const { return buffer.data() + atom * parts * hidden_; }
    Rows<Real> rows_of(Buffer<Real>& buffer, Tile tile, int parts) const { return {of_atom(buffer, tile.begin, parts), parts * hidden_}; }
    Rows<Real> rows_of(Buffer<Real>& scratch, int parts) const { return {scratch.data(), parts * hidden_}; }
    static Rows<const Real> read(Rows<Real> rows) { return {rows.first, rows.stride}; }
    // The three components of each atom as rows of their own.
    Rows<Real> split(Rows<Real> rows) const { return {rows.first, rows.stride / 3}; }

    // Copies `parts` rows of F of each atom to [strip][atom][row][channel], from row `first` of `row_count` on.
    void to_strips(Rows<Real> rows, Tile tile, int parts, Buffer<Real>& strips, int row_count, int first) const {
        for (int i = 0; i < tile.count(); ++i)
            for (int strip = 0; strip < strip_count(); ++strip)
                for (int part = 0; part < parts; ++part) {
                    const int64_t to = (strip * edges_->atom_count + tile.begin + i) * row_count + first + part;
                    std::copy_n(rows[i] + part * hidden_ + strip * kernels::kRowPadding, kernels::kRowPadding, strips.data() + to * kernels::kRowPadding);
                }
    }

    int element(int64_t atom) const { return elements_[static_cast<size_t>(atom)]; }

    // ---- messages ----

    void start_atoms(Tile atoms) {
        for (int64_t atom = atoms.begin; atom < atoms.end; ++atom) {
            const double* embedding = weights_->embedding.data() + element(atom) * hidden_;
            std::transform(embedding, embedding + hidden_, of_atom(scalars_, atom, 1), [](double value) { return static_cast<Real>(value); });
        }
        const int64_t begin = edges_->first[atoms.begin], end = edges_->first[atoms.end];
        if (!seen_.empty()) see_distances(atoms);
        filters_.locate(seen_.empty() ? edges_->distance : seen_.data(), begin, end);
        for (int64_t edge = begin; edge < end; ++edge)
            for (int64_t c = 0; c < 3; ++c) directions_[static_cast<size_t>(3 * edge + c)] = static_cast<Real>(edges_->vector[3 * edge + c] / edges_->distance[edge]);
    }

    SeenDistance seen_of(int64_t atom, int64_t edge) const {
        return seen_distance(weights_->closest_of(element(atom), element(edges_->sender[edge])), edges_->distance[edge]);
    }
    void see_distances(Tile atoms) {
        for (int64_t atom = atoms.begin; atom < atoms.end; ++atom)
            for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge) seen_[static_cast<size_t>(edge)] = seen_of(atom, edge).value;
    }

    kernels::PainnStrip<Real> strip_of(size_t b, int strip, Tile atoms, Scratch<Real>& scratch) const {
        kernels::PainnStrip<Real> view;
        view.table = filters_.strip(b, strip, edges_->first[atoms.begin], edges_->first[atoms.end], scratch.filters);
        view.shares = filters_.shares();
        view.directions = directions_.data();
        view.sender = edges_->sender;
        view.first = edges_->first;
        view.begin = atoms.begin;
        view.end = atoms.end;
        view.hidden = hidden_;
        view.channel = strip * kernels::kRowPadding;
        const int64_t rows = b == 0 ? static_cast<int64_t>(weights_->atomic_numbers.size()) : edges_->atom_count;
        view.senders = (b == 0 ? plans_[0].element_senders.data() : states_[b].senders.data()) + strip * rows * 6 * kernels::kRowPadding;
        view.sender_row = b == 0 ? elements_.data() : nullptr;
        view.has_vectors = b > 0;
        return view;
    }

    void sum_messages(size_t b, int strip, Tile atoms, Scratch<Real>& scratch) {
        kernels_.sum_painn_messages({strip_of(b, strip, atoms, scratch), scalars_.data(), middle_.data()});
    }

    void reverse_messages(size_t b, int strip, Tile atoms, Scratch<Real>& scratch) {
        kernels_.reverse_painn_messages({strip_of(b, strip, atoms, scratch), received_.data() + strip * edges_->atom_count * 4 * kernels::kRowPadding,
                                         strip_gradients_.data() + strip * edges_->edge_count * 4, phi_gradient_.data(), vectors_sent_.data()});
    }

    // ---- forward ----

    void compute_atoms(size_t b, Tile tile, Scratch<Real>& scratch) {
        const Rows<Real> scalars = rows_of(scalars_, tile, 1), vectors = rows_of(middle_, tile, 3);
        compute_update(b, tile, scalars, vectors, scratch);
        if (!plans_[b].is_last) {
            to_strips(vectors, tile, 3, states_[b + 1].senders, 6, 3);
            compute_phi(b + 1, tile, scratch);
            return;
        }
        compute_readout(tile, scratch);
        if (wants_gradients_) reverse_update(b, tile, rows_of(scratch.scalars_gradient, 1), {}, scratch);
    }

    void compute_update(size_t b, Tile tile, Rows<Real> scalars, Rows<Real> vectors, Scratch<Real>& scratch) {
        const BlockPlan<Real>& plan = plans_[b];
        BlockState<Real>& state = states_[b];
        const Rows<Real> mixed = rows_of(state.mixed, tile, 6), norms = rows_of(state.norms, tile, 1), slopes = rows_of(state.update_slopes, tile, 1);
        const Rows<Real> input = rows_of(scratch.input, 2), hidden = rows_of(scratch.hidden, 1), gates = gates_of(b, tile);
        plan.mix.apply(kernels_, read(split(vectors)), split(mixed), 3 * tile.count());
        for (int i = 0; i < tile.count(); ++i) {
            compute_norms(hidden_, mixed[i], norms[i]);
            std::copy_n(scalars[i], hidden_, input[i]);
            std::copy_n(norms[i], hidden_, input[i] + hidden_);
        }
        plan.update_hidden.apply(kernels_, read(input), hidden, tile.count());
        kernels_.activate_silu(hidden.first, slopes.first, tile.count() * hidden_);
        plan.update_output.apply(kernels_, read(hidden), gates, tile.count());
        for (int i = 0; i < tile.count(); ++i) apply_gates(hidden_, mixed[i], gates[i], scalars[i], plan.is_last ? nullptr : vectors[i]);
    }
    Rows<Real> gates_of(size_t b, Tile tile) { return rows_of(states_[b].gates, tile, plans_[b].gates_width() / hidden_); }

    void compute_phi(size_t b, Tile tile, Scratch<Real>& scratch) {
        const Rows<Real> hidden = rows_of(scratch.hidden, 1);
        plans_[b].message_hidden.apply(kernels_, read(rows_of(scalars_, tile, 1)), hidden, tile.count());
        kernels_.activate_silu(hidden.first, of_atom(states_[b].message_slopes, tile.begin, 1), tile.count() * hidden_);
        const Rows<Real> phi = rows_of(scratch.gates, 3);
        plans_[b].message_output.apply(kernels_, read(hidden), phi, tile.count());
        to_strips(phi, tile, 3, states_[b].senders, 6, 0);
    }

    // Energies in readout_energy_; the gradient of the scalars in scratch.scalars_gradient.
    void compute_readout(Tile tile, Scratch<Real>& scratch) {
        const int half = readout_.out_width();
        const Rows<Real> hidden = {scratch.hidden.data(), half}, slopes = {scratch.gates.data(), half};
        readout_.apply(kernels_, read(rows_of(scalars_, tile, 1)), hidden, tile.count());
        kernels_.activate_silu(hidden.first, slopes.first, tile.count() * half);
        for (int i = 0; i < tile.count(); ++i) {
            const double scale = weights_->scales[static_cast<size_t>(element(tile.begin + i))];
            double sum = weights_->readout_output.bias[0];
            for (int k = 0; k < half; ++k) {
                const double weight = weights_->readout_output.weight[static_cast<size_t>(k)];
                sum += weight * static_cast<double>(hidden[i][k]);
                slopes[i][k] *= static_cast<Real>(scale * weight);
            }
            readout_energy_[static_cast<size_t>(tile.begin + i)] = scale * sum;
        }
        if (wants_gradients_) readout_.apply_transposed(kernels_, read(slopes), rows_of(scratch.scalars_gradient, 1), tile.count(), false);
    }

    // ---- reverse ----

    // From the gradients of the scalars and vectors after the update to those before it, in the block's state. No `vectors`: they are zero.
    void reverse_update(size_t b, Tile tile, Rows<Real> scalars, Rows<Real> vectors, Scratch<Real>& scratch) {
        const BlockPlan<Real>& plan = plans_[b];
        BlockState<Real>& state = states_[b];
        const int count = tile.count();
        const Rows<Real> mixed = rows_of(state.mixed, tile, 6), norms = rows_of(state.norms, tile, 1), slopes = rows_of(state.update_slopes, tile, 1), gates = gates_of(b, tile);
        const Rows<Real> by_gates = {scratch.gates.data(), plan.gates_width()}, by_hidden = rows_of(scratch.hidden, 1), by_input = rows_of(scratch.input, 2);
        const Rows<Real> by_mixed = rows_of(scratch.mixed, 6), to_scalars = rows_of(state.scalars_gradient, tile, 1), to_vectors = rows_of(state.vectors_gradient, tile, 3);
        const auto vectors_at = [&](int i) { return vectors.first ? vectors[i] : nullptr; };
        for (int i = 0; i < count; ++i) reverse_gates(hidden_, mixed[i], scalars[i], vectors_at(i), by_gates[i]);
        plan.update_output.apply_transposed(kernels_, read(by_gates), by_hidden, count, false);
        for (int k = 0; k < count * hidden_; ++k) by_hidden.first[k] *= slopes.first[k];
        plan.update_hidden.apply_transposed(kernels_, read(by_hidden), by_input, count, false);
        for (int i = 0; i < count; ++i) {
            reverse_mixed<Real>(hidden_, {mixed[i], norms[i], gates[i], scalars[i], vectors_at(i), by_input[i] + hidden_, by_mixed[i]});
            for (int k = 0; k < hidden_; ++k) to_scalars[i][k] = scalars[i][k] + by_input[i][k];
            if (vectors.first) std::copy_n(vectors[i], 3 * hidden_, to_vectors[i]);
        }
        plan.mix.apply_transposed(kernels_, read(split(by_mixed)), split(to_vectors), 3 * count, vectors.first != nullptr);
        to_strips(to_scalars, tile, 1, received_, 4, 0);
        to_strips(to_vectors, tile, 3, received_, 4, 1);
    }

    // From the gradients that messages bring to those of the block below; after the first block, to those of the edges' vectors.
    void reverse_atoms(size_t b, Tile tile, Scratch<Real>& scratch) {
        add_strips(plans_[b].is_last, edges_->first[tile.begin], edges_->first[tile.end]);
        if (b == 0) {
            for (int64_t atom = tile.begin; atom < tile.end; ++atom) reverse_edges(atom);
            return;
        }
        BlockState<Real>& state = states_[b];
        const int count = tile.count();
        const Rows<Real> hidden = rows_of(scratch.hidden, 1), scalars = rows_of(scratch.scalars_gradient, 1), vectors = rows_of(scratch.vectors_gradient, 3);
        const Real *by_vectors = of_atom(state.vectors_gradient, tile.begin, 3), *sent = of_atom(vectors_sent_, tile.begin, 3);
        for (int k = 0; k < 3 * count * hidden_; ++k) vectors.first[k] = by_vectors[k] + sent[k];
        std::copy_n(of_atom(state.scalars_gradient, tile.begin, 1), count * hidden_, scalars.first);
        plans_[b].message_output.apply_transposed(kernels_, read(rows_of(phi_gradient_, tile, 3)), hidden, count, false);
        const Real* slopes = of_atom(state.message_slopes, tile.begin, 1);
        for (int k = 0; k < count * hidden_; ++k) hidden.first[k] *= slopes[k];
        plans_[b].message_hidden.apply_transposed(kernels_, read(hidden), scalars, count, true);
        reverse_update(b - 1, tile, scalars, vectors, scratch);
    }

    // Gradients of the edges `begin` to `end`: all strips, in their order, in double.
    void add_strips(bool is_start, int64_t begin, int64_t end) {
        double* sums = edge_gradient_.data();
        if (is_start) std::fill(sums + 4 * begin, sums + 4 * end, 0.0);
        for (int strip = 0; strip < strip_count(); ++strip) {
            const Real* gradients = strip_gradients_.data() + strip * edges_->edge_count * 4;
            for (int64_t i = 4 * begin; i < 4 * end; ++i) sums[i] += static_cast<double>(gradients[i]);
        }
    }

    // vector_gradient[edge] = dE/dvector of the messages of the edge reversed, as a function of this vector, and of half its repulsion.
    void reverse_edges(int64_t atom) {
        for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge) {
            const double *vector = edges_->vector + 3 * edge, *gradient = edge_gradient_.data() + 4 * edge, length = edges_->distance[edge];
            const Vec3 u = {vector[0] / length, vector[1] / length, vector[2] / length};
            const double slope = gradient[0] * seen_of(atom, edge).slope + 0.5 * repulsion_of(atom, edge).slope;
            const double along = gradient[1] * u[0] + gradient[2] * u[1] + gradient[3] * u[2];
            for (size_t c = 0; c < 3; ++c) vector_gradient_[static_cast<size_t>(3 * edge) + c] = slope * u[c] + (along * u[c] - gradient[c + 1]) / length;
        }
    }

    RepulsionValue repulsion_of(int64_t atom, int64_t edge) const {
        const size_t pair = static_cast<size_t>(element(atom)) * weights_->atomic_numbers.size() + static_cast<size_t>(element(edges_->sender[edge]));
        return pair_repulsion(repulsion_[pair], edges_->distance[edge]);
    }

    // ---- results ----

    // visit(system, its first atom, the end of its atoms)
    template <class Visit>
    static void for_each_system(std::span<const SystemView> systems, const Visit& visit) {
        int64_t begin = 0;
        for (size_t s = 0; s < systems.size(); ++s) {
            visit(s, begin, begin + systems[s].atom_count);
            begin += systems[s].atom_count;
        }
    }

    void write_energies(std::span<const SystemView> systems, std::span<const Outputs> outputs) {
        for_each_system(systems, [&](size_t s, int64_t begin, int64_t end) {
            double sum = 0;
            for (int64_t atom = begin; atom < end; ++atom) {
                double energy = weights_->atomic_energies[static_cast<size_t>(element(atom))] + readout_energy_[static_cast<size_t>(atom)];
                if (!weights_->repulsion_radii.empty())
                    for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge) energy += 0.5 * repulsion_of(atom, edge).energy;
                if (outputs[s].atom_energies) outputs[s].atom_energies[atom - begin] = energy;
                sum += energy;
            }
            if (outputs[s].energy) *outputs[s].energy = sum;
            if (outputs[s].descriptors) std::copy_n(scalars_.data() + begin * hidden_, (end - begin) * hidden_, outputs[s].descriptors);
        });
    }

    std::shared_ptr<const Weights> weights_;
    int hidden_;
    const kernels::KernelTable<Real>& kernels_;
    Filters<Real> filters_;
    std::vector<RepulsionPair> repulsion_;  // [element][element]
    DenseLayer<Real> readout_;              // its hidden layer
    std::vector<BlockPlan<Real>> plans_;
    std::vector<BlockState<Real>> states_;
    std::vector<Scratch<Real>> scratch_;

    const Edges* edges_ = nullptr;
    bool wants_gradients_ = false;
    std::vector<int> elements_;           // [atom]
    Buffer<Real> scalars_;                // [atom][F], as far as the blocks have come
    Buffer<Real> middle_;                 // [atom][3][F], vectors between messages and update
    Buffer<double> seen_;                 // [edge], the distance that filters are functions of; empty if it is the true one
    Buffer<Real> directions_;             // [edge][3]
    Buffer<Real> received_;               // [strip][atom][s, v][channel]: gradients by what the messages of a block are added to
    Buffer<Real> phi_gradient_, vectors_sent_;  // [atom][3][F], of what the atom sends
    Buffer<Real> strip_gradients_;        // [strip][edge][4]
    std::vector<double> readout_energy_;  // [atom], scaled
    std::vector<double> edge_gradient_;   // [edge][4]: by the length and the direction of the edge reversed
    std::vector<double> vector_gradient_; // [edge][3]
};

}  // namespace

std::unique_ptr<Evaluator> make_cpu_evaluator(std::shared_ptr<const Weights> weights, const CpuOptions& options) {
    if (options.is_mixed) return std::make_unique<CpuEvaluator<float>>(std::move(weights), options);
    return std::make_unique<CpuEvaluator<double>>(std::move(weights), options);
}

}  // namespace mlff::painn::cpu
