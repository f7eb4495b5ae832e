// SPDX-License-Identifier: MIT
#include "train/batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "core/error.h"

namespace mlff::train {
namespace {

int64_t limit_of(const TrainingSet& set, int64_t frames, const std::vector<int64_t>& first) {
    double sum = 0, squares = 0;
    int64_t largest = 1;
    for (size_t f = 0; f + 1 < first.size(); ++f) {
        const int64_t count = first[f + 1] - first[f];
        largest = std::max(largest, count);
        sum += static_cast<double>(count);
        squares += static_cast<double>(count) * static_cast<double>(count);
    }
    const auto n = static_cast<double>(set.frame_count), m = static_cast<double>(frames);
    const double mean = sum / n, variance = std::max(0.0, squares / n - mean * mean);
    const auto limit = static_cast<int64_t>(std::ceil(m * mean + 3 * std::sqrt(m * variance)));
    return (std::max(limit, largest) + 31) / 32 * 32;  // multiples of 32 rows suit the matrix products
}

class Gathering {
public:
    explicit Gathering(const BatchSize& limit) : limit_(limit) {}
    bool fits(int64_t atoms, int64_t edges) const {
        return size_.frames + 1 <= limit_.frames && size_.atoms + atoms <= limit_.atoms &&
               size_.edges + edges <= limit_.edges;
    }
    void add(int64_t atoms, int64_t edges) { size_ = {size_.frames + 1, size_.atoms + atoms, size_.edges + edges}; }

private:
    BatchSize limit_, size_;
};

}  // namespace

BatchSize fitting_size(const TrainingSet& set, int64_t frames) {
    frames = std::min(frames, set.frame_count);
    return {frames, limit_of(set, frames, set.first_atom), limit_of(set, frames, set.first_edge)};
}

FrameOrder::FrameOrder(const TrainingSet& set, uint64_t seed) : set_(set), seed_(seed) { shuffle(); }

void FrameOrder::shuffle() {
    order_.resize(static_cast<size_t>(set_.frame_count));
    std::iota(order_.begin(), order_.end(), 0);
    std::mt19937_64 bits(seed_ * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(epoch_));
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[bits() % i]);
}

std::vector<int64_t> FrameOrder::next(const BatchSize& limit) {
    std::vector<int64_t> frames;
    Gathering gathering(limit);
    while (true) {
        const int64_t frame = order_[static_cast<size_t>(position_)];
        if (!gathering.fits(set_.atoms_of(frame), set_.edges_of(frame))) break;
        gathering.add(set_.atoms_of(frame), set_.edges_of(frame));
        frames.push_back(frame);
        if (++position_ == set_.frame_count) {
            position_ = 0;
            ++epoch_;
            shuffle();
        }
    }
    if (frames.empty()) fail(Status::internal, "a frame does not fit an empty batch");
    return frames;
}

void FrameOrder::restore(int64_t epoch, int64_t position) {
    if (epoch < 0 || position < 0 || position >= set_.frame_count)
        fail(Status::format, "the checkpoint belongs to different training data");
    epoch_ = epoch;
    position_ = position;
    shuffle();
}

std::vector<std::vector<int64_t>> batches_in_order(const TrainingSet& set, std::span<const int64_t> frames,
                                                   const BatchSize& limit) {
    std::vector<std::vector<int64_t>> batches;
    Gathering gathering(limit);
    for (const int64_t frame : frames) {
        if (batches.empty() || !gathering.fits(set.atoms_of(frame), set.edges_of(frame))) {
            batches.emplace_back();
            gathering = Gathering(limit);
        }
        gathering.add(set.atoms_of(frame), set.edges_of(frame));
        batches.back().push_back(frame);
    }
    return batches;
}

BatchSize size_of(const TrainingSet& set, std::span<const int64_t> frames) {
    BatchSize size;
    for (const int64_t frame : frames)
        size = {size.frames + 1, size.atoms + set.atoms_of(frame), size.edges + set.edges_of(frame)};
    return size;
}

