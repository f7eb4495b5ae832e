// SPDX-License-Identifier: MIT
// The trust meter of a model in steps on the GPU; trust/measure.h is the same on the CPU. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include "gpu/engine/step_model.h"
#include "gpu/runtime/device_buffer.h"
#include "potential/outputs.h"
#include "trust/formulas.h"
#include "trust/meter.h"

namespace mlff::gpu {

struct TrustSum : TrustReading {
    MLFF_HOST_DEVICE void merge(const TrustReading& other) {
        const bool is_nan = other.max_expected_error != other.max_expected_error;
        if (is_nan || other.max_expected_error > max_expected_error) max_expected_error = other.max_expected_error;
        outside_count += other.outside_count;
    }
};

class TrustStep {
public:
    // The meter must have been fitted to this model.
    TrustStep(const TrustMeter& meter, const StepModelFacts& facts, cudaStream_t stream);

    void list_buffers(BufferList& list, const StepSize& size);
    // From results.descriptors to results.expected_errors and results.novelties.
    void enqueue(const StepEdges& edges, StepResults& results, cudaStream_t stream);
    // Sums these up. Returns where on the device.
    const TrustReading* enqueue_reading(int64_t atom_count, const StepResults& results, cudaStream_t stream);

private:
    trust::MeterView view_;  // pointers to the tables below
    DeviceBuffer<float> centers_, directions_;
    DeviceBuffer<double> numbers_;           // all other arrays of the meter
    DeviceBuffer<int32_t> elements_;         // [element of the model]: of the meter, or -1: not seen
    DeviceBuffer<trust::AtomScore> scores_;  // [atom]
    DeviceBuffer<double> atom_errors_;       // [atom]: exp(score)
    DeviceBuffer<TrustSum> sums_;
};

}  // namespace mlff::gpu
