// SPDX-License-Identifier: MIT
// mlff.hpp as a user compiles it (C++17, linked to the shared library), and sessions on several threads at once.
#include <cmath>
#include <cstdio>
#include <mlff/mlff.hpp>
#include <thread>

namespace {

int failures = 0;

void check(bool condition, const char* what) {
    if (condition) return;
    ++failures;
    std::printf("failed: %s\n", what);
}

mlff::Atoms water(double stretch) {
    mlff::Atoms atoms;
    atoms.numbers = {8, 1, 1};
    atoms.positions = {0, 0, 0, 0.96 * stretch, 0, 0, -0.24, 0.93, 0};
    return atoms;
}

void test_evaluate() {
    mlff::Model model("analytic");
    check(model.class_name() == "AnalyticPairPotential", "class name");
    check(model.heads().size() == 1 && model.elements().front() == 1, "heads and elements");
    mlff::Session session(model);
    const mlff::Evaluation found = session.evaluate(water(1));
    check(std::isfinite(found.energy) && found.forces.size() == 9 && !found.stress, "a molecule");

    const double step = 1e-4;
    const double slope =
        (session.evaluate(water(1 + step)).energy - session.evaluate(water(1 - step)).energy) / (2 * step * 0.96);
    check(std::abs(found.forces[3] + slope) <= 1e-6, "the force is the slope of the energy");

    mlff::Atoms crystal = water(1);
    crystal.cell = {{4, 0, 0, 0, 4, 0, 0, 0, 4}};
    crystal.periodic = {true, true, true};
    const auto batch = session.evaluate(std::vector<mlff::Atoms>{water(1), crystal});
    check(batch[0].energy == found.energy, "a batch gives what a single call gives");
    check(batch[1].stress && std::abs((*batch[1].stress)[0] + batch[1].virial[0] / 64) <= 1e-12, "stress of a crystal");

    mlff::Session moved = std::move(session);
    check(moved.evaluate(water(1)).energy == found.energy, "a moved session works");
}

void test_hessian() {
    mlff::Options options;
    options.device = "cpu";
    options.precision = MLFF_PRECISION_FP64;
    mlff::Session session(mlff::Model("analytic"), options);
    mlff_hessian_report report{};
    const std::vector<double> all = session.hessian(water(1), {1e-3, -1}, &report), plain = session.hessian(water(1));
    check(all.size() == 81 && report.operation_count == 1, "a Hessian without symmetry");
    for (size_t i = 0; i < 81; ++i) check(std::abs(all[i] - plain[i]) <= 1e-3, "the same with the defaults");
}

void test_committee() {
    mlff::Options options;
    options.device = "cpu";
    mlff::Session committee(mlff::Model("builtin,self-test"), options), single(mlff::Model("builtin"), options);
    const mlff::Evaluation found = committee.evaluate(water(1));
    check(found.spread && found.spread->forces.size() == 3, "the spread of a committee");
    double largest = 0;
    for (const double sigma : found.spread->forces) largest = sigma > largest ? sigma : largest;
    check(largest > 0 && found.spread->max_force == largest && found.spread->energy_per_atom > 0, "its numbers");
    check(!single.evaluate(water(1)).spread, "a single model has none");
}

void test_trust(const std::string& path) {
    mlff::Options options;
    options.device = "cpu";
    const mlff::Model model(path);
    check(model.info().has_trust_meter == 1 && model.info().alarm_error > 0, "a model with a trust meter");
    mlff::Session session(model, options);
    const mlff::Evaluation found = session.evaluate(water(1));
    check(found.trust && found.trust->expected_errors.size() == 3 && found.trust->novelties.size() == 3, "its words");
    if (found.trust)
        for (const double number : found.trust->expected_errors) check(number > 0 && number < 100, "an expected error");
    const auto batch = session.evaluate(std::vector<mlff::Atoms>{water(1.1), water(1)});
    check(batch[1].trust && found.trust && batch[1].trust->novelties == found.trust->novelties, "in a batch");
    options.want_trust = false;
    check(!mlff::Session(model, options).evaluate(water(1)).trust, "it can be left out");
    options.want_trust = true;
    check(!mlff::Session(mlff::Model("self-test"), options).evaluate(water(1)).trust, "a model without one");
}

void test_errors() {
    try {
        mlff::Model model("/no/such/file");
        check(false, "a missing file throws");
    } catch (const mlff::StatusError& error) {
        check(error.status() == MLFF_ERROR_FILE && std::string(error.what()).find("/no/such/file") != std::string::npos,
              "its message");
    }
    mlff::Session session(mlff::Model("analytic"));
    mlff::Atoms atoms = water(1);
    atoms.positions.pop_back();
    try {
        session.evaluate(atoms);
        check(false, "missing coordinates throw");
    } catch (const std::invalid_argument&) {}
}

// One model, a session for each thread, and an error message for each thread.
void test_threads() {
    mlff::Model model("analytic");
    mlff::Options options;
    options.thread_count = 1;
    const double expected = mlff::Session(model, options).evaluate(water(1)).energy;
    std::vector<double> found(8);
    std::vector<std::string> messages(8);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            mlff::Session session(model, options);
            for (int i = 0; i < 50; ++i) found[t] = session.evaluate(water(1)).energy;
            mlff_model* none = nullptr;
            mlff_model_load(("/no/such/file/" + std::to_string(t)).c_str(), &none);
            std::this_thread::yield();
            messages[t] = mlff_last_error();
        });
    for (auto& thread : threads) thread.join();
    for (size_t t = 0; t < 8; ++t) {
        check(found[t] == expected, "threads agree");
        check(messages[t].find("/no/such/file/" + std::to_string(t)) != std::string::npos,
              "each thread has its own last error");
    }
}

