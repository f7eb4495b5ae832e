// SPDX-License-Identifier: MIT
// Reads the rows of ghosts directly in the memory of the GPUs that have packed them. All domains must be on one
// machine. The caller's exchange brings addresses once for each list; after that it only synchronises. For CUDA sources
// only.
//
// Rows are packed into two buffers alternately, so that one exchange per fill is enough. Before a domain calls the
// exchange of turn n, its stream has finished reading the rows of turn n - 1. So when the exchange of turn n has
// returned, all readers are done with turn n - 1, and turn n + 1 may overwrite its buffer.
#pragma once

#include "gpu/engine/packed_rows.h"
#include "gpu/engine/returned_rows.h"
#include "gpu/engine/shared_rows.h"
#include "gpu/engine/step_halo.h"
#include "gpu/runtime/device_buffer.h"
#include "potential/domain.h"

namespace mlff::gpu {

class SharedHalo : public StepHalo {
public:
    SharedRows& rows() { return rows_; }

    // The stream must be idle. Exchanges addresses unless `list_version` is that of the last call, so all domains must
    // change it together. Throws what SharedRows::reach() throws.
    void set(const Halo& halo, int64_t owned_count, int64_t most_row_bytes, int64_t list_version, cudaStream_t stream);
    void fill(void* rows, int64_t row_bytes, cudaStream_t stream) override;
    bool can_add_back() const override { return can_add_back_; }
    void add_back(float* rows, int64_t row_size, cudaStream_t stream) override;

private:
    HaloSize size_;
    int64_t owned_count_ = 0, ghost_count_ = 0, list_version_ = 0;
    SharedRows rows_{SharedIn::gpu};
    DeviceBuffer<int32_t> sent_atoms_, sources_;
    DeviceBuffer<RowPlace> places_, places_of_returns_;
    bool can_add_back_ = false;
    ReturnedRows returned_;
};

}  // namespace mlff::gpu
