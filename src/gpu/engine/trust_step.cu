// SPDX-License-Identifier: MIT
#include "gpu/engine/trust_step.h"

#include "core/error.h"
#include "gpu/engine/step_evaluator.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/reduction.cuh"
#include "trust/measure.h"

namespace mlff::gpu {
namespace {

constexpr const char* kPurpose = "the trust meter";
constexpr int kLanesPerAtom = 8;  // that share the edges of an atom
static_assert(trust::kMostComponents <= 32, "one lane of a warp per component");

struct ScoredAtoms {
    int64_t count = 0;
    const int32_t* elements = nullptr;        // [atom]: of the model
    const int32_t* meter_elements = nullptr;  // [element of the model]
    const double* descriptors = nullptr;      // [atom][D]
    trust::AtomScore* scores = nullptr;
    double *atom_errors = nullptr, *novelties = nullptr;
};

// A warp for an atom, a lane for a component. `components` is shared memory of the warp. Lane 0 gets the result.
__device__ __forceinline__ trust::AtomScore score_by_warp(const trust::MeterView& meter, int element,
                                                          const double* descriptors, int lane, float* components) {
    const int width = meter.descriptor_count, count = meter.component_count;
    const float* const center = meter.centers + static_cast<int64_t>(element) * width;
    float component = 0;
    double squared_length = 0;
    for (int first = 0; first < width; first += 32) {
        const int own = first + lane, end = width - first < 32 ? width - first : 32;
        const float difference = own < width ? static_cast<float>(descriptors[own]) - center[own] : 0.0f;
        squared_length += static_cast<double>(difference) * difference;
        const float* direction = meter.directions + static_cast<int64_t>(first) * count + lane;
        for (int d = 0; d < end; ++d, direction += count) {
            const float there = __shfl_sync(kAllLanes, difference, d);
            if (lane < count) component += *direction * there;
        }
    }
    components[lane] = static_cast<float>(trust::limited(component));
    __syncwarp();
    trust::ScoreSums sums;
    if (lane < count) {
        double row = meter.linear[lane];
        for (int i = 0; i <= lane; ++i) row += pairs_of(meter, i)[lane] * components[i];
        add_component(meter, lane, component, row, sums);
    }
    sums.inside = sum_over_warp(sums.inside);
    sums.distance = sum_over_warp(sums.distance);
    sums.score = sum_over_warp(sums.score);
    return score_of(meter, element, sums, sum_over_warp(squared_length));
}

__global__ void __launch_bounds__(kBlockThreads) score_kernel(trust::MeterView meter, ScoredAtoms atoms) {
    mlff::gpu::await_predecessor();
    __shared__ float components[kWarps][32];
    const WarpOfAtom my;
    if (my.atom >= atoms.count) return;
    const int element = atoms.meter_elements[atoms.elements[my.atom]];
    trust::AtomScore score = unseen_score(meter);
    if (element >= 0)
        score = score_by_warp(meter, element, atoms.descriptors + my.atom * meter.descriptor_count, my.lane,
                              components[threadIdx.x / 32]);
    if (my.lane != 0) return;
    atoms.scores[my.atom] = score;
    atoms.atom_errors[my.atom] = exp(score.score);
    atoms.novelties[my.atom] = score.novelty;
}

// Launch: kLanesPerAtom threads per atom.
__global__ void __launch_bounds__(kBlockThreads)
    expected_errors_kernel(trust::MeterView meter, ScoredAtoms atoms, StepEdges edges, double* expected_errors) {
    mlff::gpu::await_predecessor();
    const int64_t thread = blockIdx.x * int64_t{kBlockThreads} + threadIdx.x, atom = thread / kLanesPerAtom;
    const int lane = static_cast<int>(thread % kLanesPerAtom);
    double weight = 0, weighted = 0;
    const int64_t end = atom < atoms.count ? edges.first[atom + 1] : 0;
    for (int64_t edge = atom < atoms.count ? edges.first[atom] + lane : 0; edge < end; edge += kLanesPerAtom) {
        const double distance = edges.distance[edge];
        if (!(distance < meter.radius)) continue;
        const double w = trust::weight_at(distance, meter.radius);
        weight += w;
        weighted += w * atoms.atom_errors[edges.sender[edge]];
    }
#pragma unroll
    for (int apart = kLanesPerAtom / 2; apart >= 1; apart /= 2) {
        weight += __shfl_xor_sync(kAllLanes, weight, apart);
        weighted += __shfl_xor_sync(kAllLanes, weighted, apart);
    }
    if (atom < atoms.count && lane == 0)
        expected_errors[atom] = trust::expected_error(meter, atoms.meter_elements[atoms.elements[atom]],
                                                      atoms.scores[atom], weight, weighted);
}

struct MeasuredAtoms {
    const double *expected_errors, *novelties;
    double alarm_error;
    __device__ void add(int64_t atom, TrustSum& sum) const {
        sum.merge(
            {expected_errors[atom], trust::is_outside(alarm_error, expected_errors[atom], novelties[atom]) ? 1 : 0});
    }
};

}  // namespace

TrustStep::TrustStep(const TrustMeter& meter, const StepModelFacts& facts, cudaStream_t stream) {
    if (meter.descriptor_count != facts.descriptor_count)
        fail(Status::format, "the trust meter reads ", meter.descriptor_count, " descriptors, and the model has ",
             facts.descriptor_count);
    std::vector<double> numbers;
    std::vector<size_t> begins;
    for (const std::vector<double>* part :
         {&meter.variances, &meter.limits, &meter.offsets, &meter.linear, &meter.quadratic, &meter.final_offsets}) {
        begins.push_back(numbers.size());
        numbers.insert(numbers.end(), part->begin(), part->end());
    }
    std::vector<int32_t> elements;
    for (const int z : facts.atomic_numbers) elements.push_back(meter.element_of(z));
    centers_.upload(meter.centers.data(), static_cast<int64_t>(meter.centers.size()), kPurpose, stream);
    directions_.upload(meter.directions.data(), static_cast<int64_t>(meter.directions.size()), kPurpose, stream);
    numbers_.upload(numbers.data(), static_cast<int64_t>(numbers.size()), kPurpose, stream);
    elements_.upload(elements.data(), static_cast<int64_t>(elements.size()), kPurpose, stream);
    sums_.resize_discard(kMostReductionBlocks + 1, kPurpose);

    view_ = view_of(meter);
    view_.centers = centers_.data();
    view_.directions = directions_.data();
    const double** const pointers[] = {&view_.variances, &view_.limits,    &view_.offsets,
                                       &view_.linear,    &view_.quadratic, &view_.final_offsets};
    for (size_t i = 0; i < begins.size(); ++i) *pointers[i] = numbers_.data() + begins[i];
}

void TrustStep::list_buffers(BufferList& list, const StepSize& size) {
    if (!size.wanted.trust) return;
    list.add(scores_, size.atoms, kPurpose);
    list.add(atom_errors_, size.atoms, kPurpose);
}

void TrustStep::enqueue(const StepEdges& edges, StepResults& results, cudaStream_t stream) {
    const int64_t count = edges.atom_count;
    use_listed(scores_, count, kPurpose);
    use_listed(atom_errors_, count, kPurpose);
    use_listed(results.expected_errors, count, kPurpose);
    use_listed(results.novelties, count, kPurpose);
    if (count == 0) return;
    const ScoredAtoms atoms = {count,          edges.elements,      elements_.data(),        results.descriptors.data(),
                               scores_.data(), atom_errors_.data(), results.novelties.data()};
    launch("the trust meter", score_kernel, blocks_of_atoms(count), kBlockThreads, stream, view_, atoms);
    launch("the trust meter", expected_errors_kernel, (count * kLanesPerAtom + kBlockThreads - 1) / kBlockThreads,
           kBlockThreads, stream, view_, atoms, edges, results.expected_errors.data());
}

const TrustReading* TrustStep::enqueue_reading(int64_t atom_count, const StepResults& results, cudaStream_t stream) {
    reduce<TrustSum>(MeasuredAtoms{results.expected_errors.data(), results.novelties.data(), view_.alarm_error},
                     atom_count, sums_.data(), stream);
    return sums_.data() + kMostReductionBlocks;
}

}  // namespace mlff::gpu
