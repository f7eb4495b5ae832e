// SPDX-License-Identifier: MIT
// The symmetric contraction of all atoms: the tree of monomials of the CPU backend, a thread for each channel, coefficients loaded
// once for several atoms of an element.
#pragma once

#include <cuda_runtime.h>

#include "device/device_buffer.h"
#include "mace/cpu/contraction.h"
#include "mace/cuda/atom_rows.h"

namespace mlff::mace::cuda {

template <class Real>
class DeviceContraction {
public:
    DeviceContraction(const cpu::Contraction<Real>& contraction, int element_count, cudaStream_t stream);

    void prepare(const std::vector<int>& elements, cudaStream_t stream);  // which the host's contraction has prepared

    void apply(const TilesView& tiles, RowsView<const Real> in, RowsView<Real> out, cudaStream_t stream) const;
    // in_gradient is overwritten.
    void reverse(const TilesView& tiles, RowsView<const Real> in, RowsView<const Real> out_gradient, RowsView<Real> in_gradient, cudaStream_t stream) const;

    struct View {
        cpu::Polynomial polynomial;         // of device pointers
        const Real* const* coefficients = nullptr;  // [element] -> [channel / 16][coefficient][16]
        int stride = 0;
    };

private:
    View view() const;

    const cpu::Contraction<Real>& host_;
    mlff::cuda::DeviceBuffer<cpu::PolynomialNode> nodes_;
    mlff::cuda::DeviceBuffer<int32_t> leaf_rows_, roots_;
    std::vector<mlff::cuda::DeviceBuffer<Real>> coefficients_;  // [element]
    mlff::cuda::DeviceBuffer<const Real*> coefficient_rows_;    // [element]
};

}  // namespace mlff::mace::cuda
