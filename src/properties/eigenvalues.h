// SPDX-License-Identifier: MIT
// Eigenvalues and eigenvectors of symmetric and Hermitian matrices.
#pragma once

#include <complex>
#include <span>
#include <vector>

namespace mlff {

template <typename Number>
struct Eigenvectors {
    std::vector<double> values;   // ascending
    std::vector<Number> vectors;  // [value][component], of length 1 and orthogonal
};

// Of a square matrix [row][column], whose lower triangle is read. Throws Error{internal} if its numbers are not finite.
Eigenvectors<double> eigenvectors_of_symmetric(std::span<const double> matrix, size_t size);
Eigenvectors<std::complex<double>> eigenvectors_of_hermitian(std::span<const std::complex<double>> matrix, size_t size);

}  // namespace mlff
