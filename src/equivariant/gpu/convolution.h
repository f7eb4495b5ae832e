// SPDX-License-Identifier: MIT
// The messages of one layer on the GPU: a copy of the host's plan, in one of three forms. For CUDA sources only.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "equivariant/gpu/fused_messages.h"
#include "equivariant/gpu/linear.h"
#include "equivariant/gpu/messages.h"
#include "equivariant/gpu/moments.h"
#include "equivariant/plan/convolution_plan.h"
#include "gpu/engine/buffer_list.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::equivariant::gpu {

// Fused messages exist in single precision only.
template <class Real>
inline constexpr bool kCanFuse = sizeof(Real) == 4;

struct MessageOptions {
    bool are_fused = false, is_fast = false;
};

template <class Real>
struct DeviceConvolution {
    // The plan must outlive it. `below` is the layout of the features that the layer reads. Messages are multiplied by
    // `factor`.
    DeviceConvolution(const ConvolutionPlan<Real>& plan_in, const RowLayout& below, int harmonic_count, double factor,
                      const MessageOptions& options, cudaStream_t stream)
        : up(plan_in.messages.up, below, plan_in.sender_layout, stream),
          message(scaled_by(factor, plan_in.messages.message), plan_in.sums_layout, plan_in.linear_layout, stream),
          plan_(plan_in),
          factor_(factor) {
        if (plan_in.moments)
            moments.emplace(plan_in, harmonic_count, stream);
        else if (!options.are_fused)
            messages.emplace(plan_in, harmonic_count, stream);
        else if constexpr (kCanFuse<Real>)
            fused.emplace(plan_in, harmonic_count, options.is_fast, stream);
    }

    DeviceLinear<Real> up, message;
    // Exactly one of these three is there.
    std::optional<FusedMessages> fused;
    std::optional<DeviceMoments<Real>> moments;
    std::optional<DeviceMessages<Real>> messages;

    // Copies what the plan has prepared for these elements.
    void prepare(const std::vector<int>& elements, cudaStream_t stream) {
        if (fused) fused->prepare(stream);
        if (messages) messages->prepare(stream);
        if (!moments) return;
        moments->prepare(stream);
        for (int z : elements)
            if (!moment_maps_.contains(z))
                moment_maps_.try_emplace(z, scaled_by(factor_, plan_.moments->plain_map(z)), plan_.moments->layout(),
                                         plan_.linear_layout, stream);
    }

    // ---- moments of the edges of senders of these elements, and messages from them ----

    // Sums over senders of a few elements at a time, whose moments are in memory: [element][atom][...].
    static size_t senders_at_once(std::span<const int> elements) {
        return std::min<size_t>(DeviceMoments<Real>::kMostSenders, elements.size());
    }
    void list_moments(BufferList& list, mlff::gpu::DeviceBuffer<Real>& memory, int64_t atom_count,
                      std::span<const int> elements) const {
        list.add(memory, moments_size(atom_count, elements), kAtomFeatures);
    }
    struct MomentTask {
        const EdgesView<Real>& edges;
        const TilesView& tiles;
        std::span<const int> elements;
        mlff::gpu::DeviceBuffer<Real>& memory;
    };
    void compute_moments(const MomentTask& task, Real* densities, RowsView<Real> out, cudaStream_t stream) const {
        for_senders(task, [&](std::span<const int> elements, bool is_first) {
            moments->compute(task.edges, elements, task.memory.data(), is_first ? densities : nullptr, stream);
            typename DeviceLinear<Real>::Call calls[DeviceMoments<Real>::kMostSenders];
            for (size_t i = 0; i < elements.size(); ++i) {
                const RowsView<Real> rows = moment_rows(task, i);
                calls[i] = moment_maps_.at(elements[i]).forward({rows.first, rows.size, nullptr});
            }
            const typename DeviceLinear<Real>::Sum sum = {std::span(calls, elements.size()), out, !is_first};
            DeviceLinear<Real>::run({&sum, 1}, task.tiles, stream);
        });
    }
    void reverse_moments(const MomentTask& task, RowsView<const Real> gradient, const Real* densities_gradient,
                         const EdgeGradientsView<Real>& gradients, bool accumulate, cudaStream_t stream) const {
        for_senders(task, [&](std::span<const int> elements, bool) {
            typename DeviceLinear<Real>::Call calls[DeviceMoments<Real>::kMostSenders];
            typename DeviceLinear<Real>::Sum sums[DeviceMoments<Real>::kMostSenders];
            for (size_t i = 0; i < elements.size(); ++i) {
                calls[i] = moment_maps_.at(elements[i]).transposed(gradient);
                sums[i] = {std::span(calls + i, 1), moment_rows(task, i)};
            }
            DeviceLinear<Real>::run(std::span(sums, elements.size()), task.tiles, stream);
            moments->reverse(task.edges, elements, task.memory.data(), densities_gradient, gradients, accumulate,
                             stream);
        });
    }

    static constexpr const char* kAtomFeatures = "the features of the atoms";

private:
    static Linear scaled_by(double factor, Linear map) {
        for (Linear::Path& path : map.paths)
            for (double& weight : path.weight) weight *= factor;
        for (double& number : map.bias) number *= factor;
        return map;
    }

    int64_t moments_size(int64_t atom_count, std::span<const int> elements) const {
        return atom_count * static_cast<int64_t>(senders_at_once(elements)) * plan_.moments->layout().size;
    }
    // Calls action(elements, is_first).
    template <class Action>
    void for_senders(const MomentTask& task, const Action& action) const {
        const std::span<const int> all = task.elements;
        mlff::gpu::use_listed(task.memory, moments_size(task.edges.atom_count, all), kAtomFeatures);
        constexpr size_t kAtOnce = DeviceMoments<Real>::kMostSenders;
        for (size_t i = 0; i < all.size(); i += kAtOnce)
            action(all.subspan(i, std::min(kAtOnce, all.size() - i)), i == 0);
    }
    // The moments for element number `index` of those passed to the action.
    RowsView<Real> moment_rows(const MomentTask& task, size_t index) const {
        const int size = plan_.moments->layout().size;
        return {task.memory.data() + static_cast<int64_t>(index) * task.edges.atom_count * size, size, nullptr};
    }

    const ConvolutionPlan<Real>& plan_;
    double factor_;
    std::map<int, DeviceLinear<Real>> moment_maps_;  // by the sender's element
};

}  // namespace mlff::equivariant::gpu
