// SPDX-License-Identifier: MIT
#include "mace/cuda/contraction.h"

#include "device/cuda_check.h"

namespace mlff::mace::cuda {
namespace {

using mlff::cuda::launch;
using mlff::cuda::LaunchShape;

constexpr int kDeepest = kMaxCorrelation - 1;  // children below a root

// What a thread sees: its channel of the rows of some atoms, in shared memory.
template <class Real, int Atoms>
struct Channel {
    const cpu::Polynomial& polynomial;
    const Real* coefficients;  // of this channel, kRowPadding apart
    const Real* in;            // [atom][row][kBlockThreads], at this thread
    Real* in_gradient;         // the same

    __device__ Real coefficient(int index) const { return coefficients[int64_t{index} * cpu::kRowPadding]; }
    __device__ int place(int atom, int row) const { return (atom * polynomial.in_row_count + row) * kBlockThreads; }
};

template <class Real, int Atoms>
struct Values {
    Real of[Atoms];
};

template <int Depth, class Real, int Atoms>
__device__ Values<Real, Atoms> node_value(const Channel<Real, Atoms>& channel, int index) {
    const cpu::PolynomialNode node = channel.polynomial.nodes[index];
    Values<Real, Atoms> value;
    const Real own = channel.coefficient(node.coefficient);
    for (int a = 0; a < Atoms; ++a) value.of[a] = own;
#pragma unroll 4
    for (int leaf = node.leaf_begin; leaf < node.leaf_end; ++leaf) {  // unrolled: several coefficients on their way at once
        const Real c = channel.coefficient(node.leaf_coefficient + leaf - node.leaf_begin);
        const int row = channel.polynomial.leaf_rows[leaf];
        for (int a = 0; a < Atoms; ++a) value.of[a] += channel.in[channel.place(a, row)] * c;
    }
    if constexpr (Depth > 0)
        for (int child = node.child_begin; child < node.child_end; ++child) {
            const int row = channel.polynomial.nodes[child].row;
            const Values<Real, Atoms> below = node_value<Depth - 1>(channel, child);
            for (int a = 0; a < Atoms; ++a) value.of[a] += channel.in[channel.place(a, row)] * below.of[a];
        }
    return value;
}

// Adds the gradients of everything below the node and returns the node's value.
template <int Depth, class Real, int Atoms>
__device__ Values<Real, Atoms> reverse_node(const Channel<Real, Atoms>& channel, int index, const Values<Real, Atoms>& gradient) {
    const cpu::PolynomialNode node = channel.polynomial.nodes[index];
    Values<Real, Atoms> value;
    const Real own = channel.coefficient(node.coefficient);
    for (int a = 0; a < Atoms; ++a) value.of[a] = own;
#pragma unroll 4
    for (int leaf = node.leaf_begin; leaf < node.leaf_end; ++leaf) {
        const Real c = channel.coefficient(node.leaf_coefficient + leaf - node.leaf_begin);
        const int row = channel.polynomial.leaf_rows[leaf];
        for (int a = 0; a < Atoms; ++a) {
            value.of[a] += channel.in[channel.place(a, row)] * c;
            channel.in_gradient[channel.place(a, row)] += gradient.of[a] * c;
        }
    }
    if constexpr (Depth > 0)
        for (int child = node.child_begin; child < node.child_end; ++child) {
            const int row = channel.polynomial.nodes[child].row;
            Values<Real, Atoms> inner;
            for (int a = 0; a < Atoms; ++a) inner.of[a] = gradient.of[a] * channel.in[channel.place(a, row)];
            const Values<Real, Atoms> below = reverse_node<Depth - 1>(channel, child, inner);
            for (int a = 0; a < Atoms; ++a) {
                value.of[a] += channel.in[channel.place(a, row)] * below.of[a];
                channel.in_gradient[channel.place(a, row)] += gradient.of[a] * below.of[a];
            }
        }
    return value;
}

template <class Real>
__device__ Real* shared_memory() {
    extern __shared__ __align__(16) unsigned char bytes[];
    return reinterpret_cast<Real*>(bytes);
}

// Launch: (tile, atoms of the tile / Atoms, kBlockThreads channels). Threads without a channel and atoms beyond the tile are harmless:
// they work on zeros and write nothing.
template <class Real, int Atoms, bool kReverse>
__global__ void __launch_bounds__(kBlockThreads) contraction_kernel(typename DeviceContraction<Real>::View view, TilesView tiles, RowsView<const Real> in,
                                                                    RowsView<const Real> out_gradient, RowsView<Real> out) {
    const Tile tile = tiles.tiles[blockIdx.x];
    const int first = static_cast<int>(blockIdx.y) * Atoms;
    const int count = min(Atoms, tile.count - first);
    const int k = static_cast<int>(blockIdx.z * kBlockThreads + threadIdx.x);
    if (count <= 0 || k >= view.stride) return;
    const int32_t* atoms = tiles.atoms + tile.begin + first;
    const int rows = view.polynomial.in_row_count;
    Real* own = shared_memory<Real>() + threadIdx.x;
    const Real* coefficients = view.coefficients[tile.element] + int64_t{k / cpu::kRowPadding} * view.polynomial.coefficient_count * cpu::kRowPadding + k % cpu::kRowPadding;
    const Channel<Real, Atoms> channel = {view.polynomial, coefficients, own, own + Atoms * rows * kBlockThreads};
    for (int a = 0; a < Atoms; ++a)
        for (int row = 0; row < rows; ++row) {
            own[channel.place(a, row)] = a < count ? in.of(atoms[a])[row * view.stride + k] : Real(0);
            if (kReverse) channel.in_gradient[channel.place(a, row)] = Real(0);
        }
    for (int row = 0; row < view.polynomial.out_row_count; ++row) {
        if constexpr (kReverse) {
            Values<Real, Atoms> gradient;
            for (int a = 0; a < Atoms; ++a) gradient.of[a] = a < count ? out_gradient.of(atoms[a])[row * view.stride + k] : Real(0);
            reverse_node<kDeepest>(channel, view.polynomial.roots[row], gradient);
        } else {
            const Values<Real, Atoms> value = node_value<kDeepest>(channel, view.polynomial.roots[row]);
            for (int a = 0; a < count; ++a) out.of(atoms[a])[row * view.stride + k] = value.of[a];
        }
    }
    if constexpr (kReverse)
        for (int a = 0; a < count; ++a)
            for (int row = 0; row < rows; ++row) out.of(atoms[a])[row * view.stride + k] = channel.in_gradient[channel.place(a, row)];
}

// As many atoms at once as shared memory holds.
template <class Real, bool kReverse>
void run(const typename DeviceContraction<Real>::View& view, const TilesView& tiles, RowsView<const Real> in, RowsView<const Real> out_gradient, RowsView<Real> out,
         cudaStream_t stream) {
    if (tiles.tile_count == 0) return;
    constexpr size_t kMostShared = 96 << 10;
    const size_t bytes_per_atom = (kReverse ? 2 : 1) * static_cast<size_t>(view.polynomial.in_row_count) * kBlockThreads * sizeof(Real);
    const auto go = [&](auto kernel, int atoms) {
        const LaunchShape shape = {dim3(static_cast<unsigned>(tiles.tile_count), static_cast<unsigned>(kAtomsPerTile / atoms),
                                        static_cast<unsigned>((view.stride + kBlockThreads - 1) / kBlockThreads)),
                                   kBlockThreads, static_cast<size_t>(atoms) * bytes_per_atom};
        launch("the contraction", kernel, shape, stream, view, tiles, in, out_gradient, out);
    };
    if (4 * bytes_per_atom <= kMostShared)
        go(contraction_kernel<Real, 4, kReverse>, 4);
    else if (2 * bytes_per_atom <= kMostShared)
        go(contraction_kernel<Real, 2, kReverse>, 2);
    else
        go(contraction_kernel<Real, 1, kReverse>, 1);
}

}  // namespace

template <class Real>
DeviceContraction<Real>::DeviceContraction(const cpu::Contraction<Real>& contraction, int element_count, cudaStream_t stream)
    : host_(contraction), coefficients_(static_cast<size_t>(element_count)) {
    nodes_.upload(host_.nodes().data(), static_cast<int64_t>(host_.nodes().size()), "the model", stream);
    leaf_rows_.upload(host_.leaf_rows().data(), static_cast<int64_t>(host_.leaf_rows().size()), "the model", stream);
    roots_.upload(host_.roots().data(), static_cast<int64_t>(host_.roots().size()), "the model", stream);
}

template <class Real>
void DeviceContraction<Real>::prepare(const std::vector<int>& elements, cudaStream_t stream) {
    std::vector<const Real*> rows;
    for (int element : elements) {
        auto& coefficients = coefficients_[static_cast<size_t>(element)];
        const Buffer<Real>& host = host_.coefficients(element);
        if (coefficients.size() == 0) coefficients.upload(host.data(), static_cast<int64_t>(host.size()), "the model", stream);
    }
    for (const auto& coefficients : coefficients_) rows.push_back(coefficients.data());
    coefficient_rows_.upload(rows.data(), static_cast<int64_t>(rows.size()), "the model", stream);
}

template <class Real>
typename DeviceContraction<Real>::View DeviceContraction<Real>::view() const {
    cpu::Polynomial polynomial = host_.polynomial();
    polynomial.nodes = nodes_.data();
    polynomial.leaf_rows = leaf_rows_.data();
    polynomial.roots = roots_.data();
    return {polynomial, coefficient_rows_.data(), host_.stride()};
}

template <class Real>
void DeviceContraction<Real>::apply(const TilesView& tiles, RowsView<const Real> in, RowsView<Real> out, cudaStream_t stream) const {
    run<Real, false>(view(), tiles, in, {}, out, stream);
}

template <class Real>
void DeviceContraction<Real>::reverse(const TilesView& tiles, RowsView<const Real> in, RowsView<const Real> out_gradient, RowsView<Real> in_gradient,
                                      cudaStream_t stream) const {
    run<Real, true>(view(), tiles, in, out_gradient, in_gradient, stream);
}

template class DeviceContraction<float>;
template class DeviceContraction<double>;

}  // namespace mlff::mace::cuda
