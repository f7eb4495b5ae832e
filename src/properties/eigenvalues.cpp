// SPDX-License-Identifier: MIT
#include "properties/eigenvalues.h"

#include <Eigen/Eigenvalues>

#include "core/error.h"

namespace mlff {
namespace {

template <typename Number>
Eigenvectors<Number> solve(std::span<const Number> matrix, size_t size) {
    using Matrix = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const auto count = static_cast<Eigen::Index>(size);
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(Eigen::Map<const Matrix>(matrix.data(), count, count));
    if (solver.info() != Eigen::Success || !solver.eigenvalues().allFinite())
        fail(Status::internal, "the eigenvalues of a matrix of ", size, " rows cannot be found");
    Eigenvectors<Number> result;
    result.values.assign(solver.eigenvalues().begin(), solver.eigenvalues().end());
    const Matrix rows = solver.eigenvectors().transpose();
    result.vectors.assign(rows.data(), rows.data() + rows.size());
    return result;
}

}  // namespace

Eigenvectors<double> eigenvectors_of_symmetric(std::span<const double> matrix, size_t size) {
    return solve(matrix, size);
}

Eigenvectors<std::complex<double>> eigenvectors_of_hermitian(std::span<const std::complex<double>> matrix,
                                                             size_t size) {
    return solve(matrix, size);
}

}  // namespace mlff
