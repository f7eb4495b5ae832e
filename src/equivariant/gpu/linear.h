// SPDX-License-Identifier: MIT
// Linear maps of the features of all atoms, and their transposes.
#pragma once

#include <cuda_runtime.h>

#include <span>
#include <vector>

#include "equivariant/edge_messages.h"
#include "equivariant/gpu/engine_names.h"
#include "equivariant/plan/row_layout.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::equivariant::gpu {

struct alignas(16) LinearStep {  // a part of one block of the source: one step of the product
    int32_t offset = 0, stride = 0, copies = 0;
};
struct LinearTarget {  // one block of the target
    int32_t offset = 0, stride = 0, components = 0;
    int32_t first_step = 0, step_count = 0;
    int64_t matrix = 0;  // offset of the packed matrices of all steps, for element 0
};
template <class Real>
struct LinearView {
    const LinearStep* steps = nullptr;
    const Real* matrices = nullptr;
    int64_t matrices_per_element = 0;  // 0: the same for all elements
};

template <class Real>
class DeviceLinear {
public:
    // A block of the map's irreps may be several blocks of the layouts `in` and `out`.
    DeviceLinear(const Linear& linear, const RowLayout& in, const RowLayout& out, cudaStream_t stream);

    // out = map(in), or += if `accumulate`
    void apply(const TilesView& tiles, RowsView<const Real> in, RowsView<Real> out, bool accumulate,
               cudaStream_t stream) const;
    // in_gradient = transposed map(out_gradient), or += if `accumulate`
    void apply_transposed(const TilesView& tiles, RowsView<const Real> out_gradient, RowsView<Real> in_gradient,
                          bool accumulate, cudaStream_t stream) const;

    // A map, or its transpose, and what it is applied to.
    struct Call {
        const DeviceLinear* map = nullptr;
        bool is_transposed = false;
        RowsView<const Real> in;
        const auto& direction() const { return is_transposed ? map->transposed_ : map->forward_; }
    };
    Call forward(RowsView<const Real> in) const { return {this, false, in}; }
    Call transposed(RowsView<const Real> out_gradient) const { return {this, true, out_gradient}; }
    struct Sum {
        std::span<const Call> calls;  // of maps with the same target
        RowsView<Real> out;
        bool accumulate = false;
    };
    // Several sums, which must not depend on each other: with few atoms, in one launch if possible.
    static void run(std::span<const Sum> sums, const TilesView& tiles, cudaStream_t stream);

private:
    struct Direction {
        LinearView<Real> view() const { return {steps.data(), matrices.data(), matrices_per_element}; }

        mlff::gpu::DeviceBuffer<LinearStep> steps;
        mlff::gpu::DeviceBuffer<Real> matrices;
        int64_t matrices_per_element = 0;
        std::vector<LinearTarget> targets;
    };
    enum class Shape { wide, medium, narrow };
    static Direction make_direction(const Linear& linear, const RowLayout& in, const RowLayout& out, bool transposed,
                                    cudaStream_t stream);
    static Shape choose_shape(const Direction& direction, const TilesView& tiles);
    static void run_tiled(const Call& call, RowsView<Real> out, bool accumulate, const TilesView& tiles,
                          cudaStream_t stream);

    Direction forward_, transposed_;
};

}  // namespace mlff::equivariant::gpu
