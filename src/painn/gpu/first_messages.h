// SPDX-License-Identifier: MIT
// Messages of the first block by moments, and the reverse. There vectors are zero, and phi depends on the element of
// the sender alone. So sums over edges and over the functions of EdgeFunctions can change places. With
//   moment[m][n] = sum over the edges of atom i whose sender has this element of (1, u_x, u_y, u_z)[m] function_n
//   Q_s[n][c] = phi_s[c] weight_s[c][n],  Q_u[n][c] = phi_u[c] weight_u[c][n]
// for every element, the messages are, as sums over elements,
//   s_i = embedding + sum of moment[0] Q_s
//   v_i[k] = sum of moment[1 + k] Q_u
// An edge then costs 4 products for each function, instead of 2 F. In reverse, the gradients of s_i and v_i and the
// same matrices give those of the moments, and these give those of the edges.
//
// The functions of an edge are taken kPassFunctions at a time.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/engine/step_edges.h"
#include "gpu/engine/tensor_product.h"
#include "painn/gpu/edge_stage.h"
#include "painn/gpu/tables.h"

namespace mlff::painn::gpu {

inline constexpr int kPassFunctions = 24, kPassGroups = kPassFunctions / 4;
inline constexpr int kFirstParts = 2;  // s, u
inline constexpr int function_passes(int group_count) { return (group_count + kPassGroups - 1) / kPassGroups; }

// The matrices Q of all elements in the order in which lanes load them: [element][s, u][pass] and then
//   forward: [step of kShortDepth functions][16 channels][lane][tile][number]. Lane 4 g + q has functions 2 q and
//     2 q + 1 of the step, for column g of each of two tiles: channel 4 (g / 2) + 2 tile + g % 2.
//   transposed, for the reverse: [step of kStep channels][tile of 8 functions][lane][number]. Lane 4 g + q has function
//     g of the tile, and as many channels as Pack has numbers.
template <class Real>
struct FirstMatrices {
    std::vector<Real> forward, transposed;

    FirstMatrices(const Weights& weights, int group_count) {
        using mlff::gpu::kShortDepth;
        using mlff::gpu::kStep;
        constexpr int kCount = mlff::gpu::Pack<Real>::kCount;
        const int passes = function_passes(group_count), width = weights.hidden;
        const std::vector<double> table = first_products(weights, passes * kPassFunctions);
        const auto matrices = static_cast<int>(table.size()) / (kPassFunctions * width);
        const auto number = [&](int matrix, int function, int channel) {
            return static_cast<Real>(
                table[(static_cast<size_t>(matrix) * kPassFunctions + static_cast<size_t>(function)) *
                          static_cast<size_t>(width) +
                      static_cast<size_t>(channel)]);
        };
        for (int matrix = 0; matrix < matrices; ++matrix) {
            for (int step = 0; step < kPassFunctions; step += kShortDepth)
                for (int channels = 0; channels < width; channels += 16)
                    for (int lane = 0; lane < 32; ++lane)
                        for (int tile = 0; tile < 2; ++tile)
                            for (int i = 0; i < 2; ++i)
                                forward.push_back(number(matrix, step + 2 * (lane % 4) + i,
                                                         channels + lane / 8 * 4 + 2 * tile + lane / 4 % 2));
            for (int step = 0; step < width; step += kStep<Real>)
                for (int tile = 0; tile < kPassFunctions; tile += 8)
                    for (int lane = 0; lane < 32; ++lane)
                        for (int i = 0; i < kCount; ++i)
                            transposed.push_back(number(matrix, tile + lane / 4, step + kCount * (lane % 4) + i));
        }
    }
};

template <class Real>
struct FirstMatricesView {
    const Real *forward = nullptr, *transposed = nullptr;
};

// `width` is F, the number of channels. Only functions of edges are `Stored`.
template <class Stored>
struct FirstMessages {
    using Real = mlff::gpu::RealOf<Stored>;
    StepEdges edges;
    EdgeFunctions<Stored> functions;
    FirstMatricesView<Real> matrices;
    const Real* embedding = nullptr;  // [element][F]
    Real* scalars = nullptr;          // [atom][F]
    Real* vectors = nullptr;          // [atom][3][F]
};
template <class Stored>
void sum_first_messages(int width, const FirstMessages<Stored>& stage, cudaStream_t stream);

template <class Stored>
struct FirstMessagesReverse {
    using Real = mlff::gpu::RealOf<Stored>;
    StepEdges edges;
    EdgeFunctions<Stored> functions;
    FirstMatricesView<Real> matrices;
    const Real* gradient = nullptr;     // [atom][kGradientRows][F], of scalars and vectors
    double* vector_gradient = nullptr;  // [edge][3]: adds to it
};
template <class Stored>
void reverse_first_messages(int width, const FirstMessagesReverse<Stored>& stage, cudaStream_t stream);

}  // namespace mlff::painn::gpu
