// SPDX-License-Identifier: MIT
// Fills the rows of ghosts: packs the rows of own atoms that other domains need, brings them there, and unpacks the
// received rows. The caller's exchange brings them, in host memory or in device memory, if it takes that; or they go
// through host memory that the domains share. Only rows for other domains leave the device. For CUDA sources only.
#pragma once

#include <memory>

#include "gpu/engine/buffer_list.h"
#include "gpu/engine/returned_rows.h"
#include "gpu/engine/row_window.h"
#include "gpu/engine/step_halo.h"
#include "gpu/runtime/device_buffer.h"
#include "potential/domain.h"

namespace mlff::gpu {

class StagedHalo : public StepHalo {
public:
    // `most_row_bytes`: the largest `row_bytes` of any fill().
    void list_buffers(BufferList& list, const HaloSize& size, int64_t most_row_bytes);

    // Of RowTransport::window.
    SharedRows& window_rows() { return window().rows(); }

    // Memory must have been reserved, and the stream must be idle. `list_version` as in Domain.
    void set(const Halo& halo, int64_t owned_count, int64_t most_row_bytes, int64_t list_version, cudaStream_t stream);
    void fill(void* rows, int64_t row_bytes, cudaStream_t stream) override;
    bool can_add_back() const override { return can_add_back_; }
    void add_back(float* rows, int64_t row_size, cudaStream_t stream) override;

private:
    RowWindow& window();
    void require_room(int64_t row_bytes) const;
    // From sent_ to received_ or, back, from received_ to sent_.
    void move(bool is_back, int64_t row_bytes, cudaStream_t stream);

    HaloExchange* exchange_ = nullptr;
    RowTransport transport_ = RowTransport::host;
    HaloSize size_;
    int64_t owned_count_ = 0, ghost_count_ = 0;
    int64_t list_version_ = 0;  // of the next two and of the window
    // Not in the list of buffers, because those lose their contents when they grow.
    DeviceBuffer<int32_t> sent_atoms_, sources_;
    bool can_add_back_ = false;
    ReturnedRows returned_;
    std::unique_ptr<RowWindow> window_;  // when it is first used: most sessions have no need of its stream
    DeviceBuffer<unsigned char> sent_, received_;
    PinnedBuffer<unsigned char> host_sent_, host_received_;
};

}  // namespace mlff::gpu
