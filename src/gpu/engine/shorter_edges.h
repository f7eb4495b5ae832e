// SPDX-License-Identifier: MIT
// Selects the edges of a step that are within a shorter cutoff, for terms of a sum. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include "gpu/engine/buffer_list.h"
#include "gpu/engine/step_edges.h"
#include "gpu/neighbors/exclusive_scan.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::gpu {

class ShorterStepEdges {
public:
    void list_buffers(BufferList& list, int64_t atom_count, int64_t edge_count);
    // May be captured in a graph. Give it the edges with ghosts, if there are any. The result has the atom count and
    // elements of `edges`.
    StepEdges enqueue(const StepEdges& edges, double cutoff, cudaStream_t stream);

private:
    ExclusiveScan scan_;
    DeviceBuffer<int32_t> count_, sender_;
    DeviceBuffer<int64_t> first_, new_index_, reverse_;
    DeviceBuffer<double> vector_, distance_;
};

}  // namespace mlff::gpu
