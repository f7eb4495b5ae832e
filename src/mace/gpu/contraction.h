// SPDX-License-Identifier: MIT
// The symmetric contraction of all atoms. A block handles 32 channels of some atoms of one element; its warps divide
// the monomials among them.
#pragma once

#include <cuda_runtime.h>

#include "gpu/runtime/device_buffer.h"
#include "mace/gpu/engine_names.h"
#include "mace/gpu/monomials.h"
#include "mace/plan/contraction.h"

namespace mlff::mace::gpu {

template <class Real>
class DeviceContraction {
public:
    DeviceContraction(const plan::Contraction<Real>& contraction, int element_count, cudaStream_t stream);

    void prepare(const std::vector<int>& elements, cudaStream_t stream);  // after prepare() of the host's contraction

    void apply(const TilesView& tiles, RowsView<const Real> in, RowsView<Real> out, cudaStream_t stream) const;
    // Overwrites in_gradient.
    void reverse(const TilesView& tiles, RowsView<const Real> in, RowsView<const Real> out_gradient,
                 RowsView<Real> in_gradient, cudaStream_t stream) const;

    struct OfElement {
        const Monomial* monomials = nullptr;
        const Real* coefficients = nullptr;          // [channel / kLanes][monomial][kLanes]
        const Real* pattern_coefficients = nullptr;  // [channel / kLanes][group][kLanes][4]; null: not in the pattern
    };
    struct View {
        const OfElement* elements = nullptr;
        const MonomialPath* paths = nullptr;  // [group_count + 1]
        int monomial_count = 0, group_count = 0, depth = 0;
        int in_row_count = 0, out_row_count = 0, stride = 0;
        bool is_in_pattern = false;
    };

private:
    View view() const;

    const plan::Contraction<Real>& host_;
    MonomialList list_;
    std::vector<int32_t> pattern_;  // MonomialList::in_pattern; empty in double precision, whose registers are too few
    mlff::gpu::DeviceBuffer<MonomialPath> paths_;
    std::vector<mlff::gpu::DeviceBuffer<Monomial>> monomials_;         // [element]
    std::vector<mlff::gpu::DeviceBuffer<Real>> coefficients_;          // [element]
    std::vector<mlff::gpu::DeviceBuffer<Real>> pattern_coefficients_;  // [element]
    mlff::gpu::DeviceBuffer<OfElement> elements_;
};

}  // namespace mlff::mace::gpu
