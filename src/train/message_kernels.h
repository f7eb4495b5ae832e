// SPDX-License-Identifier: MIT
// The sums of message.h and their derivatives, one thread per atom and channel, without intermediate arrays of size
// edges x channels. The same source is compiled for the GPU (message_kernels.cu) and, for tests, for the CPU
// (message_kernels.cpp).
//
// Edges are grouped by receiver, and every edge has its reverse in the list: the edges that atom j sends are the
// reverses of those it receives. One thread sums each result in list order, so runs repeat bit for bit.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace mlff::train {

struct MessageEdges {
    int64_t atoms = 0, edges = 0, channels = 0;
    const int64_t* first = nullptr;    // [atoms + 1]; edges from first[atoms] on are padding
    const int64_t* sender = nullptr;   // [edges]
    const int64_t* reverse = nullptr;  // [edges]
    const float* direction = nullptr;  // [edges][3]
};

// Inputs and results of the three stages, as in message.cpp; [atoms][3 F], [edges][3 F], [atoms][3][F]. v, cv and their
// derivatives are null in the first block.
struct MessageArrays {
    const float *phi = nullptr, *filter = nullptr, *v = nullptr;
    const float *gs = nullptr, *gv = nullptr;                                      // gradient and second stage
    const float *of_phi = nullptr, *cw = nullptr, *of_v = nullptr, *cu = nullptr;  // second stage: cotangents
    float *scalars = nullptr, *vectors = nullptr;  // sums; in the second stage, derivatives with respect to gs and gv
    float *grad_phi = nullptr, *grad_filter = nullptr, *grad_v = nullptr;
    float* grad_direction = nullptr;  // [parts][edges][3]: one part per 32 channels; null: not wanted
};

enum class MessageStage { sums, gradient, second_by_sender, second_by_receiver };

// Rows of one edge or atom.
struct ThreeParts {
    float s, v, u;
};
MLFF_HOST_DEVICE inline ThreeParts three_parts(const float* rows, int64_t row, int64_t channels, int64_t channel) {
    const float* at = rows + row * 3 * channels + channel;
    return {at[0], at[channels], at[2 * channels]};
}
MLFF_HOST_DEVICE inline void store_parts(float* rows, int64_t row, int64_t channels, int64_t channel,
                                         const ThreeParts& value) {
    float* at = rows + row * 3 * channels + channel;
    at[0] = value.s;
    at[channels] = value.v;
    at[2 * channels] = value.u;
}

// scalars_i = sum of x_s,  vectors_i = sum of (x_v v_j + x_u u)
template <bool HasVectors>
MLFF_HOST_DEVICE void message_sums(const MessageEdges& edges, const MessageArrays& arrays, int64_t atom,
                                   int64_t channel) {
    const int64_t width = edges.channels;
    float scalar = 0, x = 0, y = 0, z = 0;
    for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
        const int64_t sender = edges.sender[edge];
        const float* u = edges.direction + 3 * edge;
        const ThreeParts w = three_parts(arrays.filter, edge, width, channel),
                         a = three_parts(arrays.phi, sender, width, channel);
        const float along = a.u * w.u;
        scalar += a.s * w.s;
        x += along * u[0];
        y += along * u[1];
        z += along * u[2];
        if constexpr (HasVectors) {
            const ThreeParts v = three_parts(arrays.v, sender, width, channel);  // x, y, z
            const float carried = a.v * w.v;
            x += carried * v.s;
            y += carried * v.v;
            z += carried * v.u;
        }
    }
    arrays.scalars[atom * width + channel] = scalar;
    store_parts(arrays.vectors, atom, width, channel, {x, y, z});
}

// Over the edges that `atom` sends. `sum_channels(edge, x, y, z)` sums over the channels.
template <bool HasVectors, bool WantsDirection, class SumChannels>
MLFF_HOST_DEVICE void message_gradient(const MessageEdges& edges, const MessageArrays& arrays, int64_t atom,
                                       int64_t channel, const SumChannels& sum_channels) {
    const int64_t width = edges.channels;
    const ThreeParts a = three_parts(arrays.phi, atom, width, channel);
    ThreeParts v{}, of_phi{}, of_v{};
    if constexpr (HasVectors) v = three_parts(arrays.v, atom, width, channel);
    for (int64_t back = edges.first[atom]; back < edges.first[atom + 1]; ++back) {
        const int64_t receiver = edges.sender[back], edge = edges.reverse[back];
        const float* u = edges.direction + 3 * edge;
        const ThreeParts w = three_parts(arrays.filter, edge, width, channel),
                         bv = three_parts(arrays.gv, receiver, width, channel);
        ThreeParts gx{arrays.gs[receiver * width + channel], 0, bv.s * u[0] + bv.v * u[1] + bv.u * u[2]};
        if constexpr (HasVectors) {
            gx.v = bv.s * v.s + bv.v * v.v + bv.u * v.u;
            const float carried = a.v * w.v;
            of_v.s += bv.s * carried;
            of_v.v += bv.v * carried;
            of_v.u += bv.u * carried;
        }
        of_phi.s += gx.s * w.s;
        of_phi.v += gx.v * w.v;
        of_phi.u += gx.u * w.u;
        store_parts(arrays.grad_filter, edge, width, channel, {gx.s * a.s, gx.v * a.v, gx.u * a.u});
        if constexpr (WantsDirection) {
            const float along = a.u * w.u;
            sum_channels(edge, bv.s * along, bv.v * along, bv.u * along);
        }
    }
    store_parts(arrays.grad_phi, atom, width, channel, of_phi);
    if constexpr (HasVectors) store_parts(arrays.grad_v, atom, width, channel, of_v);
}

