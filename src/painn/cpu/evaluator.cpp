// SPDX-License-Identifier: MIT
#include "painn/cpu/evaluator.h"

#include <algorithm>
#include <cmath>

#include "painn/cpu/block_plan.h"
#include "painn/cpu/filters.h"
#include "painn/cpu/first_messages.h"
#include "painn/cpu/stage_work.h"
#include "painn/cpu/strips.h"
#include "painn/functions/near_field.h"
#include "painn/functions/repulsion_pairs.h"
#include "potential/edge_evaluator.h"

namespace mlff::painn::cpu {
namespace {

// Dense layers are faster with many atoms in a tile, but there must be tiles for all threads. The size depends on the
// system only, so that results do not depend on the number of threads.
constexpr int64_t kFewestAtoms = 4, kMostAtoms = 24;  // in a tile
static_assert(3 * kMostAtoms <= kMostRows);
int64_t atoms_per_tile(int64_t atom_count) {
    return std::clamp(atom_count / 4 / kFewestAtoms * kFewestAtoms, kFewestAtoms, kMostAtoms);
}

constexpr int kSenderRows = 5, kSumRows = 4;  // phi_s, phi_u, phi_v v;  s, v

// What a block stores for other blocks and for its own reverse pass. Buffers are [atom][...][F].
template <class Real>
struct BlockState {
    // Messages; not in the first block.
    Strips<Real> senders;                // phi_s, phi_u, phi_v v
    Buffer<Real> message_slopes, phi_v;  // [F], [F]
    Buffer<Real> vectors;                // [3][F], before the messages are added
    // Update.
    Buffer<Real> mixed;                                // [3][U v, V v][F]; in the first block [3][v, U v, V v][F]
    Buffer<Real> inverse_norms, update_slopes, gates;  // [F], [F], [3][F]; in the last block gates are [2][F]
    // Gradients of scalars and vectors after the messages were added; vectors not in the first block.
    Buffer<Real> scalars_gradient, vectors_gradient;
};

// Memory of one thread.
template <class Real>
struct Scratch {
    Buffer<Real> input, hidden, gates, mixed;         // [atom of the tile][2, 1, 3, 9][F]
    Buffer<Real> vectors, sent;                       // [atom of the tile][3, 3][F]
    Buffer<Real> scalars_gradient, vectors_gradient;  // [atom of the tile][1, 3][F]
    Buffer<Real> scalar_moments, vector_moments;      // [slot][atom of the tile][1, 3][function]
    typename Filters<Real>::Scratch filters;
    StageLog* stages = nullptr;
};

template <class Real>
class CpuEvaluator : public EdgeEvaluator {
public:
    CpuEvaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options)
        : weights_(std::move(weights)),
          hidden_(weights_->hidden),
          kernels_(kernels::choose_kernels<Real>()),
          filters_(*weights_, options.exact_radial),
          repulsion_(repulsion_pairs(*weights_)),
          first_messages_(*weights_),
          readout_(weights_->readout_hidden) {
        for (size_t b = 0; b < weights_->blocks.size(); ++b) plans_.emplace_back(*weights_, b);
        states_.resize(plans_.size());
    }

private:
    // A pass reads from other atoms only what earlier passes have written, and writes only to its own atoms, edges and
    // channels. So threads need no synchronisation within a pass.
    void evaluate_atoms(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs,
                        int64_t owned_count, ThreadTeam& team) override {
        Stages passes(team.stage_log(0));
        passes.begin("preparation");
        edges_ = &edges;
        owned_count_ = owned_count;
        find_elements(*weights_, systems, elements_);
        first_messages_.find_slots(elements_);
        wants_gradients_ = std::any_of(outputs.begin(), outputs.end(),
                                       [](const Outputs& o) { return o.forces || o.virial || o.atom_virials; });
        reserve(static_cast<size_t>(team.size()));
        for (size_t worker = 0; worker < scratch_.size(); ++worker)
            scratch_[worker].stages = team.stage_log(static_cast<int>(worker));
        passes.begin("pass over atoms");
        for_each_tile(team, [this](AtomRange tile, Scratch<Real>& scratch) {
            start_atoms(tile, scratch);
            sum_first_messages(tile, scratch);
            compute_atoms(0, tile, scratch);
        });
        for (size_t b = 1; b < plans_.size(); ++b) {
            fill_ghosts(states_[b].senders.rows());
            passes.begin("pass over edges");
            for_each_strip(team, [this, b](int strip, AtomRange group, Scratch<Real>& scratch) {
                sum_messages(b, strip, group, scratch);
            });
            passes.begin("pass over atoms");
            for_each_tile(team, [this, b](AtomRange tile, Scratch<Real>& scratch) {
                receive_messages(b, tile, scratch);
                compute_atoms(b, tile, scratch);
            });
        }
        passes.begin("energies");
        write_energies(systems, outputs);
        if (!wants_gradients_) return;
        for (size_t b = plans_.size(); b-- > 1;) {
            fill_ghosts(received_.rows());
            passes.begin("pass over edges");
            for_each_strip(team, [this, b](int strip, AtomRange group, Scratch<Real>& scratch) {
                reverse_messages(b, strip, group, scratch);
            });
            passes.begin("pass over atoms");
            for_each_tile(team, [this, b](AtomRange tile, Scratch<Real>& scratch) { reverse_atoms(b, tile, scratch); });
        }
        passes.begin("forces");
        write_edge_results(systems, edges, vector_gradient_.data(), outputs, team);
    }

