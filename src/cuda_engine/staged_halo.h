// SPDX-License-Identifier: MIT
// Rows of ghosts on the device: what other domains want of own atoms is packed in the order in which it is sent, exchanged, and unpacked. On its way it goes
// through memory of the host, unless the exchange takes that of the device. Only rows that travel leave it. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda_engine/buffer_list.h"
#include "device/device_buffer.h"
#include "engine/domain.h"

namespace mlff::cuda {

struct HaloSize {
    int64_t sent = 0, received = 0, ghosts = 0;  // rows

    bool covers(const HaloSize& other) const { return sent >= other.sent && received >= other.received && ghosts >= other.ghosts; }
};

class StagedHalo {
public:
    // `most_row_bytes`: of the largest rows that are filled.
    void list_buffers(BufferList& list, const HaloSize& size, int64_t most_row_bytes);

    // Memory must have been reserved. Waits for the stream.
    void set(const Halo& halo, int64_t owned_count, int64_t most_row_bytes, cudaStream_t stream);

    // Overwrites the rows of ghosts with those of their owners. `rows` is [atom][row_bytes], a multiple of 4, on the device. Waits for the stream.
    void fill(void* rows, int64_t row_bytes, cudaStream_t stream);

private:
    HaloExchange* exchange_ = nullptr;
    bool is_staged_ = true;  // through the host
    HaloSize size_;
    int64_t owned_count_ = 0;
    DeviceBuffer<int32_t> sent_atoms_, sources_;
    DeviceBuffer<unsigned char> sent_, received_;
    PinnedBuffer<unsigned char> host_sent_, host_received_;
};

}  // namespace mlff::cuda