// Second derivatives with respect to phi, filter and v: over the edges that `atom` sends.
template <bool HasVectors>
MLFF_HOST_DEVICE void message_second_by_sender(const MessageEdges& edges, const MessageArrays& arrays, int64_t atom,
                                               int64_t channel) {
    const int64_t width = edges.channels;
    const ThreeParts a = three_parts(arrays.phi, atom, width, channel),
                     ca = three_parts(arrays.of_phi, atom, width, channel);
    ThreeParts v{}, cy{}, of_phi{}, of_v{};
    if constexpr (HasVectors) {
        v = three_parts(arrays.v, atom, width, channel);
        cy = three_parts(arrays.of_v, atom, width, channel);
    }
    for (int64_t back = edges.first[atom]; back < edges.first[atom + 1]; ++back) {
        const int64_t receiver = edges.sender[back], edge = edges.reverse[back];
        const float *u = edges.direction + 3 * edge, *cu = arrays.cu + 3 * edge;
        const ThreeParts w = three_parts(arrays.filter, edge, width, channel),
                         cw = three_parts(arrays.cw, edge, width, channel),
                         bv = three_parts(arrays.gv, receiver, width, channel);
        const float gx_s = arrays.gs[receiver * width + channel], gx_u = bv.s * u[0] + bv.v * u[1] + bv.u * u[2];
        const float of_x_u = bv.s * cu[0] + bv.v * cu[1] + bv.u * cu[2];
        ThreeParts of_filter{ca.s * gx_s, 0, ca.u * gx_u + of_x_u * a.u};
        of_phi.s += cw.s * gx_s;
        of_phi.u += cw.u * gx_u + of_x_u * w.u;
        if constexpr (HasVectors) {
            const float gx_v = bv.s * v.s + bv.v * v.v + bv.u * v.u, of_x_v = bv.s * cy.s + bv.v * cy.v + bv.u * cy.u;
            const float p_v = ca.v * w.v + cw.v * a.v;
            of_filter.v = ca.v * gx_v + of_x_v * a.v;
            of_phi.v += cw.v * gx_v + of_x_v * w.v;
            of_v.s += bv.s * p_v;
            of_v.v += bv.v * p_v;
            of_v.u += bv.u * p_v;
        }
        store_parts(arrays.grad_filter, edge, width, channel, of_filter);
    }
    store_parts(arrays.grad_phi, atom, width, channel, of_phi);
    if constexpr (HasVectors) store_parts(arrays.grad_v, atom, width, channel, of_v);
}

// Second derivatives with respect to gs and gv: over the edges that `atom` receives.
template <bool HasVectors>
MLFF_HOST_DEVICE void message_second_by_receiver(const MessageEdges& edges, const MessageArrays& arrays, int64_t atom,
                                                 int64_t channel) {
    const int64_t width = edges.channels;
    float scalar = 0, x = 0, y = 0, z = 0;
    for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
        const int64_t sender = edges.sender[edge];
        const float *u = edges.direction + 3 * edge, *cu = arrays.cu + 3 * edge;
        const ThreeParts w = three_parts(arrays.filter, edge, width, channel),
                         cw = three_parts(arrays.cw, edge, width, channel),
                         a = three_parts(arrays.phi, sender, width, channel),
                         ca = three_parts(arrays.of_phi, sender, width, channel);
        const float p_u = ca.u * w.u + cw.u * a.u, along = a.u * w.u;
        scalar += ca.s * w.s + cw.s * a.s;
        x += p_u * u[0] + along * cu[0];
        y += p_u * u[1] + along * cu[1];
        z += p_u * u[2] + along * cu[2];
        if constexpr (HasVectors) {
            const ThreeParts v = three_parts(arrays.v, sender, width, channel),
                             cy = three_parts(arrays.of_v, sender, width, channel);
            const float p_v = ca.v * w.v + cw.v * a.v, carried = a.v * w.v;
            x += p_v * v.s + carried * cy.s;
            y += p_v * v.v + carried * cy.v;
            z += p_v * v.u + carried * cy.u;
        }
    }
    arrays.scalars[atom * width + channel] = scalar;
    store_parts(arrays.vectors, atom, width, channel, {x, y, z});
}

// `stream`: a cudaStream_t. Sets the rows of padding edges to zero.
void run_message_stage_cpu(MessageStage stage, const MessageEdges& edges, const MessageArrays& arrays);
void run_message_stage_cuda(MessageStage stage, const MessageEdges& edges, const MessageArrays& arrays,
                            void* stream);  // throws Error{device}
bool has_message_kernels_cuda();

}  // namespace mlff::train