    // ---- memory and tiles ----

    void reserve(size_t worker_count) {
        const size_t atoms = static_cast<size_t>(owned_count_), width = static_cast<size_t>(hidden_);
        const auto resize = [&](Buffer<Real>& buffer, size_t rows) { buffer.resize_discard(rows * width); };
        const auto resize_strips = [&](Strips<Real>& strips, int rows) {
            strips.resize(edges_->atom_count, rows, hidden_);
        };
        const auto edges = static_cast<size_t>(edges_->edge_count);
        resize(scalars_, atoms);
        resize_strips(sums_, kSumRows);
        links_.start(*edges_, owned_count_);
        filters_.start(edges_->edge_count);
        if (!weights_->closest.empty()) seen_.resize_discard(edges);
        directions_.resize_discard(3 * edges);
        atom_energies_.resize(atoms);
        for (size_t b = 0; b < plans_.size(); ++b) {
            BlockState<Real>& state = states_[b];
            if (b > 0) {
                resize_strips(state.senders, kSenderRows);
                resize(state.message_slopes, atoms);
                resize(state.phi_v, atoms);
                resize(state.vectors, 3 * atoms);
            }
            resize(state.mixed, (b == 0 ? 9 : 6) * atoms);
            resize(state.inverse_norms, atoms);
            resize(state.update_slopes, atoms);
            resize(state.gates, 3 * atoms);
            if (!wants_gradients_) continue;
            resize(state.scalars_gradient, atoms);
            resize(state.vectors_gradient, 3 * atoms);
        }
        if (wants_gradients_) {
            resize_strips(received_, kSumRows);
            resize_strips(sent_gradient_, kSenderRows);
            strip_gradients_.resize_discard(static_cast<size_t>(strip_count()) * edges * 4);
            edge_gradient_.resize(edges * 4);
            vector_gradient_.resize(edges * 3);
        }
        scratch_.resize(worker_count);
        const auto moments = static_cast<size_t>(first_messages_.slot_count() * filters_.basis_stride()) * kMostAtoms;
        for (Scratch<Real>& scratch : scratch_) {
            constexpr size_t kAtoms = kMostAtoms;
            for (Buffer<Real>* buffer : {&scratch.hidden, &scratch.scalars_gradient}) resize(*buffer, kAtoms);
            resize(scratch.input, 2 * kAtoms);
            for (Buffer<Real>* buffer : {&scratch.gates, &scratch.vectors, &scratch.sent, &scratch.vectors_gradient})
                resize(*buffer, 3 * kAtoms);
            resize(scratch.mixed, 9 * kAtoms);
            scratch.scalar_moments.resize_discard(moments);
            scratch.vector_moments.resize_discard(3 * moments);
        }
    }

    template <class Work>
    void for_each_tile(ThreadTeam& team, const Work& work) {
        const int64_t size = atoms_per_tile(owned_count_);
        team.run((owned_count_ + size - 1) / size, [this, &work](int64_t chunk, int worker) {
            const int64_t per_tile = atoms_per_tile(owned_count_);
            work({chunk * per_tile, std::min(owned_count_, (chunk + 1) * per_tile)},
                 scratch_[static_cast<size_t>(worker)]);
        });
    }

