// SPDX-License-Identifier: MIT
// In the place of cpu_kernels/available_kernels.cpp, in a command that is made for tests: the kernels of this
// processor, but those that the environment variable MLFF_TEST_BROKEN names, "avx512" or "avx512,avx2", have lost the
// upper lanes of what their contraction computes.
#define available_kernels detected_kernels
#include "cpu_kernels/available_kernels.cpp"
#undef available_kernels

#include <cstdlib>
#include <string>

namespace mlff::kernels {

template <class Real>
std::vector<KernelTable<Real>> available_kernels();

namespace {

// Tables of all instruction sets have the same functions in the same place, so one original for each is enough.
template <class Real>
std::vector<KernelTable<Real>>& originals() {
    static std::vector<KernelTable<Real>> tables = detected_kernels<Real>();
    return tables;
}

template <class Real, size_t Table>
void broken_polynomial(const Polynomial& polynomial, const PolynomialRows<Real>& rows, Real* out) {
    originals<Real>()[Table].evaluate_polynomial(polynomial, rows, out);
    for (int atom = 0; atom < rows.atom_count; ++atom)
        for (int row = 0; row < polynomial.out_row_count; ++row)
            for (int k = kRowPadding / 4; k < kRowPadding; ++k) out[atom * rows.out_step + row * rows.stride + k] = 0;
}

}  // namespace

template <class Real>
std::vector<KernelTable<Real>> available_kernels() {
    std::vector<KernelTable<Real>> tables = originals<Real>();
    const char* broken = std::getenv("MLFF_TEST_BROKEN");
    const std::string names = "," + std::string(broken ? broken : "") + ",";
    constexpr decltype(KernelTable<Real>::evaluate_polynomial) kBroken[] = {
        broken_polynomial<Real, 0>, broken_polynomial<Real, 1>, broken_polynomial<Real, 2>};
    for (size_t i = 0; i < tables.size(); ++i)
        if (names.find("," + std::string(tables[i].name) + ",") != std::string::npos)
            tables[i].evaluate_polynomial = kBroken[i];
    return tables;
}

template std::vector<KernelTable<float>> available_kernels();
template std::vector<KernelTable<double>> available_kernels();

}  // namespace mlff::kernels
