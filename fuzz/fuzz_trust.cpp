// SPDX-License-Identifier: MIT
// Reads arbitrary bytes as a trust meter. One that is accepted has arrays of the right sizes and finite numbers, and
// measures atoms: whatever it says of them, it reads nothing beyond its arrays.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "core/error.h"
#include "trust/measure.h"
#include "trust/meter.h"

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

template <class T>
void check_numbers(const std::vector<T>& numbers, size_t count) {
    require(numbers.size() == count);
    for (const T number : numbers) require(std::isfinite(number));
}

void check_meter(const mlff::TrustMeter& meter) {
    require(meter.descriptor_count >= 1 && meter.component_count >= 1 &&
            meter.component_count <= mlff::trust::kMostComponents && !meter.elements.empty());
    const size_t width = static_cast<size_t>(meter.descriptor_count), elements = meter.elements.size(),
                 components = static_cast<size_t>(meter.component_count);
    check_numbers(meter.centers, elements * width);
    check_numbers(meter.directions, width * components);
    check_numbers(meter.variances, components);
    check_numbers(meter.limits, elements);
    check_numbers(meter.offsets, elements);
    check_numbers(meter.linear, components);
    check_numbers(meter.quadratic, components * (components + 1) / 2);
    check_numbers(meter.final_offsets, elements);
    for (const double limit : meter.limits) require(limit > 0);
    require(meter.radius > 0 && meter.rest_variance > 0 && meter.lowest_score <= meter.highest_score);
    for (size_t e = 0; e < elements; ++e) require(meter.element_of(meter.elements[e]) == static_cast<int>(e));
}

void measure_water(const mlff::TrustMeter& meter) {
    const std::vector<int32_t> numbers = {meter.elements.front(), meter.elements.back(), 1};
    const std::vector<double> positions = {0, 0, 0, 0.9, 0.1, 0, -0.3, 1.1, 0.2};
    mlff::SystemView system;
    system.atom_count = 3;
    system.atomic_numbers = numbers.data();
    system.positions = positions.data();
    mlff::NeighborOptions options;
    options.cutoff = 5;
    static mlff::NeighborList neighbors(options);
    static mlff::ThreadTeam team(1);
    neighbors.update(system, team);
    const std::vector<double> descriptors(3 * static_cast<size_t>(meter.descriptor_count), 0.5);
    std::vector<double> expected_errors(3), novelties(3);
    mlff::TrustMeasurement().measure(meter, numbers.data(), descriptors.data(), neighbors.edges(),
                                     expected_errors.data(), novelties.data(), team);
    for (const double novelty : novelties) require(!(novelty < 0));
    for (const double error : expected_errors) require(!(error < 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const mlff::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    try {
        const mlff::TrustMeter meter = mlff::read_trust_meter(mlff::read_safetensors(bytes, "fuzz"), "fuzz");
        check_meter(meter);
        measure_water(meter);
    } catch (const mlff::Error&) {}
    return 0;
}
