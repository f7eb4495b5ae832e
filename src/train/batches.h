// SPDX-License-Identifier: MIT
// Groups frames into batches, and makes the index lists that select them from a TrainingSet on the device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/model.h"
#include "train/training_set.h"

namespace mlff::train {

// Frames, atoms and edges of a batch; used as limits, or as the padded size of all batches.
struct BatchSize {
    int64_t frames = 0, atoms = 0, edges = 0;
};

// Limits that almost every random batch of `frames` frames fits (mean + 3 standard deviations). The largest frame
// always fits.
BatchSize fitting_size(const TrainingSet& set, int64_t frames);

// Frames in random order, epoch after epoch. A batch takes frames until one does not fit; that one is first in the next
// batch. So every frame is used once per epoch. The whole state is two numbers.
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

// All frames in their original order, in batches within the limit.
std::vector<std::vector<int64_t>> batches_in_order(const TrainingSet& set, std::span<const int64_t> frames,
                                                   const BatchSize& limit);

// Offsets of the lists of a batch in one int64 array, so that one copy brings them to the device.
struct BatchLayout {
    BatchSize size;
    int64_t total() const { return size.frames + 1 + 3 * size.atoms + 1 + 4 * size.edges; }
};
BatchSize size_of(const TrainingSet& set, std::span<const int64_t> frames);
// `size` must be large enough for the frames. Padding: extra atoms belong to frame slot `size.frames`. Extra edges
// carry no message, and are spread over all atoms so that no atom has many of them.
void write_indices(const TrainingSet& set, std::span<const int64_t> frames, const BatchSize& size, int64_t* indices);

struct Batch {
    AtomGraph graph;
    at::Tensor frame_of_atom;       // int64 [atoms]
    at::Tensor edge_vector;         // [edges][3]
    at::Tensor energy, per_atom;    // [frames + 1][1]
    at::Tensor force;               // [atoms][3]
    at::Tensor stress, per_volume;  // or undefined
};

// Gathers batches on the device. Only launches work there, without waiting.
class BatchMaker {
public:
    // `uses_kernels`: use message_kernels.h instead of tensor operations.
    BatchMaker(const TrainingSet& set, const ModelShape& shape, const ElementTable& elements, bool uses_kernels);
    Batch make(const at::Tensor& indices, const BatchSize& size) const;  // `indices` on the device

private:
    const TrainingSet& set_;
    bool uses_kernels_;
    EdgeFunctions functions_;
    at::Tensor one_hot_, scale_;  // [elements + 1][...], zero for padding
};

}  // namespace mlff::train
