// SPDX-License-Identifier: MIT
// Rows of ghosts through the caller's exchange: what other domains want of own atoms is packed in the order in which it
// is sent, exchanged in memory of the host (or of the device, where the exchange takes that), and unpacked. Only rows
// that travel leave the device. For CUDA sources only.
#pragma once

#include "gpu/engine/buffer_list.h"
#include "gpu/engine/step_halo.h"
#include "gpu/runtime/device_buffer.h"
#include "potential/domain.h"

namespace mlff::gpu {

class StagedHalo : public StepHalo {
public:
    // `most_row_bytes`: of the largest rows that are filled.
    void list_buffers(BufferList& list, const HaloSize& size, int64_t most_row_bytes);

    // Memory must have been reserved, and the stream has nothing to do. `list_version` as in Domain.
    void set(const Halo& halo, int64_t owned_count, int64_t most_row_bytes, int64_t list_version, cudaStream_t stream);
    void fill(void* rows, int64_t row_bytes, cudaStream_t stream) override;

private:
    HaloExchange* exchange_ = nullptr;
    bool is_staged_ = true;  // through the host
    HaloSize size_;
    int64_t owned_count_ = 0, ghost_count_ = 0;
    int64_t list_version_ = 0;  // of what is in these two, which are not in the list of buffers: those forget
    DeviceBuffer<int32_t> sent_atoms_, sources_;
    DeviceBuffer<unsigned char> sent_, received_;
    PinnedBuffer<unsigned char> host_sent_, host_received_;
};

}  // namespace mlff::gpu