    int strip_count() const { return hidden_ / kernels::kRowPadding; }
    template <class Work>
    void for_each_strip(ThreadTeam& team, const Work& work) {
        team.run(strip_count() * links_.group_count(), [this, &work](int64_t item, int worker) {
            const int64_t groups = links_.group_count();
            work(static_cast<int>(item / groups), links_.group(item % groups), scratch_[static_cast<size_t>(worker)]);
        });
    }

    // Buffers have `parts` rows of F numbers for each atom.
    Real* of_atom(Buffer<Real>& buffer, int64_t atom, int parts) const {
        return buffer.data() + atom * parts * hidden_;
    }
    Rows<Real> rows_of(Buffer<Real>& buffer, AtomRange tile, int parts) const {
        return {of_atom(buffer, tile.begin, parts), parts * hidden_};
    }
    Rows<Real> rows_of(Buffer<Real>& scratch, int parts) const { return {scratch.data(), parts * hidden_}; }
    static Rows<const Real> read(Rows<Real> rows) { return {rows.first, rows.stride}; }
    // The three components of each atom as separate rows.
    Rows<Real> split(Rows<Real> rows) const { return {rows.first, rows.stride / 3}; }

    // Each component has mixed_parts() rows, of which U v and V v are the last two.
    static int mixed_parts(size_t b) { return b == 0 ? 3 : 2; }
    kernels::PainnComponents<Real> mixed_at(size_t b, Rows<Real> mixed, int i) const {
        return {mixed[i] + (mixed_parts(b) - 2) * hidden_, mixed_parts(b) * hidden_};
    }
    static kernels::PainnMixed<Real> read(kernels::PainnComponents<Real> rows) { return {rows.first, rows.stride}; }
    Rows<Real> mixed_of(size_t b, AtomRange tile) { return rows_of(states_[b].mixed, tile, 3 * mixed_parts(b)); }
    Rows<Real> gates_of(size_t b, AtomRange tile) {
        return rows_of(states_[b].gates, tile, plans_[b].gates_width() / hidden_);
    }

    int element(int64_t atom) const { return elements_[static_cast<size_t>(atom)]; }

    // ---- messages ----

    static Stages stages_of(Scratch<Real>& scratch, Direction direction, size_t b) {
        return Stages(scratch.stages, direction, static_cast<int>(b));
    }

    void start_atoms(AtomRange atoms, Scratch<Real>& scratch) {
        Stages stages(scratch.stages, Direction::forward);
        stages.begin("edges");
        for (int64_t atom = atoms.begin; atom < atoms.end; ++atom) {
            const double* embedding = weights_->embedding.data() + element(atom) * hidden_;
            std::transform(embedding, embedding + hidden_, of_atom(scalars_, atom, 1),
                           [](double value) { return static_cast<Real>(value); });
        }
        const int64_t begin = edges_->first[atoms.begin], end = edges_->first[atoms.end];
        if (!seen_.empty()) see_distances(atoms);
        filters_.locate(seen_.empty() ? edges_->distance : seen_.data(), begin, end);
        for (int64_t edge = begin; edge < end; ++edge)
            for (int64_t c = 0; c < 3; ++c)
                directions_[static_cast<size_t>(3 * edge + c)] =
                    static_cast<Real>(edges_->vector[3 * edge + c] / edges_->distance[edge]);
        links_.find(*edges_, atoms, filters_.shares(), directions_.data());
    }

    SeenDistance seen_of(int64_t atom, int64_t edge) const {
        return seen_distance(weights_->closest_of(element(atom), element(edges_->sender[edge])),
                             edges_->distance[edge]);
    }
    void see_distances(AtomRange atoms) {
        for (int64_t atom = atoms.begin; atom < atoms.end; ++atom)
            for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge)
                seen_[static_cast<size_t>(edge)] = seen_of(atom, edge).value;
    }

