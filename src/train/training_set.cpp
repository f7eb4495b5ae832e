// SPDX-License-Identifier: MIT
#include "train/training_set.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "core/elements.h"
#include "core/error.h"
#include "train/frame_graph.h"

namespace mlff::train {
namespace {

// Calls work(index, maker) for every index, on all cores. Each maker is used by one call at a time.
template <class Work>
void for_each_frame(int64_t count, double cutoff, const Work& work) {
    ThreadTeam team(0);
    std::vector<std::unique_ptr<GraphMaker>> makers;
    for (int worker = 0; worker < team.size(); ++worker) makers.push_back(std::make_unique<GraphMaker>(cutoff));
    constexpr int64_t kPerChunk = 64;
    team.run((count + kPerChunk - 1) / kPerChunk, [&](int64_t chunk, int worker) {
        for (int64_t index = chunk * kPerChunk; index < std::min(count, (chunk + 1) * kPerChunk); ++index)
            work(index, *makers[static_cast<size_t>(worker)]);
    });
}

// Solves a symmetric positive definite system [n][n] by Cholesky decomposition.
std::vector<double> solve(std::vector<double> matrix, std::vector<double> right, size_t n) {
    for (size_t j = 0; j < n; ++j) {
        for (size_t k = 0; k < j; ++k) matrix[j * n + j] -= matrix[j * n + k] * matrix[j * n + k];
        matrix[j * n + j] = std::sqrt(matrix[j * n + j]);
        for (size_t i = j + 1; i < n; ++i) {
            for (size_t k = 0; k < j; ++k) matrix[i * n + j] -= matrix[i * n + k] * matrix[j * n + k];
            matrix[i * n + j] /= matrix[j * n + j];
        }
    }
    for (size_t i = 0; i < n; ++i) {
        for (size_t k = 0; k < i; ++k) right[i] -= matrix[i * n + k] * right[k];
        right[i] /= matrix[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; ++k) right[i] -= matrix[k * n + i] * right[k];
        right[i] /= matrix[i * n + i];
    }
    return right;
}

// Least-squares fit of  sum over atoms of E0[element] = energy.  A very weak pull towards the mean energy per atom
// decides what data with few compositions leave undetermined.
std::vector<double> fit_atomic_energies(const std::vector<std::vector<int64_t>>& counts,
                                        const std::vector<double>& energies, size_t n) {
    double per_atom = 0, atoms = 0;
    for (size_t f = 0; f < counts.size(); ++f) {
        per_atom += energies[f];
        for (const int64_t count : counts[f]) atoms += static_cast<double>(count);
    }
    per_atom /= atoms;
    std::vector<double> matrix(n * n, 0.0), right(n, 0.0);
    double trace = 0;
    for (size_t f = 0; f < counts.size(); ++f) {
        double rest = energies[f];
        for (const int64_t count : counts[f]) rest -= per_atom * static_cast<double>(count);
        for (size_t i = 0; i < n; ++i) {
            right[i] += static_cast<double>(counts[f][i]) * rest;
            for (size_t j = 0; j < n; ++j) matrix[i * n + j] += static_cast<double>(counts[f][i] * counts[f][j]);
        }
    }
    for (size_t i = 0; i < n; ++i) trace += matrix[i * n + i];
    for (size_t i = 0; i < n; ++i) matrix[i * n + i] += 1e-9 * trace;
    std::vector<double> result = solve(std::move(matrix), std::move(right), n);
    for (double& energy : result) energy += per_atom;
    return result;
}

at::Tensor float_tensor(const std::vector<float>& values, std::vector<int64_t> shape, const at::Device& device) {
    return at::from_blob(const_cast<float*>(values.data()), shape, at::kFloat).clone().to(device);
}

}  // namespace

std::vector<double> radii_of_atoms(const ElementTable& elements, const std::vector<int32_t>& atomic_numbers) {
    std::vector<double> radii;
    if (elements.repulsion_radii.empty()) return radii;
    for (const int32_t number : atomic_numbers)
        radii.push_back(elements.repulsion_radii[static_cast<size_t>(elements.index_of(number))]);
    return radii;
}

ElementTable fit_elements(const FrameSet& set, double cutoff, double repulsion_factor) {
    std::vector<const LabelledFrame*> frames;
    std::set<int> numbers;
    for (const LabelledFrame& frame : set.frames) {
        if (frame.split != Split::train) continue;
        frames.push_back(&frame);
        numbers.insert(frame.atomic_numbers.begin(), frame.atomic_numbers.end());
    }
    if (frames.empty()) fail(Status::format, "the data have no usable training frame");
    ElementTable table;
    table.atomic_numbers.assign(numbers.begin(), numbers.end());
    if (repulsion_factor > 0)
        for (const int number : numbers) table.repulsion_radii.push_back(repulsion_factor * covalent_radius(number));

    const size_t n = numbers.size();
    std::vector<double> energies(frames.size()), square_sums(n * frames.size(), 0.0);
    std::vector<std::vector<int64_t>> counts(frames.size(), std::vector<int64_t>(n, 0));
    for_each_frame(static_cast<int64_t>(frames.size()), cutoff, [&](int64_t index, GraphMaker& maker) {
        const auto f = static_cast<size_t>(index);
        const LabelledFrame& frame = *frames[f];
        const FrameRepulsion repulsion =
            frame_repulsion(frame.view(), maker.make(frame.view()), radii_of_atoms(table, frame.atomic_numbers));
        energies[f] = frame.energy - repulsion.energy;
        for (size_t atom = 0; atom < frame.atomic_numbers.size(); ++atom) {
            const auto element = static_cast<size_t>(table.index_of(frame.atomic_numbers[atom]));
            ++counts[f][element];
            for (size_t k = 3 * atom; k < 3 * atom + 3; ++k)
                square_sums[n * f + element] += std::pow(frame.forces[k] - repulsion.forces[k], 2);
        }
    });
    table.atomic_energies = fit_atomic_energies(counts, energies, n);
    for (size_t element = 0; element < n; ++element) {
        double squares = 0, atoms = 0;
        for (size_t f = 0; f < frames.size(); ++f) {
            squares += square_sums[n * f + element];
            atoms += static_cast<double>(counts[f][element]);
        }
        table.scales.push_back(std::max(0.01, std::sqrt(squares / (3 * atoms))));  // eV/angstrom times 1 angstrom
    }
    return table;
}

std::vector<double> shortest_distances(const FrameSet& set, double cutoff, const ElementTable& elements) {
    const auto n = static_cast<size_t>(elements.size());
    std::vector<double> closest(n * n, INFINITY);
    GraphMaker maker(cutoff);
    for (const LabelledFrame& frame : set.frames) {
        if (frame.split != Split::train) continue;
        const FrameGraph graph = maker.make(frame.view());
        const auto element_of = [&](int32_t atom) {
            return static_cast<size_t>(elements.index_of(frame.atomic_numbers[static_cast<size_t>(atom)]));
        };
        for (size_t edge = 0; edge < graph.sender.size(); ++edge) {
            double& shortest = closest[element_of(graph.receiver[edge]) * n + element_of(graph.sender[edge])];
            const double* r = &graph.vectors[3 * edge];
            shortest = std::min(shortest, std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]));
        }
    }
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j) {
            double shortest =
                std::min(closest[i * n + j], closest[j * n + i]);  // the two directions may differ in the last bits
            if (!std::isfinite(shortest)) {
                const double radii = covalent_radius(elements.atomic_numbers[i]) +
                                     covalent_radius(elements.atomic_numbers[j]);  // 0: unknown
                shortest = radii > 0 ? std::min(radii, 0.5 * cutoff) : 0.5 * cutoff;
            }
            closest[i * n + j] = closest[j * n + i] = shortest;
        }
    return closest;
}

