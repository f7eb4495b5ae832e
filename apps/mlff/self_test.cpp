// SPDX-License-Identifier: MIT
#include "self_test.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>

#include "core/error.h"
#include "cpu_kernels/available_kernels.h"
#include "cpu_kernels/forced_kernels.h"
#include "frame_result.h"
#include "gpu/runtime/gpu.h"
#include "tools/validate/differences.h"
#include "tools/validate/systems.h"

namespace mlff::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsForTiming = 0.15;  // of each backend

struct SelfTestCase {
    Frame frame;
    FrameResult expected;
};

struct SelfTestModel {
    std::string name;
    std::shared_ptr<const Model> model;
    std::vector<SelfTestCase> cases;
};

std::unique_ptr<Session> session_on(const std::shared_ptr<const Model>& model, const std::string& device,
                                    Precision precision) {
    SessionOptions options;
    options.device = device;
    options.precision = precision;
    return std::make_unique<Session>(model, options);
}

SelfTestModel prepare(const std::string& name, const std::string& model_name) {
    SelfTestModel test = {name, load_model(model_name), {}};
    const auto reference = session_on(test.model, "reference", Precision::fp64);
    for (validate::TestSystem& system :
         validate::chosen_systems({"water", "benzene", "alanine-dipeptide"}, test.model->summary().elements)) {
        FrameResult expected = evaluate_frame(*reference, system.frame);
        test.cases.push_back({std::move(system.frame), std::move(expected)});
    }
    return test;
}

double milliseconds_of(Session& session, const Frame& frame) {
    int64_t count = 0;
    const auto begin = Clock::now();
    double seconds = 0;
    while (count < 3 || seconds < kSecondsForTiming) {
        evaluate_frame(session, frame);
        ++count;
        seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        if (seconds > 1) break;
    }
    return 1e3 * seconds / static_cast<double>(count);
}

BackendTest test_backend(const SelfTestModel& tested, const std::string& device, const std::string& kernels,
                         Precision precision, bool is_timed) {
    BackendTest test;
    test.model = tested.name;
    test.device = device;
    test.kernels = kernels;
    test.precision = precision_name(precision);
    test.limit = precision == Precision::fp64 ? 1e-7 : precision == Precision::fast ? 3e-2 : 1e-4;
    try {
        const auto session = session_on(tested.model, device, precision);
        validate::ForceDifferences forces;
        for (const SelfTestCase& one : tested.cases)
            forces.add_frame(0, one.frame.atomic_numbers, evaluate_frame(*session, one.frame).forces,
                             one.expected.forces);
        test.force_difference = forces.lengths().largest();
        if (is_timed) test.milliseconds = milliseconds_of(*session, tested.cases.back().frame);
        if (!(test.force_difference <= test.limit))
            test.why_failed = concat("its forces differ from the reference by ", test.force_difference,
                                     " eV/A, allowed ", test.limit);
    } catch (const std::exception& error) {
        test.why_failed = error.what();
    }
    return test;
}

}  // namespace

std::vector<BackendTest> test_backends() {
    const std::vector<SelfTestModel> models = {prepare("student", "builtin"), prepare("MACE", "self-test")};
    std::vector<BackendTest> tests;
    const auto test_all = [&](const std::string& device, const std::string& kernels, bool is_timed) {
        std::vector<Precision> precisions = {Precision::mixed, Precision::fp64};
        if (kernels.empty()) precisions.push_back(Precision::fast);  // a GPU
        for (const SelfTestModel& model : models)
            for (const Precision precision : precisions)
                tests.push_back(test_backend(model, device, kernels, precision, is_timed));
    };
    const char* forced = std::getenv("MLFF_CPU");
    if (forced && *forced) {
        test_all("cpu", forced, true);
    } else {
        bool is_best = true;
        for (const kernels::KernelTable<float>& table : kernels::available_kernels<float>()) {
            const std::string name(table.name);
            const kernels::ForcedKernels kernels(name);
            test_all("cpu", name, is_best);
            is_best = false;
        }
    }
    for (size_t i = 0; i < gpu_inventory().gpus.size(); ++i) test_all("cuda:" + std::to_string(i), "", true);
    return tests;
}

}  // namespace mlff::app