    // Calls work(moments) for each atom of the tile, or with their gradients.
    template <class Work>
    void for_each_moments(AtomRange tile, Scratch<Real>& scratch, const Work& work) const {
        kernels::PainnMoments<Real> view;
        const int64_t begin = edges_->first[tile.begin];
        view.table = filters_.functions(begin, edges_->first[tile.end], scratch.filters);
        view.first_node = filters_.first_node(begin);
        view.shares = filters_.shares();
        view.directions = directions_.data();
        view.sender = edges_->sender;
        view.element_slot = first_messages_.slots();
        view.stride = filters_.basis_stride();
        view.slot_stride = tile.count();
        for (int64_t atom = tile.begin; atom < tile.end; ++atom) {
            view.begin = edges_->first[atom];
            view.end = edges_->first[atom + 1];
            view.scalars = scratch.scalar_moments.data() + (atom - tile.begin) * view.stride;
            view.vectors = scratch.vector_moments.data() + 3 * (atom - tile.begin) * view.stride;
            work(view);
        }
    }
    typename FirstMessages<Real>::Moments moments_of(AtomRange tile, Scratch<Real>& scratch) const {
        return {scratch.scalar_moments.data(), scratch.vector_moments.data(), filters_.basis_stride(), tile.count()};
    }

    // The work is unknown if filters are evaluated for every edge.
    StageWork work_of_moments(AtomRange tile, bool is_reverse) const {
        if (filters_.is_exact()) return {kUnknownWork, kUnknownWork};
        return moments_work<Real>(edges_->first[tile.end] - edges_->first[tile.begin], weights_->radial_count + 1,
                                  is_reverse);
    }
    StageWork work_of_messages(AtomRange atoms, bool is_reverse) const {
        if (filters_.is_exact()) return {kUnknownWork, kUnknownWork};
        return strip_work<Real>(links_.counts(), atoms.begin, atoms.end, is_reverse);
    }

    void sum_first_messages(AtomRange tile, Scratch<Real>& scratch) {
        Stages stages = stages_of(scratch, Direction::forward, 0);
        stages.begin("moments of edges", [&] { return work_of_moments(tile, false); });
        for (Buffer<Real>* moments : {&scratch.scalar_moments, &scratch.vector_moments})
            std::fill(moments->begin(), moments->end(), Real(0));
        for_each_moments(tile, scratch,
                         [this](const kernels::PainnMoments<Real>& moments) { kernels_.sum_painn_moments(moments); });
        stages.begin("messages and mixing", [&] { return first_messages_.work(tile.count()); });
        first_messages_.apply(kernels_, moments_of(tile, scratch), tile.count(), rows_of(scalars_, tile, 1),
                              mixed_of(0, tile));
    }

    // From the gradients of the scalars and of v, U v and V v to those of the edges.
    void reverse_first_messages(AtomRange tile, Scratch<Real>& scratch) {
        Stages stages = stages_of(scratch, Direction::reverse, 0);
        stages.begin("messages and mixing", [&] { return first_messages_.work(tile.count()); });
        first_messages_.reverse(kernels_, moments_of(tile, scratch), tile.count(),
                                read(rows_of(states_[0].scalars_gradient, tile, 1)), read(rows_of(scratch.mixed, 9)));
        stages.begin("moments of edges", [&] { return work_of_moments(tile, true); });
        for_each_moments(tile, scratch, [this](const kernels::PainnMoments<Real>& moments) {
            kernels_.reverse_painn_moments(moments, strip_gradients_.data());
        });
        Stages of_edges(scratch.stages, Direction::reverse);
        stages.finish();
        of_edges.begin("edges");
        for (int64_t atom = tile.begin; atom < tile.end; ++atom) reverse_edges(atom);
    }

    kernels::PainnStrip<Real> strip_of(size_t b, int strip, AtomRange atoms, Scratch<Real>& scratch) const {
        kernels::PainnStrip<Real> view;
        const int64_t begin = edges_->first[atoms.begin];
        view.table = filters_.strip(b, strip, begin, edges_->first[atoms.end], scratch.filters);
        view.first_node = filters_.first_node(begin);
        view.links = links_.links();
        view.counts = links_.counts();
        view.first = edges_->first;
        view.begin = atoms.begin;
        view.end = atoms.end;
        view.senders = states_[b].senders.strip(strip);
        return view;
    }

    void sum_messages(size_t b, int strip, AtomRange atoms, Scratch<Real>& scratch) {
        Stages stages = stages_of(scratch, Direction::forward, b);
        stages.begin("messages", [&] { return work_of_messages(atoms, false); });
        kernels_.sum_painn_messages({strip_of(b, strip, atoms, scratch), sums_.strip(strip)});
    }