TrainingSet make_training_set(const FrameSet& set, Split split, const ModelShape& shape, const ElementTable& elements,
                              const at::Device& device, int64_t& unknown_elements) {
    std::vector<const LabelledFrame*> frames;
    bool has_stress = false;
    for (const LabelledFrame& frame : set.frames) {
        if (frame.split != split) continue;
        const bool is_known = std::all_of(frame.atomic_numbers.begin(), frame.atomic_numbers.end(),
                                          [&](int number) { return elements.index_of(number) >= 0; });
        if (!is_known) {
            ++unknown_elements;
            continue;
        }
        frames.push_back(&frame);
        has_stress = has_stress || (frame.stress && volume_of(frame.cell) > 0);
    }
    TrainingSet result;
    result.frame_count = static_cast<int64_t>(frames.size());
    std::vector<FrameGraph> graphs(frames.size());
    std::vector<FrameRepulsion> repulsions(frames.size());
    for_each_frame(result.frame_count, shape.cutoff, [&](int64_t index, GraphMaker& maker) {
        const auto f = static_cast<size_t>(index);
        graphs[f] = maker.make(frames[f]->view());
        repulsions[f] =
            frame_repulsion(frames[f]->view(), graphs[f], radii_of_atoms(elements, frames[f]->atomic_numbers));
    });

    std::vector<int64_t> atom_element;
    std::vector<float> force, vectors, energy, per_atom, stress, per_volume;
    result.first_atom.push_back(0);
    result.first_edge.push_back(0);
    for (size_t f = 0; f < frames.size(); ++f) {
        const LabelledFrame& frame = *frames[f];
        const FrameRepulsion& repulsion = repulsions[f];
        double rest = frame.energy - repulsion.energy;
        for (size_t atom = 0; atom < frame.atomic_numbers.size(); ++atom) {
            const int element = elements.index_of(frame.atomic_numbers[atom]);
            rest -= elements.atomic_energies[static_cast<size_t>(element)];
            atom_element.push_back(element);
            result.element.push_back(static_cast<uint8_t>(element));
            for (size_t k = 3 * atom; k < 3 * atom + 3; ++k)
                force.push_back(static_cast<float>(frame.forces[k] - repulsion.forces[k]));
        }
        energy.push_back(static_cast<float>(rest));
        per_atom.push_back(static_cast<float>(1.0 / static_cast<double>(frame.atom_count())));
        if (has_stress) {
            const double volume = volume_of(frame.cell);
            const bool is_known = frame.stress && volume > 0;
            per_volume.push_back(is_known ? static_cast<float>(1 / volume) : 0.0f);
            for (size_t k = 0; k < 9; ++k)
                stress.push_back(is_known ? static_cast<float>((*frame.stress)[k] - repulsion.virial[k] / volume)
                                          : 0.0f);
        }
        FrameGraph& graph = graphs[f];
        result.edge_receiver.insert(result.edge_receiver.end(), graph.receiver.begin(), graph.receiver.end());
        result.edge_sender.insert(result.edge_sender.end(), graph.sender.begin(), graph.sender.end());
        result.edge_reverse.insert(result.edge_reverse.end(), graph.reverse.begin(), graph.reverse.end());
        for (const double value : graph.vectors) vectors.push_back(static_cast<float>(value));
        graph = {};
        result.first_atom.push_back(static_cast<int64_t>(result.element.size()));
        result.first_edge.push_back(static_cast<int64_t>(result.edge_sender.size()));
        result.kind.push_back(frame.kind);
    }
    atom_element.push_back(elements.size());
    force.insert(force.end(), 3, 0.0f);
    energy.push_back(0);
    per_atom.push_back(1);
    vectors.insert(vectors.end(), {static_cast<float>(2 * shape.cutoff), 0.0f, 0.0f});

    const int64_t f = result.frame_count, a = result.first_atom.back(), e = result.first_edge.back();
    result.atom_element = at::from_blob(atom_element.data(), {a + 1}, at::kLong).clone().to(device);
    result.atom_force = float_tensor(force, {a + 1, 3}, device);
    result.edge_vector = float_tensor(vectors, {e + 1, 3}, device);
    result.frame_energy = float_tensor(energy, {f + 1, 1}, device);
    result.frame_per_atom = float_tensor(per_atom, {f + 1, 1}, device);
    if (has_stress) {
        stress.insert(stress.end(), 9, 0.0f);
        per_volume.push_back(0);
        result.frame_stress = float_tensor(stress, {f + 1, 9}, device);
        result.frame_per_volume = float_tensor(per_volume, {f + 1, 1}, device);
    }
    return result;
}

}  // namespace mlff::train
