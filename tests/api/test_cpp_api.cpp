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

}  // namespace

int main() {
    test_evaluate();
    test_errors();
    test_threads();
    std::printf("%d failed\n", failures);
    return failures == 0 ? 0 : 1;
}
