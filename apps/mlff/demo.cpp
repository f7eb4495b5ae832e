// SPDX-License-Identifier: MIT
// mlff demo: a first look, on the analytic model and structures made here.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <random>

#include "command.h"
#include "core/elements.h"

namespace mlff::app {
namespace {

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
        structure.positions.insert(structure.positions.end(),
                                   {center[0] + bond * std::cos(angle + side), center[1] + bond * std::sin(angle + side), center[2]});
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
            {1.17,  -0.40, 0.0,  0.0,  0.56,  0.0,   -1.19, -0.21, 0.0,  -1.94, 0.38, 0.0,  2.14,
             0.10,  0.0,   1.13, -1.04, 0.89, 1.13,  -1.04, -0.89, 0.04, 1.20,  0.89, 0.04, 1.20, -0.89},
            {},
            false};
}

Structure water_box(int side) {
    constexpr double kSpacing = 3.1043;  // 1 g/cm^3
    Structure box{std::to_string(side * side * side) + " waters, periodic", {}, {}, {}, true};
    std::mt19937 random(7);
    for (int i = 0; i < side * side * side; ++i)
        add_water(box, {(i % side + 0.5) * kSpacing, (i / side % side + 0.5) * kSpacing, (i / side / side + 0.5) * kSpacing},
                  static_cast<double>(random() % 6283) / 1000);
    for (size_t k = 0; k < 3; ++k) box.cell[k][k] = side * kSpacing;
    return box;
}

double energy_of(Session& session, const SystemView& system) {
    double energy = 0;
    Results results;
    results.outputs.energy = &energy;
    session.evaluate({&system, 1}, {&results, 1});
    return energy;
}

// The largest difference between a force and the slope of the energy, over the first few atoms.
double force_error(Session& session, Structure structure, const std::vector<double>& forces) {
    constexpr double kStep = 1e-4;  // angstrom
    double worst = 0;
    for (size_t i = 0; i < std::min<size_t>(forces.size(), 9); ++i) {
        const double before = structure.positions[i];
        structure.positions[i] = before + kStep;
        const double above = energy_of(session, structure.view());
        structure.positions[i] = before - kStep;
        const double below = energy_of(session, structure.view());
        structure.positions[i] = before;
        worst = std::max(worst, std::abs(forces[i] + (above - below) / (2 * kStep)));
    }
    return worst;
}

void show(Session& session, const Structure& structure) {
    using Clock = std::chrono::steady_clock;
    const SystemView system = structure.view();
    double energy = 0;
    std::vector<double> forces(structure.positions.size());
    Results results;
    results.outputs.energy = &energy;
    results.outputs.forces = forces.data();
    std::vector<double> milliseconds;
    for (int repeat = 0; repeat < 11; ++repeat) {
        const auto begin = Clock::now();
        session.evaluate({&system, 1}, {&results, 1});
        milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
    std::nth_element(milliseconds.begin(), milliseconds.begin() + 5, milliseconds.end());
    double largest = 0;
    for (size_t i = 0; i < forces.size(); i += 3) largest = std::max(largest, std::hypot(forces[i], forces[i + 1], forces[i + 2]));
    std::cout << std::left << std::setw(24) << structure.name << std::right << std::setw(8) << structure.numbers.size() << std::fixed
              << std::setprecision(4) << std::setw(15) << energy << std::setw(15) << largest << std::scientific << std::setprecision(1)
              << std::setw(17) << force_error(session, structure, forces) << std::fixed << std::setprecision(3) << std::setw(12)
              << milliseconds[5] << "\n";
}

int run_demo() {
    Session session(load_model("analytic"), {});
    std::cout << "mlff " << MLFF_VERSION_STRING << "\n\n"
              << "This runs the model 'analytic', a small pair potential for demonstration only: it was fitted to\n"
                 "nothing, so these are not chemistry. Everything around it is real: neighbour lists, periodic\n"
                 "images, threads ("
              << session.thread_count() << " here), forces that are the exact slope of the energy.\n\n"
              << std::left << std::setw(24) << "structure" << std::right << std::setw(8) << "atoms" << std::setw(15) << "energy/eV" << std::setw(15)
              << "max|F|/(eV/A)" << std::setw(17) << "force-slope" << std::setw(12) << "ms/call" << "\n";
    for (const Structure& structure : {water_molecule(), ethanol(), water_box(4), water_box(12)}) show(session, structure);
    std::cout << "\nNext:  mlff eval FILE.xyz            energies and forces of your own structures\n"
                 "       mlff model info FILE.model    what is inside a MACE file, without running it\n"
                 "       mlff --help\n";
    return kGood;
}

}  // namespace

void add_demo(CLI::App& app, Work& work) {
    CLI::App* command = app.add_subcommand("demo", "a first look on built-in structures");
    command->callback([&work] { work = run_demo; });
}

}  // namespace mlff::app
