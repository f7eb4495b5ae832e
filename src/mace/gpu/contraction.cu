// SPDX-License-Identifier: MIT
#include "mace/gpu/contraction.h"
#include "mace/plan/names.h"

#include <algorithm>
#include <type_traits>

#include "gpu/engine/instructions.h"
#include "gpu/runtime/cuda_check.h"
#include "mace/gpu/pattern_contraction.cuh"

namespace mlff::mace::gpu {
namespace {

using mlff::gpu::launch;
using mlff::gpu::LaunchShape;

// The number of atoms that a block handles at once, and of its warps, which divide the monomials equally.
struct BlockShape {
    int atoms = 1, warps = 1;
};
constexpr int most_warps(int atoms, bool is_reverse) { return atoms == 1 ? 16 : is_reverse ? 4 : 8; }
template <class Real>
constexpr int most_atoms(bool is_reverse) {
    return (is_reverse ? 16 : 32) / static_cast<int>(sizeof(Real));
}

// Rows of kLanes * atoms numbers. Forward: the input, then the sums of all warps. Reverse: the input, the gradient of
// the output, then a gradient of the input for each warp.
template <class Real>
size_t shared_bytes(const typename DeviceContraction<Real>::View& view, BlockShape shape, bool is_reverse) {
    const int of_warps = is_reverse ? shape.warps * view.in_row_count : shape.warps - 1;
    return static_cast<size_t>(view.in_row_count + view.out_row_count + of_warps) *
           static_cast<size_t>(kLanes * shape.atoms) * sizeof(Real);
}

template <class Real>
__device__ Real* shared_memory() {
    return reinterpret_cast<Real*>(mlff::gpu::launched_shared_memory());
}

// One channel of the block's atoms, which one thread copies. If the atom or channel does not exist, it reads another
// one and writes nothing.
template <class Real, int Atoms>
struct BlockAtoms {
    const int32_t* atoms;
    int count, stride, channel;