    void reverse_messages(size_t b, int strip, AtomRange atoms, Scratch<Real>& scratch) {
        Stages stages = stages_of(scratch, Direction::reverse, b);
        stages.begin("messages", [&] { return work_of_messages(atoms, true); });
        kernels_.reverse_painn_messages({strip_of(b, strip, atoms, scratch), received_.strip(strip),
                                         strip_gradients_.data() + strip * edges_->edge_count * 4,
                                         sent_gradient_.strip(strip)});
    }

    // ---- forward ----

    // Adds the sums of messages to the scalars and to the vectors (in scratch.vectors), and mixes the vectors.
    void receive_messages(size_t b, AtomRange tile, Scratch<Real>& scratch) {
        Stages stages = stages_of(scratch, Direction::forward, b);
        stages.begin("mixing", [&] { return plans_[b].mix.work(3 * tile.count()); });
        const Rows<Real> vectors = rows_of(scratch.vectors, 3);
        std::copy_n(of_atom(states_[b].vectors, tile.begin, 3), 3 * tile.count() * hidden_, vectors.first);
        sums_.add_to(tile, 0, 1, rows_of(scalars_, tile, 1));
        sums_.add_to(tile, 1, 3, vectors);
        plans_[b].mix.apply(kernels_, read(split(vectors)), split(mixed_of(b, tile)), 3 * tile.count());
    }

    void compute_atoms(size_t b, AtomRange tile, Scratch<Real>& scratch) {
        compute_update(b, tile, scratch);
        if (!plans_[b].is_last) {
            send_messages(b + 1, tile, scratch);
            return;
        }
        compute_readout(tile, scratch);
        if (wants_gradients_) reverse_update(b, tile, rows_of(scratch.scalars_gradient, 1), {}, scratch);
    }

    // Updates scalars in place. Reads vectors from scratch.vectors, in the first block from state.mixed, and writes new
    // ones to the state of the next block.
    void compute_update(size_t b, AtomRange tile, Scratch<Real>& scratch) {
        const BlockPlan<Real>& plan = plans_[b];
        BlockState<Real>& state = states_[b];
        Stages stages = stages_of(scratch, Direction::forward, b);
        stages.begin("update",
                     [&] { return plan.update_hidden.work(tile.count()) + plan.update_output.work(tile.count()); });
        const Rows<Real> mixed = mixed_of(b, tile), inverse_norms = rows_of(state.inverse_norms, tile, 1),
                         slopes = rows_of(state.update_slopes, tile, 1);
        const Rows<Real> scalars = rows_of(scalars_, tile, 1), input = rows_of(scratch.input, 2),
                         hidden = rows_of(scratch.hidden, 1), gates = gates_of(b, tile);
        for (int i = 0; i < tile.count(); ++i) {
            std::copy_n(scalars[i], hidden_, input[i]);
            kernels_.compute_painn_norms(hidden_, read(mixed_at(b, mixed, i)), static_cast<Real>(kNormFloor),
                                         input[i] + hidden_, inverse_norms[i]);
        }
        plan.update_hidden.apply(kernels_, read(input), hidden, tile.count());
        kernels_.activate_silu(hidden.first, slopes.first, tile.count() * hidden_);
        plan.update_output.apply(kernels_, read(hidden), gates, tile.count());
        const Rows<Real> vectors = rows_of(scratch.vectors, 3);
        for (int i = 0; i < tile.count(); ++i) {
            const kernels::PainnMixed<Real> rows = read(mixed_at(b, mixed, i));
            kernels_.add_to_painn_scalars(hidden_, rows, gates[i], scalars[i]);
            if (plan.is_last) continue;
            const kernels::PainnComponents<const Real> before =
                b == 0 ? kernels::PainnComponents<const Real>{mixed[i], 3 * hidden_}
                       : kernels::PainnComponents<const Real>{vectors[i], hidden_};
            kernels_.update_painn_vectors(hidden_, rows, gates[i], before,
                                          of_atom(states_[b + 1].vectors, tile.begin + i, 3));
        }
    }