void write_indices(const TrainingSet& set, std::span<const int64_t> frames, const BatchSize& size, int64_t* indices) {
    int64_t* frame_row = indices;
    int64_t* atom_row = frame_row + size.frames + 1;
    int64_t* frame_of_atom = atom_row + size.atoms;
    int64_t* edge_row = frame_of_atom + size.atoms;
    int64_t* receiver = edge_row + size.edges;
    int64_t* sender = receiver + size.edges;
    int64_t* reverse = sender + size.edges;
    int64_t* first_of_atom = reverse + size.edges;
    int64_t atoms = 0, edges = 0;
    for (size_t slot = 0; slot < frames.size(); ++slot) {
        const int64_t frame = frames[slot];
        frame_row[slot] = frame;
        const auto f = static_cast<size_t>(frame);
        const int64_t frame_edges = edges;
        for (int64_t edge = set.first_edge[f]; edge < set.first_edge[f + 1]; ++edge, ++edges) {
            edge_row[edges] = edge;
            reverse[edges] = frame_edges + set.edge_reverse[static_cast<size_t>(edge)];
            receiver[edges] = atoms + set.edge_receiver[static_cast<size_t>(edge)];
            sender[edges] = atoms + set.edge_sender[static_cast<size_t>(edge)];
        }
        for (int64_t atom = set.first_atom[f]; atom < set.first_atom[f + 1]; ++atom, ++atoms) {
            atom_row[atoms] = atom;
            frame_of_atom[atoms] = static_cast<int64_t>(slot);
        }
    }
    std::fill(frame_row + frames.size(), frame_row + size.frames + 1, set.frame_count);
    std::fill(first_of_atom, first_of_atom + size.atoms + 1, edges);
    for (int64_t edge = edges; edge-- > 0;) first_of_atom[receiver[edge]] = edge;
    for (int64_t atom = atoms; atom-- > 0;)
        first_of_atom[atom] = std::min(first_of_atom[atom], first_of_atom[atom + 1]);  // atoms without edges
    for (; atoms < size.atoms; ++atoms) {
        atom_row[atoms] = set.first_atom.back();
        frame_of_atom[atoms] = size.frames;
    }
    for (; edges < size.edges; ++edges) {
        edge_row[edges] = set.first_edge.back();
        reverse[edges] = edges;
        receiver[edges] = sender[edges] = edges % size.atoms;
    }
}

BatchMaker::BatchMaker(const TrainingSet& set, const ModelShape& shape, const ElementTable& elements, bool uses_kernels)
    : set_(set), uses_kernels_(uses_kernels), functions_(shape, elements, set.edge_vector.options()) {
    const int64_t n = elements.size();
    at::Tensor one_hot = at::zeros({n + 1, n}, at::kFloat), scale = at::zeros({n + 1, 1}, at::kFloat);
    for (int64_t element = 0; element < n; ++element) {
        one_hot[element][element] = 1;
        scale[element][0] = elements.scales[static_cast<size_t>(element)];
    }
    one_hot_ = one_hot.to(set.edge_vector.device());
    scale_ = scale.to(set.edge_vector.device());
}

Batch BatchMaker::make(const at::Tensor& indices, const BatchSize& size) const {
    const at::NoGradGuard no_grad;
    const auto parts = indices.split_with_sizes(
        {size.frames + 1, size.atoms, size.atoms, size.edges, size.edges, size.edges, size.edges, size.atoms + 1});
    Batch batch;
    batch.energy = set_.frame_energy.index_select(0, parts[0]);
    batch.per_atom = set_.frame_per_atom.index_select(0, parts[0]);
    if (set_.frame_stress.defined()) {
        batch.stress = set_.frame_stress.index_select(0, parts[0]);
        batch.per_volume = set_.frame_per_volume.index_select(0, parts[0]);
    }
    batch.force = set_.atom_force.index_select(0, parts[1]);
    batch.frame_of_atom = parts[2];
    batch.edge_vector = set_.edge_vector.index_select(0, parts[3]);
    batch.graph.lists = {parts[5], parts[4], parts[7], parts[6], uses_kernels_};
    const at::Tensor element = set_.atom_element.index_select(0, parts[1]);
    batch.graph.element_one_hot = one_hot_.index_select(0, element);
    batch.graph.scale = scale_.index_select(0, element);
    functions_.compute(batch.edge_vector, batch.graph);
    return batch;
}

}  // namespace mlff::train
