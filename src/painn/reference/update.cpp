// SPDX-License-Identifier: MIT
#include "painn/reference/update.h"

#include <algorithm>
#include <cmath>

#include "painn/functions/dense.h"

namespace mlff::painn::reference {
namespace {

struct Mixed {
    std::vector<double> rows;   // [3][U v, V v][F]
    std::vector<double> input;  // [2F]: s, n
    std::vector<double> dot;    // [F]: sum over x, y, z of (U v)(V v)
    std::vector<double> gates;  // [3F]: a_ss, a_sv, a_vv
};

Mixed compute_mixed(const Block& block, const double* scalars, const double* vectors) {
    const auto width = static_cast<size_t>(block.mix.in_width);
    Mixed mixed = {std::vector<double>(6 * width), std::vector<double>(2 * width), std::vector<double>(width, 0.0),
                   std::vector<double>(3 * width)};
    std::copy_n(scalars, width, mixed.input.begin());
    std::vector<double> squares(width, kNormFloor);
    for (size_t c = 0; c < 3; ++c) {
        double *u = &mixed.rows[2 * c * width], *v = u + width;
        compute_linear(block.mix, vectors + c * width, u);
        for (size_t k = 0; k < width; ++k) {
            squares[k] += v[k] * v[k];
            mixed.dot[k] += u[k] * v[k];
        }
    }
    for (size_t k = 0; k < width; ++k) mixed.input[width + k] = std::sqrt(squares[k]);
    compute_two_layers(block.update_hidden, block.update_output, mixed.input.data(), mixed.gates.data());
    return mixed;
}

}  // namespace

void compute_update(const Block& block, double* scalars, double* vectors) {
    const auto width = static_cast<size_t>(block.mix.in_width);
    const Mixed mixed = compute_mixed(block, scalars, vectors);
    for (size_t k = 0; k < width; ++k) {
        scalars[k] += mixed.gates[k] + mixed.gates[width + k] * mixed.dot[k];
        for (size_t c = 0; c < 3; ++c)
            vectors[c * width + k] += mixed.gates[2 * width + k] * mixed.rows[2 * c * width + k];
    }
}

void reverse_update(const Block& block, const double* scalars, const double* vectors, double* scalars_gradient,
                    double* vectors_gradient) {
    const auto width = static_cast<size_t>(block.mix.in_width);
    const Mixed mixed = compute_mixed(block, scalars, vectors);
    std::vector<double> gates_gradient(3 * width, 0.0), rows_gradient(6 * width), input_gradient(2 * width, 0.0);
    for (size_t k = 0; k < width; ++k) {
        gates_gradient[k] = scalars_gradient[k];
        gates_gradient[width + k] = scalars_gradient[k] * mixed.dot[k];
        for (size_t c = 0; c < 3; ++c)
            gates_gradient[2 * width + k] += vectors_gradient[c * width + k] * mixed.rows[2 * c * width + k];
    }
    reverse_two_layers(block.update_hidden, block.update_output, mixed.input.data(), gates_gradient.data(),
                       input_gradient.data());
    for (size_t c = 0; c < 3; ++c)
        for (size_t k = 0; k < width; ++k) {
            const double u = mixed.rows[2 * c * width + k], v = mixed.rows[(2 * c + 1) * width + k];
            const double by_dot = scalars_gradient[k] * mixed.gates[width + k];
            rows_gradient[2 * c * width + k] =
                by_dot * v + vectors_gradient[c * width + k] * mixed.gates[2 * width + k];
            rows_gradient[(2 * c + 1) * width + k] =
                by_dot * u + input_gradient[width + k] * v / mixed.input[width + k];
        }
    for (size_t k = 0; k < width; ++k) scalars_gradient[k] += input_gradient[k];
    for (size_t c = 0; c < 3; ++c)
        reverse_linear(block.mix, &rows_gradient[2 * c * width], vectors_gradient + c * width);
}

}  // namespace mlff::painn::reference
