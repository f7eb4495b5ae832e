// SPDX-License-Identifier: MIT
// Rows of ghosts straight from the memory of the GPUs that have packed them, where all domains are on one machine. The
// caller's exchange brings addresses once for each list, and then only the news that rows are there. For CUDA sources
// only.
//
// Rows are packed in two places by turns. A domain that tells the others that it has packed the rows of turn n has read
// those of turn n - 1, since its stream is in order; it packs those of turn n + 1, where those of turn n - 1 were, when
// all that read them have told it about turn n.
#pragma once

#include <vector>

#include "gpu/engine/packed_rows.h"
#include "gpu/engine/step_halo.h"
#include "gpu/runtime/device_buffer.h"
#include "gpu/runtime/shared_allocation.h"
#include "potential/domain.h"

namespace mlff::gpu {

class SharedHalo : public StepHalo {
public:
    // For others to try whether they reach this one, and the other way round.
    const GpuAddress& address();
    void reach(const GpuAddress& address) { probes_.open(address); }

    // The stream has nothing to do. Exchanges addresses unless `list_version` is that of the last call; so must all
    // domains. Throws what reach() throws.
    void set(const Halo& halo, int64_t owned_count, int64_t most_row_bytes, int64_t list_version, cudaStream_t stream);
    void fill(void* rows, int64_t row_bytes, cudaStream_t stream) override;

private:
    void exchange_addresses(const Halo& halo, cudaStream_t stream);

    HaloExchange* exchange_ = nullptr;
    HaloSize size_;
    int64_t owned_count_ = 0, ghost_count_ = 0, list_version_ = 0;
    int turn_ = 0;
    SharedAllocation rows_;
    int64_t bytes_of_turn_ = 0;
    std::vector<SharedAllocation> replaced_, replaced_before_;  // others may still have them open
    OpenedAllocations opened_, probes_;
    SharedAllocation probe_;
    DeviceBuffer<int32_t> sent_atoms_, sources_;
    DeviceBuffer<RowPlace> places_;
    std::vector<uint32_t> news_sent_, news_received_;
};

}  // namespace mlff::gpu
