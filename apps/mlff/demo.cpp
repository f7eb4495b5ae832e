// SPDX-License-Identifier: MIT
// mlff demo: a first look: the embedded student on structures made here, and dynamics with it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <random>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/elements.h"
#include "dynamics/molecular_dynamics.h"

namespace mlff::app {
namespace {

using Json = nlohmann::json;

struct Structure {
    std::string name;
    std::vector<int32_t> numbers;
    std::vector<double> positions;
    Mat3 cell{};
    bool is_periodic = false;

    SystemView view() const {
        SystemView system;
        system.atom_count = static_cast<int64_t>(numbers.size());
        system.atomic_numbers = numbers.data();
        system.positions = positions.data();
        system.cell = cell;
        system.periodic = {is_periodic, is_periodic, is_periodic};
        return system;
    }
};

void add_water(Structure& structure, const Vec3& center, double angle) {
    constexpr double kBond = 0.9572, kHalfAngle = 0.9121;  // angstrom, radian
    structure.numbers.insert(structure.numbers.end(), {8, 1, 1});
    for (double side : {0.0, -kHalfAngle, kHalfAngle}) {
        const double bond = side == 0.0 ? 0.0 : kBond;
        structure.positions.insert(structure.positions.end(), {center[0] + bond * std::cos(angle + side),
                                                               center[1] + bond * std::sin(angle + side), center[2]});
    }
}

Structure water_molecule() {
    Structure water{"water molecule", {}, {}, {}, false};
    add_water(water, {0, 0, 0}, 0.3);
    return water;
}

Structure ethanol() {
    return {"ethanol",
            {6, 6, 8, 1, 1, 1, 1, 1, 1},
            {1.17, -0.40, 0.0,   0.0,  0.56, 0.0,   -1.19, -0.21, 0.0,  -1.94, 0.38, 0.0,  2.14, 0.10,
             0.0,  1.13,  -1.04, 0.89, 1.13, -1.04, -0.89, 0.04,  1.20, 0.89,  0.04, 1.20, -0.89},
            {},
            false};
}

Structure water_box(int side) {
    constexpr double kSpacing = 3.1043;  // 1 g/cm^3
    Structure box{std::to_string(side * side * side) + " waters, periodic", {}, {}, {}, true};
    std::mt19937 random(7);
    for (int i = 0; i < side * side * side; ++i)
        add_water(box,
                  {(i % side + 0.5) * kSpacing, (i / side % side + 0.5) * kSpacing, (i / side / side + 0.5) * kSpacing},
                  static_cast<double>(random() % 6283) / 1000);
    for (size_t k = 0; k < 3; ++k) box.cell[k][k] = side * kSpacing;
    return box;
}

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

// One line: energy, largest force and the time of a call.
void show(Session& session, const Structure& structure) {
    const SystemView system = structure.view();
    double energy = 0;
    std::vector<double> forces(structure.positions.size()), milliseconds;
    Results results;
    results.outputs.energy = &energy;
    results.outputs.forces = forces.data();
    for (int repeat = 0; repeat < 7; ++repeat) {
        const auto begin = std::chrono::steady_clock::now();
        session.evaluate({&system, 1}, {&results, 1});
        milliseconds.push_back(milliseconds_since(begin));
    }
    std::nth_element(milliseconds.begin(), milliseconds.begin() + 3, milliseconds.end());
    double largest = 0;
    for (size_t i = 0; i < forces.size(); i += 3)
        largest = std::max(largest, std::hypot(forces[i], forces[i + 1], forces[i + 2]));
    std::cout << std::left << std::setw(24) << structure.name << std::right << std::setw(8) << structure.numbers.size()
              << std::fixed << std::setprecision(4) << std::setw(15) << energy << std::setw(16) << largest
              << std::setprecision(2) << std::setw(12) << milliseconds[3] << "\n";
}

// Molecules as they are drawn are not at rest in the model.
void relax(Session& session, Structure& structure) {
    double energy = 0;
    std::vector<double> forces(structure.positions.size());
    Results results;
    results.outputs.energy = &energy;
    results.outputs.forces = forces.data();
    for (int step = 0; step < 150; ++step) {
        const SystemView system = structure.view();
        session.evaluate({&system, 1}, {&results, 1});
        for (size_t i = 0; i < forces.size(); ++i) structure.positions[i] += std::clamp(0.01 * forces[i], -0.05, 0.05);
    }
}

// Dynamics without a thermostat: if forces are the slope of the energy, the total energy stays.
void run_dynamics(Session& session, Structure structure, int step_count) {
    constexpr double kTimeStep = 0.5;  // fs
    constexpr int kLines = 5;
    relax(session, structure);
    Particles particles(structure.view());
    set_temperature(particles, 600, 1);  // half of which goes into the vibrations' potential energy
    MolecularDynamics dynamics(session, particles, kTimeStep);
    const double start = dynamics.total_energy(), atoms = static_cast<double>(structure.numbers.size());
    std::cout << "\nDynamics of " << structure.name << ", " << step_count << " steps of " << kTimeStep
              << " fs, no thermostat:\n\n"
              << std::right << std::setw(10) << "time/fs" << std::setw(10) << "T/K" << std::setw(16) << "potential/eV"
              << std::setw(14) << "kinetic/eV" << std::setw(28) << "change of total, meV/atom"
              << "\n";
    const auto begin = std::chrono::steady_clock::now();
    for (int line = 1; line <= kLines; ++line) {
        while (dynamics.step_count() < static_cast<int64_t>(line) * step_count / kLines) dynamics.step();
        std::cout << std::fixed << std::setprecision(0) << std::setw(10)
                  << static_cast<double>(dynamics.step_count()) * kTimeStep << std::setw(10)
                  << dynamics.particles().temperature() << std::setprecision(3) << std::setw(16)
                  << dynamics.potential_energy() << std::setw(14) << dynamics.particles().kinetic_energy()
                  << std::setw(28) << 1e3 * (dynamics.total_energy() - start) / atoms << "\n";
    }
    const double milliseconds = milliseconds_since(begin) / step_count;
    std::cout << std::setprecision(2) << "\n"
              << milliseconds << " ms/step, " << std::setprecision(1) << 86.4 * kTimeStep / milliseconds
              << " ns/day, on " << session.device_name() << " in " << precision_name(session.precision())
              << " precision\n";
}

// What the model's card says of itself.
void introduce(const Model& model) {
    const Json description = model.description(), card = description.value("card", Json::object());
    std::cout << "mlff " << MLFF_VERSION_STRING << "\n\n";
    const auto text = [&](const char* key) { return card.value(key, std::string("unknown")); };
    std::cout << "The embedded model: " << text("name") << ", a PaiNN of " << description["parameters"]
              << " parameters, trained on labels of " << text("teacher") << ".\n";
    const Json test = card.value("errors", Json::object()).value("test", Json::object());
    if (test.contains("force_meV_per_A"))
        std::cout << std::fixed << std::setprecision(1) << "Mean absolute errors on unseen molecules: forces "
                  << test["force_meV_per_A"]["mae"].get<double>() << " meV/A, energies "
                  << test["energy_meV_per_atom"]["mae"].get<double>() << " meV/atom.\n\n";
}

int run_demo(int step_count) {
    const auto model = load_model("builtin");
    introduce(*model);
    Session session(model, {});
    std::cout << std::left << std::setw(24) << "structure" << std::right << std::setw(8) << "atoms" << std::setw(15)
              << "energy/eV" << std::setw(16) << "max|F|/(eV/A)" << std::setw(12) << "ms/call"
              << "\n";
    for (const Structure& structure : {water_molecule(), ethanol(), water_box(4)}) show(session, structure);
    run_dynamics(session, ethanol(), step_count);
    std::cout << "\nNext:  mlff eval FILE.xyz            energies and forces of your own structures\n"
                 "       mlff eval FILE.xyz --model X.model    the same with a MACE model, as mace-torch wrote it\n"
                 "       mlff --help\n";
    return kGood;
}

}  // namespace

void add_demo(CLI::App& app, Work& work) {
    CLI::App* command = app.add_subcommand("demo", "show energies, forces and dynamics of built-in structures");
    auto step_count = std::make_shared<int>(2000);
    command->add_option("--steps", *step_count, "number of steps of dynamics")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("N");
    command->footer(R"(Uses the embedded model and needs no files.

Examples:
  # A few seconds
  mlff demo
  # Shorter
  mlff demo --steps 200)");
    command->callback([step_count, &work] { work = [step_count] { return run_demo(*step_count); }; });
}

}  // namespace mlff::app
