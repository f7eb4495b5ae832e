// SPDX-License-Identifier: MIT
#include "painn/gpu/plain_messages.h"

#include "gpu/engine/four.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"
#include "painn/functions/near_field.h"
#include "painn/gpu/edge_gradient.h"

namespace mlff::painn::gpu {
namespace {

using namespace mlff::gpu;

constexpr double kPi = 3.14159265358979323846;
constexpr int kMostFunctions = 65;  // 64 radial functions and the fade, see load_weights.cpp

// All kernels: one block of kBlockThreads per atom.

// A function of the distance, and its slope: number n of the basis times the fade or, after the last one, the fade.
__device__ void radial_function(int n, int radial_count, double cutoff, double distance, double& value, double& slope) {
    const double wave = kPi / cutoff, fade = 0.5 * (1 + cos(wave * distance)),
                 fade_slope = -0.5 * wave * sin(wave * distance);
    value = fade;
    slope = fade_slope;
    if (n == radial_count) return;
    const double basis = sin((n + 1) * wave * distance) / distance;
    value = basis * fade;
    slope = ((n + 1) * wave * cos((n + 1) * wave * distance) - basis) / distance * fade + basis * fade_slope;
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    filters_kernel(int width, StepEdges edges, const __grid_constant__ PlainMessages<Real> plain, bool has_slopes) {
    mlff::gpu::await_predecessor();
    __shared__ Real value[kMostFunctions], slope[kMostFunctions];
    const int64_t atom = blockIdx.x;
    const int columns = kFilterRows * width;
    for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
        SeenDistance seen = {edges.distance[edge], 1};
        if (plain.closest)
            seen = seen_distance(
                plain.closest[edges.elements[atom] * plain.element_count + edges.elements[edges.sender[edge]]],
                seen.value);
        for (int n = static_cast<int>(threadIdx.x); n <= plain.radial_count; n += kBlockThreads) {
            double of_value, of_slope;
            radial_function(n, plain.radial_count, plain.cutoff, seen.value, of_value, of_slope);
            value[n] = static_cast<Real>(of_value);
            slope[n] = static_cast<Real>(of_slope * seen.slope);
        }
        __syncthreads();
        for (int c = static_cast<int>(threadIdx.x); c < columns; c += kBlockThreads) {
            Real filter = 0, filter_slope = 0;
            for (int n = 0; n <= plain.radial_count; ++n) {
                filter += value[n] * plain.weights[n * columns + c];
                filter_slope += slope[n] * plain.weights[n * columns + c];
            }
            plain.filters[edge * columns + c] = filter;
            if (has_slopes) plain.slopes[edge * columns + c] = filter_slope;
        }
        __syncthreads();
    }
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    messages_kernel(int width, const __grid_constant__ MessageStage<Real> stage,
                    const __grid_constant__ PlainMessages<Real> plain) {
    mlff::gpu::await_predecessor();
    const int64_t atom = blockIdx.x;
    for (int64_t edge = stage.edges.first[atom]; edge < stage.edges.first[atom + 1]; ++edge) {
        const int32_t sender = stage.edges.sender[edge];
        const Real* sent =
            stage.sent +
            (plain.is_first ? int64_t{stage.edges.elements[sender]} * kFirstRows : int64_t{sender} * kSentRows) * width;
        const Four<Real> direction = load_four(stage.functions.direction + 4 * edge);
        const Real* filter = plain.filters + edge * kFilterRows * width;
        Real* message = plain.messages + edge * kMessageRows * width;
        for (int c = static_cast<int>(threadIdx.x); c < width; c += kBlockThreads) {
            message[c] = filter[c] * sent[c];
            const Real along = filter[2 * width + c] * sent[width + c];
            for (int k = 0; k < 3; ++k) {
                Real vector = along * direction.of[k];
                if (!plain.is_first) vector += filter[width + c] * sent[(2 + k) * width + c];
                message[(1 + k) * width + c] = vector;
            }
        }
    }
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads) sum_kernel(int width, const __grid_constant__ MessageStage<Real> stage,
                                                            const __grid_constant__ PlainMessages<Real> plain) {
    mlff::gpu::await_predecessor();
    const int64_t atom = blockIdx.x;
    for (int c = static_cast<int>(threadIdx.x); c < width; c += kBlockThreads) {
        Real scalar = stage.scalars[(plain.is_first ? int64_t{stage.edges.elements[atom]} : atom) * width + c];
        Real vector[3];
        for (int k = 0; k < 3; ++k) vector[k] = plain.is_first ? 0 : stage.vectors[(3 * atom + k) * width + c];
        for (int64_t edge = stage.edges.first[atom]; edge < stage.edges.first[atom + 1]; ++edge) {
            const Real* message = plain.messages + edge * kMessageRows * width + c;
            scalar += message[0];
            for (int k = 0; k < 3; ++k) vector[k] += message[(1 + k) * width];
        }
        stage.new_scalars[atom * width + c] = scalar;
        for (int k = 0; k < 3; ++k) stage.new_vectors[(3 * atom + k) * width + c] = vector[k];
    }
}

// In the first block an atom is the receiver of its edges. In the others it has sent along their reverses, which have
// the opposite direction; see messages.h.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    gradients_kernel(int width, const __grid_constant__ MessageReverse<Real> stage,
                     const __grid_constant__ PlainMessages<Real> plain) {
    mlff::gpu::await_predecessor();
    __shared__ Real partial[4][kWarps];
    const int64_t atom = blockIdx.x;
    for (int64_t edge = stage.edges.first[atom]; edge < stage.edges.first[atom + 1]; ++edge) {
        const int32_t neighbor = stage.edges.sender[edge];
        const Real* sent =
            stage.sent +
            (plain.is_first ? int64_t{stage.edges.elements[neighbor]} * kFirstRows : atom * kSentRows) * width;
        const Real* gradient = stage.gradient + (plain.is_first ? atom : int64_t{neighbor}) * kGradientRows * width;
        const Four<Real> direction = load_four(stage.functions.direction + 4 * edge);
        const Real* filter = plain.filters + edge * kFilterRows * width;
        const Real* slope = plain.slopes + edge * kFilterRows * width;
        Real* message = plain.messages + edge * kMessageRows * width;
        Real by_distance = 0, turn[3] = {};
        for (int c = static_cast<int>(threadIdx.x); c < width; c += kBlockThreads) {
            const Real phi_s = sent[c], phi_u = sent[width + c], by_scalar = gradient[c];
            Real by_vector[3], along = 0;
            for (int k = 0; k < 3; ++k) {
                by_vector[k] = gradient[(1 + k) * width + c];
                along += direction.of[k] * by_vector[k];
                turn[k] += phi_u * filter[2 * width + c] * by_vector[k];
            }
            if (!plain.is_first) along = -along;
            by_distance += phi_s * by_scalar * slope[c] + phi_u * along * slope[2 * width + c];
            if (plain.is_first) continue;
            message[c] = filter[c] * by_scalar;
            message[width + c] = filter[2 * width + c] * along;
            for (int k = 0; k < 3; ++k) {
                by_distance += sent[(2 + k) * width + c] * by_vector[k] * slope[width + c];
                message[(2 + k) * width + c] = filter[width + c] * by_vector[k];
            }
        }
        by_distance = sum_over_block(by_distance, partial[0]);
        for (int k = 0; k < 3; ++k) turn[k] = sum_over_block(turn[k], partial[1 + k]);
        if (const int k = static_cast<int>(threadIdx.x); k < 3) {
            const EdgeComponent<Real> own(direction, turn[0], turn[1], turn[2], k);
            const Real across = own.across * direction.of[3];
            stage.vector_gradient[3 * edge + k] +=
                static_cast<double>(by_distance * own.direction + (plain.is_first ? across : -across));
        }
        __syncthreads();  // before `partial` is written again
    }
}

template <class Real>
__global__ void __launch_bounds__(kBlockThreads)
    reverse_sum_kernel(int width, const __grid_constant__ MessageReverse<Real> stage,
                       const __grid_constant__ PlainMessages<Real> plain) {
    mlff::gpu::await_predecessor();
    const int64_t atom = blockIdx.x;
    for (int c = static_cast<int>(threadIdx.x); c < width; c += kBlockThreads) {
        Real sums[kMessageRows] = {};  // by phi_s, phi_u and phi_v v
        for (int64_t edge = stage.edges.first[atom]; edge < stage.edges.first[atom + 1]; ++edge)
            for (int row = 0; row < kMessageRows; ++row)
                sums[row] += plain.messages[(edge * kMessageRows + row) * width + c];
        Real by_phi_v = 0;
        for (int k = 0; k < 3; ++k) {
            const int64_t at = (3 * atom + k) * width + c;
            by_phi_v += sums[2 + k] * stage.vectors[at];
            stage.vectors_gradient[at] = stage.gradient[(atom * kGradientRows + 1 + k) * width + c] +
                                         sums[2 + k] * stage.phi_v[atom * width + c];
        }
        stage.phi_gradient[3 * atom * width + c] = sums[0];
        stage.phi_gradient[(3 * atom + 1) * width + c] = by_phi_v;
        stage.phi_gradient[(3 * atom + 2) * width + c] = sums[1];
    }
}

}  // namespace

template <class Real>
void sum_messages_plainly(int width, const MessageStage<Real>& stage, const PlainMessages<Real>& plain,
                          cudaStream_t stream) {
    const int64_t atoms = stage.edges.atom_count;
    if (atoms == 0) return;
    launch("filters", filters_kernel<Real>, atoms, kBlockThreads, stream, width, stage.edges, plain, false);
    launch("messages", messages_kernel<Real>, atoms, kBlockThreads, stream, width, stage, plain);
    launch("sums of messages", sum_kernel<Real>, atoms, kBlockThreads, stream, width, stage, plain);
}
template <class Real>
void reverse_messages_plainly(int width, const MessageReverse<Real>& stage, const PlainMessages<Real>& plain,
                              cudaStream_t stream) {
    const int64_t atoms = stage.edges.atom_count;
    if (atoms == 0) return;
    launch("filters", filters_kernel<Real>, atoms, kBlockThreads, stream, width, stage.edges, plain, true);
    launch("reversing messages", gradients_kernel<Real>, atoms, kBlockThreads, stream, width, stage, plain);
    if (!plain.is_first)
        launch("sums of gradients", reverse_sum_kernel<Real>, atoms, kBlockThreads, stream, width, stage, plain);
}

template void sum_messages_plainly(int, const MessageStage<float>&, const PlainMessages<float>&, cudaStream_t);
template void sum_messages_plainly(int, const MessageStage<double>&, const PlainMessages<double>&, cudaStream_t);
template void reverse_messages_plainly(int, const MessageReverse<float>&, const PlainMessages<float>&, cudaStream_t);
template void reverse_messages_plainly(int, const MessageReverse<double>&, const PlainMessages<double>&, cudaStream_t);

}  // namespace mlff::painn::gpu