    __device__ AtomValues<Real, Atoms> load(const RowsView<const Real>& rows, int row) const {
        AtomValues<Real, Atoms> values;
        for (int a = 0; a < Atoms; ++a)
            values.of[a] = rows.of(atoms[min(a, count - 1)])[row * stride + min(channel, stride - 1)];
        return values;
    }
    __device__ void store(const RowsView<Real>& rows, int row, const AtomValues<Real, Atoms>& values) const {
        for (int a = 0; a < Atoms; ++a)
            if (a < count && channel < stride) rows.of(atoms[a])[row * stride + channel] = values.of[a];
    }
};

// Launch: (tile, atoms of the tile / Atoms, channels / kLanes) blocks of up to most_warps() warps.
// Depth: the largest number of factors of a monomial. `out` is in_gradient if kReverse.
template <class Real, int Atoms, int Depth, bool kReverse>
__global__ void __launch_bounds__(kLanes* most_warps(Atoms, kReverse))
    contraction_kernel(typename DeviceContraction<Real>::View view, TilesView tiles, RowsView<const Real> in,
                       RowsView<const Real> out_gradient, RowsView<Real> out) {
    using Rows = LaneRows<Real, Atoms>;
    const Tile tile = tiles.tiles[blockIdx.x];
    const int first = static_cast<int>(blockIdx.y) * Atoms;
    const int count = min(Atoms, tile.count - first);
    if (count <= 0) return mlff::gpu::await_predecessor();  // the whole block
    const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes,
              warps = static_cast<int>(blockDim.x) / kLanes;
    const int strip = static_cast<int>(blockIdx.z);
    const BlockAtoms<Real, Atoms> atoms = {tiles.atoms + tile.begin + first, count, view.stride, strip * kLanes + lane};

    Real* const shared = shared_memory<Real>();
    const Rows shared_in(shared, lane);
    Real* const beyond_in = shared + view.in_row_count * Rows::kRowSize;
    const typename DeviceContraction<Real>::OfElement element = view.elements[tile.element];
    const Real* coefficients = element.coefficients + int64_t{strip} * view.monomial_count * kLanes + lane;
    const MonomialStretch stretch = stretch_of(warp, warps, view.group_count);
    const MonomialPath path = view.paths[stretch.begin / kMonomialsAtOnce];
    constexpr int kAtOnce = Atoms == 1 ? kMonomialsAtOnce : kMonomialsAtOnce / 2;
    mlff::gpu::await_predecessor();
    for (int row = warp; row < view.in_row_count; row += warps) shared_in.store(row, atoms.load(in, row));

    if constexpr (kReverse) {
        const Rows shared_out_gradient(beyond_in, lane);
        Real* const gradients = beyond_in + view.out_row_count * Rows::kRowSize;
        const auto gradient_of = [&](int of_warp) {
            return Rows(gradients + of_warp * view.in_row_count * Rows::kRowSize, lane);
        };
        for (int row = warp; row < view.out_row_count; row += warps)
            shared_out_gradient.store(row, atoms.load(out_gradient, row));
        AtomValues<Real, Atoms> zero;
        zero.set(0);
        for (int row = 0; row < view.in_row_count; ++row) gradient_of(warp).store(row, zero);
        __syncthreads();
        using Walk = ReverseWalk<Real, Atoms, Depth>;
        Walk walk(path, shared_in, shared_out_gradient, gradient_of(warp));
        MonomialReader<kAtOnce, Real, Walk>(element.monomials, coefficients).read(stretch, walk);
        walk.finish();
        __syncthreads();
        for (int row = warp; row < view.in_row_count; row += warps) {
            AtomValues<Real, Atoms> sum = zero;
            for (int w = 0; w < warps; ++w) sum.add_product(gradient_of(w).load(row), Real(1));
            atoms.store(out, row, sum);
        }
    } else {
        const Rows sums(beyond_in, lane);
        __syncthreads();
        using Walk = ForwardWalk<Real, Atoms, Depth>;
        Walk walk(path, shared_in, sums, warp);
        MonomialReader<kAtOnce, Real, Walk>(element.monomials, coefficients).read(stretch, walk);
        walk.finish();
        __syncthreads();
        for (int row = warp; row < view.out_row_count; row += warps)
            atoms.store(out, row, joined_sum(view.paths, view.group_count, warps, row, sums));
    }
}

// With many atoms per block, more atoms share what is read; with few, there are more blocks. The choice depends on
// sizes alone, because the order of sums depends on it.
template <class Real>
BlockShape choose_shape(const typename DeviceContraction<Real>::View& view, const TilesView& tiles, int strips,
                        bool is_reverse) {
    constexpr size_t kMostShared = 96 << 10;
    const int enough_blocks = is_reverse ? 768 : 256;
    const auto fits = [&](BlockShape shape) { return shared_bytes<Real>(view, shape, is_reverse) <= kMostShared; };
    const auto makes_blocks = [&](int atoms, int blocks) {
        return int64_t{tiles.atom_count} * strips >= int64_t{blocks} * atoms;
    };
    for (int atoms = most_atoms<Real>(is_reverse); atoms > 1; atoms /= 2) {
        const BlockShape shape = {atoms, most_warps(atoms, is_reverse)};
        const bool has_full_tiles = tiles.atom_count >= int64_t{atoms} * tiles.tile_count;
        if (has_full_tiles && makes_blocks(atoms, enough_blocks) && fits(shape)) return shape;
    }
    BlockShape shape = {1, most_warps(1, is_reverse) / (makes_blocks(1, enough_blocks / 2) ? 2 : 1)};
    while (shape.warps > 1 && !fits(shape)) shape.warps /= 2;
    return shape;
}

// Whether there are warps for all multiprocessors of a large GPU, if each has several atoms. It depends on sizes alone,
// for the same reason.
template <bool kReverse>
bool has_many_atoms(const TilesView& tiles, int strips) {
    constexpr int kEnoughWarps = 1024, kAtoms = atoms_of_warp(kReverse);
    return tiles.atom_count >= int64_t{kAtoms} * tiles.tile_count &&
           int64_t{tiles.atom_count} * strips >= int64_t{kEnoughWarps} * kAtoms;
}
template <bool kReverse>
void run_pattern(const DeviceContraction<float>::View& view, const TilesView& tiles, int strips,
                 RowsView<const float> in, RowsView<const float> out_gradient, RowsView<float> out,
                 cudaStream_t stream) {
    constexpr int kAtoms = atoms_of_warp(kReverse) * kPatternWarps;
    const int parts = (std::min(kAtomsPerTile, tiles.atom_count) + kAtoms - 1) / kAtoms;
    const LaunchShape shape = {
        dim3(static_cast<unsigned>(tiles.tile_count), static_cast<unsigned>(parts), static_cast<unsigned>(strips)),
        kLanes * kPatternWarps};
    static_assert(kMostPatternOutDegree == 2);
    auto* kernel = view.out_row_count == 1   ? pattern_kernel<0, kReverse>
                   : view.out_row_count == 4 ? pattern_kernel<1, kReverse>
                                             : pattern_kernel<2, kReverse>;
    launch("the contraction", kernel, shape, stream, view, tiles, in, out_gradient, out);
}

template <class Real, bool kReverse>
void run(const typename DeviceContraction<Real>::View& view, const TilesView& tiles, RowsView<const Real> in,
         RowsView<const Real> out_gradient, RowsView<Real> out, cudaStream_t stream) {
    if (tiles.tile_count == 0) return;
    const int strips = (view.stride + kLanes - 1) / kLanes;
    if constexpr (std::is_same_v<Real, float>)
        if (view.is_in_pattern && has_many_atoms<kReverse>(tiles, strips))
            return run_pattern<kReverse>(view, tiles, strips, in, out_gradient, out, stream);
    const BlockShape chosen = choose_shape<Real>(view, tiles, strips, kReverse);
    const int atoms_per_tile = std::min(kAtomsPerTile, tiles.atom_count),
              parts = (atoms_per_tile + chosen.atoms - 1) / chosen.atoms;
    const LaunchShape shape = {
        dim3(static_cast<unsigned>(tiles.tile_count), static_cast<unsigned>(parts), static_cast<unsigned>(strips)),
        kLanes * chosen.warps, shared_bytes<Real>(view, chosen, kReverse)};
    const auto go = [&](auto atoms) {
        constexpr int kAtoms = decltype(atoms)::value;
        if constexpr (kAtoms <= most_atoms<Real>(kReverse)) {
            static_assert(kMaxCorrelation == 4);
            auto* kernel = view.depth <= 3 ? contraction_kernel<Real, kAtoms, 3, kReverse>
                                           : contraction_kernel<Real, kAtoms, 4, kReverse>;
            launch("the contraction", kernel, shape, stream, view, tiles, in, out_gradient, out);
        }
    };
    switch (chosen.atoms) {
        case 1: return go(std::integral_constant<int, 1>());
        case 2: return go(std::integral_constant<int, 2>());
        case 4: return go(std::integral_constant<int, 4>());
        default: return go(std::integral_constant<int, 8>());
    }
}

}  // namespace

template <class Real>
DeviceContraction<Real>::DeviceContraction(const plan::Contraction<Real>& contraction, int element_count,
                                           cudaStream_t stream)
    : host_(contraction),
      list_(contraction.polynomial()),
      monomials_(static_cast<size_t>(element_count)),
      coefficients_(static_cast<size_t>(element_count)),
      pattern_coefficients_(static_cast<size_t>(element_count)) {
    if (std::is_same_v<Real, float>) pattern_ = list_.in_pattern(contraction.polynomial());
    paths_.upload(list_.paths.data(), static_cast<int64_t>(list_.paths.size()), "the model", stream);
}

template <class Real>
void DeviceContraction<Real>::prepare(const std::vector<int>& elements, cudaStream_t stream) {
    for (int element : elements) {
        auto& coefficients = coefficients_[static_cast<size_t>(element)];
        if (coefficients.size() > 0) continue;
        const Buffer<Real>& host = host_.coefficients(element);
        const std::vector<Monomial> monomials = list_.of_element(host, host_.stride());
        const Buffer<Real> packed = list_.pack(host, host_.stride());
        monomials_[static_cast<size_t>(element)].upload(monomials.data(), static_cast<int64_t>(monomials.size()),
                                                        "the model", stream);
        coefficients.upload(packed.data(), static_cast<int64_t>(packed.size()), "the model", stream);
        if (pattern_.empty()) continue;
        const Buffer<Real> in_pattern = list_.pack(host, host_.stride(), pattern_);
        pattern_coefficients_[static_cast<size_t>(element)].upload(
            in_pattern.data(), static_cast<int64_t>(in_pattern.size()), "the model", stream);
    }
    std::vector<OfElement> all;
    for (size_t element = 0; element < coefficients_.size(); ++element)
        all.push_back(
            {monomials_[element].data(), coefficients_[element].data(), pattern_coefficients_[element].data()});
    elements_.upload(all.data(), static_cast<int64_t>(all.size()), "the model", stream);
}

template <class Real>
typename DeviceContraction<Real>::View DeviceContraction<Real>::view() const {
    const plan::Polynomial polynomial = host_.polynomial();
    return {elements_.data(),
            paths_.data(),
            list_.count,
            static_cast<int>(list_.paths.size()) - 1,
            list_.depth,
            polynomial.in_row_count,
            polynomial.out_row_count,
            host_.stride(),
            !pattern_.empty()};
}

template <class Real>
void DeviceContraction<Real>::apply(const TilesView& tiles, RowsView<const Real> in, RowsView<Real> out,
                                    cudaStream_t stream) const {
    run<Real, false>(view(), tiles, in, {}, out, stream);
}

template <class Real>
void DeviceContraction<Real>::reverse(const TilesView& tiles, RowsView<const Real> in,
                                      RowsView<const Real> out_gradient, RowsView<Real> in_gradient,
                                      cudaStream_t stream) const {
    run<Real, true>(view(), tiles, in, out_gradient, in_gradient, stream);
}

template class DeviceContraction<float>;
template class DeviceContraction<double>;

}  // namespace mlff::mace::gpu