    // Computes what atoms send in block b from their scalars and vectors.
    void send_messages(size_t b, AtomRange tile, Scratch<Real>& scratch) {
        BlockState<Real>& state = states_[b];
        Stages stages = stages_of(scratch, Direction::forward, b);
        stages.begin("what atoms send", [&] {
            return plans_[b].message_hidden.work(tile.count()) + plans_[b].message_output.work(tile.count());
        });
        const Rows<Real> hidden = rows_of(scratch.hidden, 1), phi = rows_of(scratch.gates, 3),
                         sent = rows_of(scratch.sent, 3);
        plans_[b].message_hidden.apply(kernels_, read(rows_of(scalars_, tile, 1)), hidden, tile.count());
        kernels_.activate_silu(hidden.first, of_atom(state.message_slopes, tile.begin, 1), tile.count() * hidden_);
        plans_[b].message_output.apply(kernels_, read(hidden), phi, tile.count());
        for (int i = 0; i < tile.count(); ++i) {
            const Real* phi_v = phi[i] + hidden_;
            std::copy_n(phi_v, hidden_, of_atom(state.phi_v, tile.begin + i, 1));
            kernels_.weigh_painn_vectors(hidden_, phi_v, of_atom(state.vectors, tile.begin + i, 3), sent[i]);
        }
        state.senders.write(tile, 0, 1, phi);
        state.senders.write(tile, 1, 1, {phi.first + 2 * hidden_, phi.stride});
        state.senders.write(tile, 2, 3, sent);
    }

