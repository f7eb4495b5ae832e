// SPDX-License-Identifier: MIT
// Which paths the convolutions of a file have, and in which order.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "equivariant/wigner.h"
#include "nequip/weights/loaders.h"

namespace mlff::nequip {
namespace {

constexpr size_t kMaxPaths = 512;

std::vector<Convolution::Coupling> sparse_couplings(const std::vector<double>& tensor, int l1, int l2, int l3) {
    const double factor = std::sqrt(2.0 * l3 + 1) * (l2 % 2 == 0 ? 1 : -1);
    std::vector<Convolution::Coupling> couplings;
    size_t next = 0;
    for (int a = 0; a <= 2 * l1; ++a)
        for (int b = 0; b <= 2 * l2; ++b)
            for (int c = 0; c <= 2 * l3; ++c) {
                const double value = tensor[next++];
                if (value != 0) couplings.push_back({a, l2 * l2 + b, c, factor * value});
            }
    return couplings;
}

}  // namespace

bool is_before(const Irrep& a, const Irrep& b) { return std::pair(a.degree, a.parity) < std::pair(b.degree, b.parity); }

std::vector<Irrep> reachable_irreps(const Irreps& in, const Harmonics& harmonics) {
    std::vector<Irrep> found;
    for (const IrrepBlock& block : in.blocks())
        for (int j = 0; j <= harmonics.max_degree; ++j)
            for (int l = std::abs(block.irrep.degree - j); l <= block.irrep.degree + j; ++l) {
                const Irrep irrep = {l, block.irrep.parity * harmonics.irrep(j).parity};
                if (std::find(found.begin(), found.end(), irrep) == found.end()) found.push_back(irrep);
            }
    std::sort(found.begin(), found.end(), is_before);
    return found;
}

std::vector<PathOrigin> all_paths(const ModuleReader& reader, const Irreps& in, const Harmonics& harmonics,
                                  const std::function<bool(const Irrep&)>& keeps) {
    std::vector<PathOrigin> paths;
    for (int i = 0; i < in.block_count(); ++i)
        for (int j = 0; j <= harmonics.max_degree; ++j)
            for (int l = std::abs(in[i].irrep.degree - j); l <= in[i].irrep.degree + j; ++l) {
                const Irrep irrep = {l, in[i].irrep.parity * harmonics.irrep(j).parity};
                if (!keeps(irrep)) continue;
                paths.push_back({irrep, i, j});
                if (paths.size() > kMaxPaths) reader.malformed("more than ", kMaxPaths, " paths");
            }
    return paths;
}

void sort_paths(std::vector<PathOrigin>& paths) {
    std::stable_sort(paths.begin(), paths.end(),
                     [](const PathOrigin& a, const PathOrigin& b) { return is_before(a.irrep, b.irrep); });
}

int assign_columns(std::vector<PathOrigin>& paths, const Irreps& in) {
    int next = 0;
    for (PathOrigin& path : paths) {
        path.column = next;
        next += in[path.in_block].multiplicity;
    }
    return next;
}

Irreps irreps_of(const std::vector<PathOrigin>& paths, const Irreps& in) {
    Irreps result;
    for (const PathOrigin& path : paths) result.append(in[path.in_block].multiplicity, path.irrep);
    return result;
}

std::vector<double> new_wigner_3j(int degree1, int degree2, int degree3) {
    std::vector<double> tensor = wigner_3j(degree1, degree2, degree3);
    std::array<int, 3> sorted = {degree1, degree2, degree3};
    std::sort(sorted.begin(), sorted.end());
    if (sorted == std::array{1, 2, 2} || sorted == std::array{1, 3, 3})
        for (double& value : tensor) value = -value;
    return tensor;
}

Convolution make_convolution(const ModuleReader& reader, const Irreps& in, const Harmonics& harmonics,
                             const std::vector<PathOrigin>& sorted_paths, int weight_count, const Irreps& target,
                             const CouplingTensor& tensor_of) {
    Convolution convolution;
    convolution.in = in;
    convolution.weight_count = weight_count;
    std::map<std::tuple<int, int, int>, std::vector<Convolution::Coupling>> known;
    for (const PathOrigin& origin : sorted_paths) {
        if (target.copies_of(origin.irrep) == 0) continue;
        const IrrepBlock& block = in[origin.in_block];
        const auto degrees = std::tuple(block.irrep.degree, origin.degree, origin.irrep.degree);
        const auto [l1, l2, l3] = degrees;
        if (!known.contains(degrees)) known[degrees] = sparse_couplings(tensor_of(l1, l2, l3), l1, l2, l3);
        reader.take_numbers(
            static_cast<int64_t>(known[degrees].size() * sizeof(Convolution::Coupling) / sizeof(double)));
        convolution.paths.push_back({.in_block = origin.in_block,
                                     .degree = origin.degree,
                                     .out_block = convolution.out.block_count(),
                                     .weight_offset = origin.column,
                                     .distance_power = harmonics.is_normalized ? 0 : origin.degree,
                                     .couplings = known[degrees]});
        convolution.out.append(block.multiplicity, origin.irrep);
    }
    if (convolution.paths.empty()) reader.malformed("no message reaches the output '", target.text(), "'");
    return convolution;
}

}  // namespace mlff::nequip
