// SPDX-License-Identifier: MIT
// Fills the rows of ghosts through the caller's exchange: packs the rows of own atoms that other domains need,
// exchanges them in host memory (or in device memory, if the exchange takes that), and unpacks the received rows. Only
// rows for other domains leave the device. For CUDA sources only.
#pragma once

#include "gpu/engine/buffer_list.h"
#include "gpu/engine/step_halo.h"
#include "gpu/runtime/device_buffer.h"
#include "potential/domain.h"

namespace mlff::gpu {

class StagedHalo : public StepHalo {
public:
    // `most_row_bytes`: the largest `row_bytes` of any fill().
    void list_buffers(BufferList& list, const HaloSize& size, int64_t most_row_bytes);

    // Memory must have been reserved, and the stream must be idle. `list_version` as in Domain.
    void set(const Halo& halo, int64_t owned_count, int64_t most_row_bytes, int64_t list_version, cudaStream_t stream);
    void fill(void* rows, int64_t row_bytes, cudaStream_t stream) override;

private:
    HaloExchange* exchange_ = nullptr;
    bool is_staged_ = true;  // through the host
    HaloSize size_;
    int64_t owned_count_ = 0, ghost_count_ = 0;
    int64_t list_version_ = 0;  // of the next two
    // Not in the list of buffers, because those lose their contents when they grow.
    DeviceBuffer<int32_t> sent_atoms_, sources_;
    DeviceBuffer<unsigned char> sent_, received_;
    PinnedBuffer<unsigned char> host_sent_, host_received_;
};

}  // namespace mlff::gpu