void test_devices_and_measurements() {
    check(mlff::device_info("cpu").core_count >= 1 && mlff::device_memory("cpu").process_bytes > 0, "the CPU");
    mlff::Stream stream;  // of a GPU where there is one
    check((stream.handle() == nullptr) == (mlff_device_count() == 0), "only GPUs have streams");
    mlff::Timer timer("auto", stream.handle());
    timer.start();
    stream.synchronize();
    mlff::synchronize();
    timer.stop();
    check(timer.seconds() >= 0 && timer.seconds() < 10, "a timer");

    int first = 0, second = 0;
    mlff::MeasureOptions options;
    options.warm_up_calls = 1;
    options.warm_up_seconds = -1;
    options.least_samples = options.most_samples = 4;
    const auto times = mlff::measure({[&] { ++first; }, [&] { ++second; }}, options);
    check(times.size() == 2 && times[0].size() == 4 && times[1].size() == 4, "two functions, four samples of each");
    check(first == 9 && second == 9, "one call to warm up, and short ones are called twice for a sample");
    check(mlff::measure([&] { ++first; }, options).size() == 4 && first == 14, "one function");
    options.warm_up_calls = 0;
    options.warm_up_seconds = 0;
    first = second = 0;
    mlff::measure({[&] { ++first; }, [&] { ++second; }}, options);
    check(first == 4 && second == 4, "0 is no warm-up, and then nothing is called twice");
    options.warm_up_calls = 1;
    for (const int most : {0, 3}) {
        try {
            options.most_samples = most;
            mlff::measure([] {}, options);
            check(false, "too few samples throw");
        } catch (const std::invalid_argument&) {
            options.most_samples = 4;
        }
    }
    const mlff_statistics found = mlff::statistics({1, 2, 4});
    check(found.median == 2 && found.maximum == 4 && found.sample_count == 3, "statistics");
    try {
        mlff::measure([] { throw std::out_of_range("mine"); }, options);
        check(false, "what a function throws arrives");
    } catch (const std::out_of_range& error) {
        check(std::string(error.what()) == "mine", "what was thrown");
    }
    options.device = "toaster";
    try {
        mlff::measure([] {}, options);
        check(false, "a device that is none throws");
    } catch (const mlff::StatusError& error) {
        check(error.status() == MLFF_ERROR_ARGUMENT, "its status");
    }

    mlff::MemoryWatch watch;
    for (int i = 0; i < 5; ++i) watch.read();
    const mlff_memory_report report = watch.report();
    check(report.reading_count == 6 && report.is_leak == 0 && report.peak_bytes >= report.last_bytes, "a watch");
}

}  // namespace

// Usage: test_cpp_api MODEL, which has a trust meter
int main(int argc, char** argv) {
    if (argc != 2) return 2;
    test_evaluate();
    test_hessian();
    test_committee();
    test_trust(argv[1]);
    test_errors();
    test_threads();
    test_devices_and_measurements();
    std::printf("%d failed\n", failures);
    return failures == 0 ? 0 : 1;
}