    // Writes energies to atom_energies_, and the gradient of the scalars to scratch.scalars_gradient.
    void compute_readout(AtomRange tile, Scratch<Real>& scratch) {
        const int half = readout_.out_width();
        Stages stages(scratch.stages, Direction::forward);
        stages.begin("readout", [&] { return readout_.work((wants_gradients_ ? 2 : 1) * tile.count()); });
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
            atom_energies_[static_cast<size_t>(tile.begin + i)] = energy_of(tile.begin + i, scale * sum);
        }
        if (wants_gradients_)
            readout_.apply_transposed(kernels_, read(slopes), rows_of(scratch.scalars_gradient, 1), tile.count(),
                                      false);
    }

    // The whole energy of an atom, with half of its repulsion.
    double energy_of(int64_t atom, double readout) const {
        double energy = weights_->atomic_energies[static_cast<size_t>(element(atom))] + readout;
        if (!weights_->repulsion_radii.empty())
            for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge)
                energy += 0.5 * repulsion_of(atom, edge).energy;
        return energy;
    }

    // ---- reverse ----

    // From the gradients of the scalars and vectors after the update to those before it, where the messages were added;
    // the senders of the block gather these. In the first block it goes on to the gradients of the edges. If
    // `vectors.first` is nullptr, the gradient of the vectors is zero.
    void reverse_update(size_t b, AtomRange tile, Rows<Real> scalars, Rows<Real> vectors, Scratch<Real>& scratch) {
        const BlockPlan<Real>& plan = plans_[b];
        BlockState<Real>& state = states_[b];
        const int count = tile.count();
        Stages stages = stages_of(scratch, Direction::reverse, b);
        stages.begin("update", [&] { return plan.update_output.work(count) + plan.update_hidden.work(count); });
        const Rows<Real> mixed = mixed_of(b, tile), inverse_norms = rows_of(state.inverse_norms, tile, 1),
                         slopes = rows_of(state.update_slopes, tile, 1), gates = gates_of(b, tile);
        const Rows<Real> by_gates = {scratch.gates.data(), plan.gates_width()}, by_hidden = rows_of(scratch.hidden, 1),
                         by_input = rows_of(scratch.input, 2);
        const Rows<Real> by_mixed = rows_of(scratch.mixed, 3 * mixed_parts(b)),
                         to_scalars = rows_of(state.scalars_gradient, tile, 1);
        const auto vectors_at = [&](int i) { return vectors.first ? vectors[i] : nullptr; };
        for (int i = 0; i < count; ++i)
            kernels_.reverse_painn_gates(hidden_, read(mixed_at(b, mixed, i)), scalars[i], vectors_at(i), by_gates[i]);
        plan.update_output.apply_transposed(kernels_, read(by_gates), by_hidden, count, false);
        for (int k = 0; k < count * hidden_; ++k) by_hidden.first[k] *= slopes.first[k];
        plan.update_hidden.apply_transposed(kernels_, read(by_hidden), by_input, count, false);
        for (int i = 0; i < count; ++i) {
            kernels_.reverse_painn_mixed(hidden_, {read(mixed_at(b, mixed, i)), inverse_norms[i], gates[i], scalars[i],
                                                   vectors_at(i), by_input[i] + hidden_, mixed_at(b, by_mixed, i)});
            for (int k = 0; k < hidden_; ++k) to_scalars[i][k] = scalars[i][k] + by_input[i][k];
        }
        if (b > 0) {
            stages.begin("mixing", [&] { return plan.mix.work(3 * count); });
            reverse_mixing(b, tile, vectors, scratch);
            return;
        }
        for (int i = 0; i < count; ++i)
            for (int c = 0; c < 3; ++c) {
                Real* by_vectors = by_mixed[i] + 3 * c * hidden_;
                if (vectors.first)
                    std::copy_n(vectors[i] + c * hidden_, hidden_, by_vectors);
                else
                    std::fill_n(by_vectors, hidden_, Real(0));
            }
        stages.finish();
        reverse_first_messages(tile, scratch);
    }

    void reverse_mixing(size_t b, AtomRange tile, Rows<Real> vectors, Scratch<Real>& scratch) {
        const Rows<Real> to_vectors = rows_of(states_[b].vectors_gradient, tile, 3);
        if (vectors.first) std::copy_n(vectors.first, 3 * tile.count() * hidden_, to_vectors.first);
        plans_[b].mix.apply_transposed(kernels_, read(split(rows_of(scratch.mixed, 6))), split(to_vectors),
                                       3 * tile.count(), vectors.first != nullptr);
        received_.write(tile, 0, 1, rows_of(states_[b].scalars_gradient, tile, 1));
        received_.write(tile, 1, 3, to_vectors);
    }

    // From the gradients of what atoms sent in block b to those of block b - 1.
    void reverse_atoms(size_t b, AtomRange tile, Scratch<Real>& scratch) {
        Stages stages = stages_of(scratch, Direction::reverse, b);
        stages.begin("sums over strips");
        add_strips(plans_[b].is_last, tile);
        BlockState<Real>& state = states_[b];
        const int count = tile.count();
        stages.begin("what atoms send",
                     [&] { return plans_[b].message_output.work(count) + plans_[b].message_hidden.work(count); });
        const Rows<Real> hidden = rows_of(scratch.hidden, 1), scalars = rows_of(scratch.scalars_gradient, 1),
                         vectors = rows_of(scratch.vectors_gradient, 3);
        const Rows<Real> by_phi = rows_of(scratch.gates, 3), by_sent = rows_of(scratch.sent, 3);
        std::copy_n(of_atom(state.vectors_gradient, tile.begin, 3), 3 * count * hidden_, vectors.first);
        std::copy_n(of_atom(state.scalars_gradient, tile.begin, 1), count * hidden_, scalars.first);
        sent_gradient_.read(tile, 0, 1, by_phi);
        sent_gradient_.read(tile, 1, 1, {by_phi.first + 2 * hidden_, by_phi.stride});
        sent_gradient_.read(tile, 2, 3, by_sent);
        for (int i = 0; i < count; ++i)
            kernels_.reverse_painn_weighing(hidden_, of_atom(state.phi_v, tile.begin + i, 1),
                                            of_atom(state.vectors, tile.begin + i, 3), by_sent[i], by_phi[i] + hidden_,
                                            vectors[i]);
        plans_[b].message_output.apply_transposed(kernels_, read(by_phi), hidden, count, false);
        const Real* slopes = of_atom(state.message_slopes, tile.begin, 1);
        for (int k = 0; k < count * hidden_; ++k) hidden.first[k] *= slopes[k];
        plans_[b].message_hidden.apply_transposed(kernels_, read(hidden), scalars, count, true);
        stages.finish();
        reverse_update(b - 1, tile, scalars, vectors, scratch);
    }

    // Sums the gradients of the atoms' links over all strips, in order and in double.
    void add_strips(bool is_start, AtomRange atoms) {
        if (is_start)
            std::fill(edge_gradient_.begin() + 4 * edges_->first[atoms.begin],
                      edge_gradient_.begin() + 4 * edges_->first[atoms.end], 0.0);
        for (int64_t atom = atoms.begin; atom < atoms.end; ++atom)
            for (int64_t link = 0; link < links_.counts()[atom].all; ++link) {
                const int64_t at = 4 * links_.links()[edges_->first[atom] + link].edge;
                double* sums = edge_gradient_.data() + at;
                for (int strip = 0; strip < strip_count(); ++strip) {
                    const Real* gradients = strip_gradients_.data() + strip * edges_->edge_count * 4 + at;
                    for (int c = 0; c < 4; ++c) sums[c] += static_cast<double>(gradients[c]);
                }
            }
    }

    // vector_gradient[edge] = dE/dvector of the messages along the edge and of half of its repulsion
    void reverse_edges(int64_t atom) {
        const bool has_links = plans_.size() > 1;
        for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge) {
            const double *vector = edges_->vector + 3 * edge, length = edges_->distance[edge];
            const Real* first = strip_gradients_.data() + 4 * edge;  // of the first block
            double gradient[4];
            for (int c = 0; c < 4; ++c)
                gradient[c] = static_cast<double>(first[c]) +
                              (has_links ? edge_gradient_[static_cast<size_t>(4 * edge + c)] : 0.0);
            const Vec3 u = {vector[0] / length, vector[1] / length, vector[2] / length};
            const double slope = gradient[0] * seen_of(atom, edge).slope + 0.5 * repulsion_of(atom, edge).slope;
            const double along = gradient[1] * u[0] + gradient[2] * u[1] + gradient[3] * u[2];
            for (size_t c = 0; c < 3; ++c)
                vector_gradient_[static_cast<size_t>(3 * edge) + c] =
                    slope * u[c] + (gradient[c + 1] - along * u[c]) / length;
        }
    }

    RepulsionValue repulsion_of(int64_t atom, int64_t edge) const {
        const size_t pair = static_cast<size_t>(element(atom)) * weights_->atomic_numbers.size() +
                            static_cast<size_t>(element(edges_->sender[edge]));
        return pair_repulsion(repulsion_[pair], edges_->distance[edge]);
    }

    // ---- results ----

    void write_energies(std::span<const SystemView> systems, std::span<const Outputs> outputs) {
        for_each_system(systems, [&](size_t s, int64_t begin, int64_t end) {
            end = std::min(end, owned_count_);
            double sum = 0;
            for (int64_t atom = begin; atom < end; ++atom) {
                const double energy = atom_energies_[static_cast<size_t>(atom)];
                if (outputs[s].atom_energies) outputs[s].atom_energies[atom - begin] = energy;
                sum += energy;
            }
            if (outputs[s].energy) *outputs[s].energy = sum;
            if (outputs[s].descriptors)
                std::copy_n(scalars_.data() + begin * hidden_, (end - begin) * hidden_, outputs[s].descriptors);
        });
    }

    std::shared_ptr<const Weights> weights_;
    int hidden_;
    const kernels::KernelTable<Real>& kernels_;
    Filters<Real> filters_;
    std::vector<RepulsionPair> repulsion_;  // [element][element]
    FirstMessages<Real> first_messages_;
    DenseLayer<Real> readout_;  // the hidden layer of the readout
    std::vector<BlockPlan<Real>> plans_;
    std::vector<BlockState<Real>> states_;
    std::vector<Scratch<Real>> scratch_;

    const Edges* edges_ = nullptr;
    bool wants_gradients_ = false;
    int64_t owned_count_ = 0;    // all atoms except ghosts
    std::vector<int> elements_;  // [atom]
    Links<Real> links_;
    Buffer<Real> scalars_;          // [atom][F], after the last block that was computed
    Buffer<double> seen_;           // [edge]: the distance for filters (near_field.h); empty if it is the true distance
    Buffer<Real> directions_;       // [edge][3]
    Strips<Real> sums_, received_;  // s, v: sums of the messages of a block, and gradients by these sums
    Strips<Real> sent_gradient_;    // phi_s, phi_u, phi_v v
    // [strip][edge][4]. When all strips have been added up, the first is reused for the gradients of the first block.
    Buffer<Real> strip_gradients_;
    std::vector<double> atom_energies_;    // [atom]
    std::vector<double> edge_gradient_;    // [edge][4]: by distance and direction
    std::vector<double> vector_gradient_;  // [edge][3]
};

}  // namespace

std::unique_ptr<Evaluator> make_cpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options) {
    if (options.is_single()) return std::make_unique<CpuEvaluator<float>>(std::move(weights), options);
    return std::make_unique<CpuEvaluator<double>>(std::move(weights), options);
}

}  // namespace mlff::painn::cpu
