// SPDX-License-Identifier: MIT
#include "mace/gpu/readout_matrices.h"

#include <vector>

#include "equivariant/linear.h"

namespace mlff::mace::gpu {
namespace {

// A linear map as a matrix [in][out], and its bias.
struct Matrix {
    std::vector<double> numbers, bias;
};
Matrix matrix_of(const Linear& linear) {
    const auto in = static_cast<size_t>(linear.in.dimension()), out = static_cast<size_t>(linear.out.dimension());
    Matrix matrix;
    matrix.numbers.resize(in * out);
    matrix.bias = linear.bias.empty() ? std::vector<double>(out, 0.0) : linear.bias;
    std::vector<double> unit(in, 0.0);
    for (size_t i = 0; i < in; ++i) {
        unit[i] = 1;
        compute_linear(linear, 0, unit.data(), matrix.numbers.data() + i * out);
        unit[i] = 0;
        for (size_t j = 0; j < linear.bias.size(); ++j) matrix.numbers[i * out + j] -= linear.bias[j];
    }
    return matrix;
}
Matrix column_of(const Matrix& matrix, size_t column) {
    const size_t width = matrix.bias.size();
    Matrix result;
    for (size_t i = column; i < matrix.numbers.size(); i += width) result.numbers.push_back(matrix.numbers[i]);
    result.bias = {matrix.bias[column]};
    return result;
}

}  // namespace

equivariant::gpu::ReadoutMatrices matrices_of(const Readout& readout, int head) {
    const auto column = static_cast<size_t>(readout.column_count() == 1 ? 0 : head);
    // Hidden units of other heads must not contribute: sets the weights after them to zero.
    const auto mask_rows = [&](std::vector<double>& numbers, size_t rows) {
        for (size_t i = 0; i < numbers.size(); ++i)
            if (readout.head_slices > 1 &&
                i / (numbers.size() / rows) * static_cast<size_t>(readout.head_slices) / rows !=
                    static_cast<size_t>(head))
                numbers[i] = 0;
    };
    equivariant::gpu::ReadoutMatrices result;
    result.activation = readout.activation;
    Matrix first = matrix_of(readout.first);
    if (!readout.last) first = column_of(first, column);
    result.first = std::move(first.numbers);
    result.first_bias = std::move(first.bias);
    if (!readout.last) return result;
    if (readout.middle) {
        Matrix middle = matrix_of(*readout.middle);
        mask_rows(middle.numbers, result.first_bias.size());
        result.middle = std::move(middle.numbers);
        result.middle_bias = std::move(middle.bias);
    }
    Matrix last = column_of(matrix_of(*readout.last), column);
    mask_rows(last.numbers, last.numbers.size());
    result.last = std::move(last.numbers);
    result.last_bias = last.bias.front();
    return result;
}

}  // namespace mlff::mace::gpu
