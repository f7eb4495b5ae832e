// SPDX-License-Identifier: MIT
// What the trainer wrote, run by the engines; and the embedded student as chemistry.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "../tags.h"
#include "close.h"
#include "core/elements.h"
#include "core/error.h"
#include "engine/session.h"
#include "formats/extxyz.h"
#include "test_gpu_support.h"
#include "test_mace_support.h"

using namespace mlff;

namespace {

struct Found {
    double energy = NAN;
    std::vector<double> forces, atom_energies, stress;
};

Found evaluate(Session& session, const SystemView& system) {
    const auto atoms = static_cast<size_t>(system.atom_count);
    Found found;
    found.forces.assign(3 * atoms, NAN);
    found.atom_energies.assign(atoms, NAN);
    Results results;
    results.outputs.energy = &found.energy;
    results.outputs.forces = found.forces.data();
    results.outputs.atom_energies = found.atom_energies.data();
    if (system.is_periodic()) {
        found.stress.assign(6, NAN);
        results.stress = found.stress.data();
    }
    session.evaluate({&system, 1}, {&results, 1});
    return found;
}

Session session_on(const std::shared_ptr<const Model>& model, const std::string& device, Precision precision) {
    SessionOptions options;
    options.device = device;
    options.precision = precision;
    options.thread_count = 2;
    return Session(model, options);
}

struct Molecule {
    std::vector<int32_t> numbers;
    std::vector<double> positions;

    SystemView view() const {
        SystemView system;
        system.atom_count = static_cast<int64_t>(numbers.size());
        system.atomic_numbers = numbers.data();
        system.positions = positions.data();
        return system;
    }
};

Found evaluate_pair(Session& session, int32_t first, int32_t second, double distance) {
    return evaluate(session, Molecule{{first, second}, {0, 0, 0, distance, 0, 0}}.view());
}

const Molecule kWaterDimer = {{8, 1, 1, 8, 1, 1},
                              {0, 0, 0, 0.969, 0, 0, -0.2341, 0.9403, 0, 2.85, 0, 0, 3.2, 0.6, 0.68, 3.2, 0.6, -0.68}};

const Molecule kEthanol = {
    {6, 6, 8, 1, 1, 1, 1, 1, 1},
    {-0.854, 0.224,  0.242, 0.387, -0.359, -0.401, 1.532,  0.384, -0.007, -1.748, -0.328, -0.065, -0.975, 1.276,
     -0.036, -0.777, 0.189, 1.333, 0.528,  -1.403, -0.108, 0.310, -0.314, -1.492, 1.597,  0.331,  0.961}};

}  // namespace

TEST_CASE("models of the trainer give the trainer's numbers on every device") {
    struct Engine {
        const char* device;
        Precision precision;
        double tolerance;  // of energies per atom and, relative to the largest or 1, of forces and stresses
    };
    std::vector<Engine> engines = {
        {"reference", Precision::fp64, 1e-11}, {"cpu", Precision::fp64, 1e-7}, {"cpu", Precision::mixed, 1e-5}};
    if (has_gpu()) engines.insert(engines.end(), {{"cuda", Precision::fp64, 1e-7}, {"cuda", Precision::mixed, 1e-5}});
    const std::filesystem::path folder = MLFF_TRAINER_GOLDEN_DIR;
    for (const std::string name : {"f32_b2_r8", "f32_b3_r20_no_repulsion"})
        for (const std::string frames_name : {"molecule", "box", "alone"}) {
            CAPTURE(name);
            CAPTURE(frames_name);
            std::ifstream file(folder / (name + "." + frames_name + ".json"));
            const nlohmann::json golden = nlohmann::json::parse(file);
            const std::vector<Frame> frames = read_extxyz((folder / (frames_name + ".xyz")).string());
            const auto model = load_model((folder / (name + ".safetensors")).string());
            REQUIRE(frames.size() == golden["frames"].size());
            for (const Engine& engine : engines) {
                CAPTURE(engine.device);
                Session session = session_on(model, engine.device, engine.precision);
                for (size_t f = 0; f < frames.size(); ++f) {
                    const nlohmann::json& expected = golden["frames"][f];
                    const Found found = evaluate(session, frames[f].view());
                    const std::vector<double> forces = mace_test::flat(expected["forces"]),
                                              energies = expected["atom_energies"].get<std::vector<double>>();
                    CHECK(std::abs(found.energy - expected["energy"].get<double>()) <=
                          engine.tolerance * static_cast<double>(energies.size()) * 10);
                    CHECK_ALL_CLOSE(found.atom_energies, energies, engine.tolerance * 10);
                    CHECK_ALL_CLOSE(found.forces, forces,
                                    engine.tolerance * std::max(1.0, mace_test::largest_size(forces)));
                    if (!expected["stress"].is_null())
                        CHECK_ALL_CLOSE(found.stress, expected["stress"].get<std::vector<double>>(), engine.tolerance);
                }
            }
        }
}

