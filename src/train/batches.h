// SPDX-License-Identifier: MIT
// Which frames go together, and the index lists that pick them out of a TrainingSet on the device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/model.h"
#include "train/training_set.h"

namespace mlff::train {

// Frames, atoms and edges of a batch; as limits, or as what all batches are padded to.
struct BatchSize {
    int64_t frames = 0, atoms = 0, edges = 0;
};

// Limits that nearly every batch of `frames` drawn at random fits (mean + 3 standard deviations), and the largest frame
// in any case.
BatchSize fitting_size(const TrainingSet& set, int64_t frames);

// Frames in random order, epoch after epoch; a batch takes frames until one does not fit, which is the first of the
// next batch: every frame is used once in each epoch. The whole state is two numbers.
class FrameOrder {
public:
    FrameOrder(const TrainingSet& set, uint64_t seed);
    std::vector<int64_t> next(const BatchSize& limit);

    int64_t epoch() const { return epoch_; }
    int64_t position() const { return position_; }
    void restore(int64_t epoch, int64_t position);

private:
    void shuffle();
    const TrainingSet& set_;
    uint64_t seed_;
    int64_t epoch_ = 0, position_ = 0;
    std::vector<int64_t> order_;
};

// All frames in their own order, in batches within the limit.
std::vector<std::vector<int64_t>> batches_in_order(const TrainingSet& set, std::span<const int64_t> frames,
                                                   const BatchSize& limit);

// Where the lists of a batch lie in one array of int64, so that one copy brings them to the device.
struct BatchLayout {
    BatchSize size;
    int64_t total() const { return size.frames + 1 + 3 * size.atoms + 1 + 4 * size.edges; }
};
BatchSize size_of(const TrainingSet& set, std::span<const int64_t> frames);
// `size` must hold the frames. Padding: atoms past the last belong to the frame slot `size.frames`; edges past the last
// carry nothing and go round over all atoms, so that none of them is hit by many.
void write_indices(const TrainingSet& set, std::span<const int64_t> frames, const BatchSize& size, int64_t* indices);

struct Batch {
    AtomGraph graph;
    at::Tensor frame_of_atom;       // int64 [atoms]
    at::Tensor edge_vector;         // [edges][3]
    at::Tensor energy, per_atom;    // [frames + 1][1]
    at::Tensor force;               // [atoms][3]
    at::Tensor stress, per_volume;  // or undefined
};

// Gathers batches on the device; only launches work there, and waits for nothing.
class BatchMaker {
public:
    // `uses_kernels`: message_kernels.h in place of tensor operations.
    BatchMaker(const TrainingSet& set, const ModelShape& shape, const ElementTable& elements, bool uses_kernels);
    Batch make(const at::Tensor& indices, const BatchSize& size) const;  // `indices` on the device

private:
    const TrainingSet& set_;
    bool uses_kernels_;
    EdgeFunctions functions_;
    at::Tensor one_hot_, scale_;  // [elements + 1][...], zero for padding
};

}  // namespace mlff::train
