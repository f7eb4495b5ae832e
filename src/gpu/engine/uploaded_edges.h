// SPDX-License-Identifier: MIT
// Edges of a batch that the host has found, on the device.
#pragma once

#include <cuda_runtime.h>

#include "gpu/engine/buffer_list.h"
#include "gpu/runtime/device_buffer.h"
#include "neighbors/neighbor_list.h"

namespace mlff::gpu {

class UploadedEdges {
public:
    void list_buffers(BufferList& list, int64_t atom_count, int64_t edge_count) {
        list.add(first_, atom_count + 1, kPurpose);
        list.add(sender_, edge_count, kPurpose);
        list.add(vector_, 3 * edge_count, kPurpose);
        list.add(distance_, edge_count, kPurpose);
        list.add(reverse_, edge_count, kPurpose);
    }

    // `edges` has vectors, distances and reverse edges. Memory must have been reserved. Waits for the stream.
    void upload(const Edges& edges, cudaStream_t stream) {
        first_.upload(edges.first, edges.atom_count + 1, kPurpose, stream);
        sender_.upload(edges.sender, edges.edge_count, kPurpose, stream);
        vector_.upload(edges.vector, 3 * edges.edge_count, kPurpose, stream);
        distance_.upload(edges.distance, edges.edge_count, kPurpose, stream);
        reverse_.upload(edges.reverse, edges.edge_count, kPurpose, stream);
    }

    const int64_t* first() const { return first_.data(); }
    const int32_t* sender() const { return sender_.data(); }
    const double* vector() const { return vector_.data(); }
    const double* distance() const { return distance_.data(); }
    const int64_t* reverse() const { return reverse_.data(); }

private:
    static constexpr const char* kPurpose = "the edges";
    DeviceBuffer<int64_t> first_, reverse_;
    DeviceBuffer<int32_t> sender_;
    DeviceBuffer<double> vector_, distance_;
};

}  // namespace mlff::gpu
