// SPDX-License-Identifier: MIT
#include "equivariant/gpu/gate.h"

#include "gpu/engine/atom_rows.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::equivariant::gpu {
namespace {

using mlff::gpu::launch;

// Launch of both kernels: one block per atom.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    gate_kernel(typename DeviceGate<Real>::View gate, const Real* in, Real* out) {
    mlff::gpu::await_predecessor();
    in += int64_t{blockIdx.x} * gate.in_size;
    out += int64_t{blockIdx.x} * gate.out_size;
    for (int k = static_cast<int>(threadIdx.x); k < gate.out_size; k += kBlockThreads) out[k] = Real(0);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < gate.scalar_count; i += kBlockThreads) {
        const auto scalar = gate.scalars[i];
        out[scalar.to] = static_cast<Real>(activate(gate.activation_of(scalar), static_cast<double>(in[scalar.from])));
    }
    for (int i = static_cast<int>(threadIdx.x); i < gate.gated_count; i += kBlockThreads) {
        const auto gated = gate.gated[i];
        const Real value = static_cast<Real>(activate(gate.gate_activation, static_cast<double>(in[gated.gate])));
        for (int m = 0; m < gated.components; ++m)
            out[gated.to + m * gated.to_stride] = value * in[gated.from + m * gated.from_stride];
    }
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    reverse_gate_kernel(typename DeviceGate<Real>::View gate, const Real* in, const Real* out_gradient,
                        Real* in_gradient) {
    mlff::gpu::await_predecessor();
    in += int64_t{blockIdx.x} * gate.in_size;
    in_gradient += int64_t{blockIdx.x} * gate.in_size;
    out_gradient += int64_t{blockIdx.x} * gate.out_size;
    for (int k = static_cast<int>(threadIdx.x); k < gate.in_size; k += kBlockThreads) in_gradient[k] = Real(0);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < gate.scalar_count; i += kBlockThreads) {
        const auto scalar = gate.scalars[i];
        in_gradient[scalar.from] =
            out_gradient[scalar.to] *
            static_cast<Real>(activation_slope(gate.activation_of(scalar), static_cast<double>(in[scalar.from])));
    }
    for (int i = static_cast<int>(threadIdx.x); i < gate.gated_count; i += kBlockThreads) {
        const auto gated = gate.gated[i];
        const auto x = static_cast<double>(in[gated.gate]);
        const Real value = static_cast<Real>(activate(gate.gate_activation, x));
        Real sum = 0;
        for (int m = 0; m < gated.components; ++m) {
            const Real gradient = out_gradient[gated.to + m * gated.to_stride];
            sum += gradient * in[gated.from + m * gated.from_stride];
            in_gradient[gated.from + m * gated.from_stride] = value * gradient;
        }
        in_gradient[gated.gate] = sum * static_cast<Real>(activation_slope(gate.gate_activation, x));
    }
}

}  // namespace

template <class Real>
DeviceGate<Real>::DeviceGate(const GatePlan<Real>& plan, cudaStream_t stream) {
    std::vector<Scalar> scalars;
    std::vector<Gated> gated;
    int out_block = 0;
    for (int count = 0; count < plan.gate.scalar_count; ++out_block) {
        const RowBlock& block = plan.out_layout.blocks[static_cast<size_t>(out_block)];
        const bool is_odd = plan.gate.out[out_block].irrep.parity < 0;
        for (int u = 0; u < block.copies; ++u)
            scalars.push_back({plan.scalar_at[scalars.size()], block.offset + u, is_odd});
        count += block.copies;
    }
    const size_t gate_blocks = plan.in_layout.blocks.size() - plan.out_layout.blocks.size();
    for (auto block = static_cast<size_t>(out_block); block < plan.out_layout.blocks.size(); ++block) {
        const RowBlock &in = plan.in_layout.blocks[block + gate_blocks], &out = plan.out_layout.blocks[block];
        for (int u = 0; u < out.copies; ++u)
            gated.push_back({plan.gate_at(static_cast<int>(gated.size())), in.offset + u, in.stride, out.offset + u,
                             out.stride, out.components});
    }
    upload(scalars_, scalars, stream);
    upload(gated_, gated, stream);
    const Gate& gate = plan.gate;
    view_ = {
        scalars_.data(),     gated_.data(),        static_cast<int>(scalars.size()), static_cast<int>(gated.size()),
        plan.in_layout.size, plan.out_layout.size, gate.scalar_activation,           gate.odd_scalar_activation,
        gate.gate_activation};
}

template <class Real>
void DeviceGate<Real>::apply(int64_t atom_count, const Real* in, Real* out, cudaStream_t stream) const {
    if (atom_count > 0) launch("a gate", gate_kernel<Real>, atom_count, kBlockThreads, stream, view_, in, out);
}

template <class Real>
void DeviceGate<Real>::reverse(int64_t atom_count, const Real* in, const Real* out_gradient, Real* in_gradient,
                               cudaStream_t stream) const {
    if (atom_count > 0)
        launch("reversing a gate", reverse_gate_kernel<Real>, atom_count, kBlockThreads, stream, view_, in,
               out_gradient, in_gradient);
}

template class DeviceGate<float>;
template class DeviceGate<double>;

}  // namespace mlff::equivariant::gpu