TEST_CASE("the embedded student has the errors that its card states, on frames that it has not seen" *
          test::kSlowUnderSanitizers) {
    const auto model = load_model("builtin");
    REQUIRE(model->summary().class_name == "PaiNN");
    CHECK(model->summary().elements == std::vector<int>{1, 6, 7, 8, 9, 16, 17});
    const nlohmann::json errors = model->description()["card"]["errors"]["test"];
    Session session = session_on(model, "cpu", Precision::mixed);
    double force_sum = 0, energy_sum = 0;
    size_t component_count = 0;
    const std::vector<Frame> frames = read_extxyz(MLFF_TEST_DATA_DIR "/student_frames.xyz");
    REQUIRE(frames.size() == 200);
    for (const Frame& frame : frames) {
        const Found found = evaluate(session, frame.view());
        const AtomColumn* column = frame.find_column("forces");
        REQUIRE(column != nullptr);
        const auto& expected = std::get<std::vector<double>>(column->values);
        REQUIRE(expected.size() == found.forces.size());
        for (size_t i = 0; i < expected.size(); ++i) force_sum += std::abs(found.forces[i] - expected[i]);
        component_count += expected.size();
        energy_sum +=
            std::abs(found.energy - frame.info_number("energy").value()) / static_cast<double>(frame.atom_count());
    }
    const double force_error = 1e3 * force_sum / static_cast<double>(component_count),
                 energy_error = 1e3 * energy_sum / 200;
    MESSAGE("forces " << force_error << " meV/A, energies " << energy_error << " meV/atom");
    // The sample has as many strained frames as any other kind, which the whole test set has not.
    CHECK(force_error < 1.6 * errors["force_meV_per_A"]["mae"].get<double>());
    CHECK(energy_error < 1.6 * errors["energy_meV_per_atom"]["mae"].get<double>());
}

TEST_CASE("two atoms of the embedded student have a bond or none, and repel each other at every shorter distance" *
          test::kSlowUnderSanitizers) {
    const auto model = load_model("builtin");
    Session session = session_on(model, "cpu", Precision::fp64);
    for (const int first : model->summary().elements)
        for (const int second : model->summary().elements) {
            if (second < first) continue;
            CAPTURE(first);
            CAPTURE(second);
            double lowest = INFINITY, where = 0;
            for (double distance = 0.5; distance < 3; distance += 0.1) {
                const double energy = evaluate_pair(session, first, second, distance).energy;
                if (energy < lowest) {
                    lowest = energy;
                    where = distance;
                }
            }
            CHECK(where > 0.65);  // the bond of H2 is the shortest
            double last = lowest + 1.5;
            for (double distance = 0.65 * (covalent_radius(first) + covalent_radius(second)); distance > 0.05;
                 distance *= 0.95) {
                CAPTURE(distance);
                const Found found = evaluate_pair(session, first, second, distance);
                CHECK(found.energy > last);
                CHECK(found.forces[3] > 0);
                last = found.energy;
            }
        }
    CHECK_THROWS_WITH_AS(evaluate_pair(session, 14, 1, 1.5), doctest::Contains("Si"), Error);
}

TEST_CASE("an atom of a molecule that is moved onto another is pushed back" * test::kSlowUnderSanitizers) {
    Session session = session_on(load_model("builtin"), "cpu", Precision::fp64);
    for (const Molecule& rest : {kWaterDimer, kEthanol}) {
        const double start = evaluate(session, rest.view()).energy;
        const size_t count = rest.numbers.size();
        for (size_t i = 0; i < count; ++i)
            for (size_t j = 0; j < count; ++j) {
                if (i == j) continue;
                Vec3 u{};
                double length = 0;
                for (size_t c = 0; c < 3; ++c) {
                    u[c] = rest.positions[3 * i + c] - rest.positions[3 * j + c];
                    length += u[c] * u[c];
                }
                for (double& x : u) x /= std::sqrt(length);
                const bool are_hydrogens = rest.numbers[i] == 1 && rest.numbers[j] == 1;
                for (int step = 20; step >= 2; --step) {
                    const double distance = 0.05 * step;
                    CAPTURE(i);
                    CAPTURE(j);
                    CAPTURE(distance);
                    Molecule squeezed = rest;
                    double push = 0;
                    for (size_t c = 0; c < 3; ++c)
                        squeezed.positions[3 * i + c] = rest.positions[3 * j + c] + distance * u[c];
                    const Found found = evaluate(session, squeezed.view());
                    for (size_t c = 0; c < 3; ++c) push += u[c] * (found.forces[3 * i + c] - found.forces[3 * j + c]);
                    CHECK(found.energy > start - (step > 14 ? 0.1 : 0));  // some are bonds at 1 A
                    CHECK(found.energy < start + 1e4);
                    // Two hydrogens come as near as 0.56 A in the data, in H2: what they do there between other atoms
                    // was not in it.
                    if (step <= (are_hydrogens ? 8 : 9)) CHECK(push > 0);
                }
            }
    }
}
