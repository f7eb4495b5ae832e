// SPDX-License-Identifier: MIT
#include "nequip/gpu/norm.h"

#include "gpu/engine/atom_rows.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::nequip::gpu {
namespace {

using mlff::gpu::kBlockThreads;
using mlff::gpu::kWarps;
using mlff::gpu::launch;
using mlff::gpu::sum_over_block;

// Launch of both kernels: one block per atom.

// 1 / sqrt(s + epsilon), for all threads.
template <class Real>
__device__ double inverse_root(const typename DeviceNorm<Real>::View& norm, const Real* in, double* partial) {
    double sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < norm.size; i += kBlockThreads)
        sum += norm.share[i] * static_cast<double>(in[i]) * static_cast<double>(in[i]);
    return 1 / sqrt(sum_over_block(sum, partial) + norm.epsilon);
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    norm_kernel(typename DeviceNorm<Real>::View norm, const Real* in, Real* out) {
    mlff::gpu::await_predecessor();
    __shared__ double partial[kWarps];
    in += int64_t{blockIdx.x} * norm.size;
    out += int64_t{blockIdx.x} * norm.size;
    const double inverse = inverse_root<Real>(norm, in, partial);
    for (int i = static_cast<int>(threadIdx.x); i < norm.size; i += kBlockThreads)
        out[i] = static_cast<Real>(norm.scale[i] * inverse) * in[i];
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    reverse_norm_kernel(typename DeviceNorm<Real>::View norm, const Real* in, Real* gradient) {
    mlff::gpu::await_predecessor();
    __shared__ double partial[kWarps], partial_dot[kWarps];
    in += int64_t{blockIdx.x} * norm.size;
    gradient += int64_t{blockIdx.x} * norm.size;
    const double inverse = inverse_root<Real>(norm, in, partial);
    double dot = 0;
    for (int i = static_cast<int>(threadIdx.x); i < norm.size; i += kBlockThreads)
        dot += norm.scale[i] * static_cast<double>(in[i]) * static_cast<double>(gradient[i]);
    dot = sum_over_block(dot, partial_dot) * inverse * inverse * inverse;
    for (int i = static_cast<int>(threadIdx.x); i < norm.size; i += kBlockThreads)
        gradient[i] = static_cast<Real>(norm.scale[i] * inverse * static_cast<double>(gradient[i]) -
                                        dot * norm.share[i] * static_cast<double>(in[i]));
}

}  // namespace

template <class Real>
DeviceNorm<Real>::DeviceNorm(const plan::NormPlan<Real>& plan, cudaStream_t stream) {
    const auto size = static_cast<int64_t>(plan.scale().size());
    scale_.upload(plan.scale().data(), size, "the model", stream);
    share_.upload(plan.share().data(), size, "the model", stream);
    view_ = {scale_.data(), share_.data(), plan.epsilon(), static_cast<int>(size)};
}

template <class Real>
void DeviceNorm<Real>::apply(int64_t atom_count, const Real* in, Real* out, cudaStream_t stream) const {
    if (atom_count > 0) launch("a norm", norm_kernel<Real>, atom_count, kBlockThreads, stream, view_, in, out);
}

template <class Real>
void DeviceNorm<Real>::reverse(int64_t atom_count, const Real* in, Real* gradient, cudaStream_t stream) const {
    if (atom_count > 0)
        launch("reversing a norm", reverse_norm_kernel<Real>, atom_count, kBlockThreads, stream, view_, in, gradient);
}

template class DeviceNorm<float>;
template class DeviceNorm<double>;

}  // namespace mlff::nequip::gpu
