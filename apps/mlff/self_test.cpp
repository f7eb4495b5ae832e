// SPDX-License-Identifier: MIT
#include "self_test.h"

#include <chrono>
#include <cmath>
#include <memory>

#include "core/error.h"
#include "device/gpu.h"
#include "frame_result.h"
#include "validate/differences.h"
#include "validate/systems.h"

namespace mlff::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsForTiming = 0.15;  // of each backend

struct SelfTestCase {
    Frame frame;
    FrameResult expected;
};

std::unique_ptr<Session> session_on(const std::shared_ptr<const Model>& model, const std::string& device, Precision precision) {
    SessionOptions options;
    options.device = device;
    options.precision = precision;
    return std::make_unique<Session>(model, options);
}

BackendTest test_backend(const std::shared_ptr<const Model>& model, const std::vector<SelfTestCase>& cases, const std::string& device, Precision precision) {
    BackendTest test;
    test.device = device;
    test.precision = precision_name(precision);
    test.limit = precision == Precision::fp64 ? 1e-7 : 1e-4;
    try {
        const auto session = session_on(model, device, precision);
        validate::ForceDifferences forces;
        for (const SelfTestCase& one : cases) forces.add_frame(0, one.frame.atomic_numbers, evaluate_frame(*session, one.frame).forces, one.expected.forces);
        test.force_difference = forces.lengths().largest();
        int64_t count = 0;
        const auto begin = Clock::now();
        double seconds = 0;
        while (count < 3 || seconds < kSecondsForTiming) {
            evaluate_frame(*session, cases.back().frame);
            ++count;
            seconds = std::chrono::duration<double>(Clock::now() - begin).count();
            if (seconds > 1) break;
        }
        test.milliseconds = 1e3 * seconds / static_cast<double>(count);
        if (!(test.force_difference <= test.limit)) test.why_failed = concat("its forces differ from the reference by ", test.force_difference, " eV/A, allowed ", test.limit);
    } catch (const std::exception& error) {
        test.why_failed = error.what();
    }
    return test;
}

}  // namespace

std::vector<BackendTest> test_backends() {
    const auto model = load_model("builtin");
    const auto reference = session_on(model, "reference", Precision::fp64);
    std::vector<SelfTestCase> cases;
    for (validate::TestSystem& system : validate::chosen_systems({"water", "benzene", "alanine-dipeptide"}, model->summary().elements)) {
        FrameResult expected = evaluate_frame(*reference, system.frame);
        cases.push_back({std::move(system.frame), std::move(expected)});
    }
    std::vector<BackendTest> tests;
    std::vector<std::string> devices = {"cpu"};
    for (size_t i = 0; i < gpu_inventory().gpus.size(); ++i) devices.push_back("cuda:" + std::to_string(i));
    for (const std::string& device : devices)
        for (Precision precision : {Precision::mixed, Precision::fp64}) tests.push_back(test_backend(model, cases, device, precision));
    return tests;
}

}  // namespace mlff::app
