// SPDX-License-Identifier: MIT
#include "tools/verify/probe_systems.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/elements.h"
#include "core/error.h"
#include "tools/validate/systems.h"

namespace mlff::verify {
namespace {

double radius(int z) {
    const double known = covalent_radius(z);
    return known > 0 ? known : 1.6;
}

// Uniform numbers in [0, 1), the same on every machine.
class Random {
public:
    explicit Random(uint32_t seed) : engine_(seed) {}
    double operator()() { return static_cast<double>(engine_()) / 4294967296.0; }

private:
    std::mt19937 engine_;
};

// The shortest distance from `at` to an atom or image, in units of the sum of radii.
double nearest(const Frame& frame, const double* at, int z) {
    double least = HUGE_VAL;
    const int reach = frame.cell ? 1 : 0;
    for (size_t atom = 0; atom < frame.atomic_numbers.size(); ++atom)
        for (int a = -reach; a <= reach; ++a)
            for (int b = -reach; b <= reach; ++b)
                for (int c = -reach; c <= reach; ++c) {
                    double squared = 0;
                    for (size_t k = 0; k < 3; ++k) {
                        const double shift =
                            frame.cell ? a * (*frame.cell)[0][k] + b * (*frame.cell)[1][k] + c * (*frame.cell)[2][k]
                                       : 0;
                        squared += std::pow(frame.positions[3 * atom + k] + shift - at[k], 2);
                    }
                    least = std::min(least, std::sqrt(squared) / (radius(frame.atomic_numbers[atom]) + radius(z)));
                }
    return least;
}

constexpr size_t kRandomElements = 4;
constexpr double kShake = 0.06;  // angstrom, in both directions

Frame shaken(Frame frame, uint32_t seed) {
    Random random(seed);
    for (double& x : frame.positions) x += kShake * (2 * random() - 1);
    return frame;
}

bool knows(const std::vector<int>& known, const std::vector<int>& elements) {
    return std::all_of(elements.begin(), elements.end(),
                       [&](int z) { return std::find(known.begin(), known.end(), z) != known.end(); });
}
Frame builtin_system(const char* name, const std::vector<int>& known) {
    return validate::chosen_systems({name}, known).front().frame;
}

// Two molecules in a skewed cell, at the density of the liquid.
Frame water_crystal() {
    Frame frame;
    frame.cell = Mat3{{{3.9, 0, 0}, {0.5, 3.8, 0}, {-0.3, 0.4, 4.0}}};
    frame.periodic = {true, true, true};
    frame.atomic_numbers = {8, 1, 1, 8, 1, 1};
    frame.positions = {0,    0,   0,   0.7572, 0.5865, 0,      -0.7572, 0.5865, 0,
                       2.05, 2.1, 2.0, 2.05,   2.8572, 2.5865, 2.05,    1.3428, 2.5865};
    return frame;
}

void add(Frame& frame, const double* at, int z) {
    frame.atomic_numbers.push_back(z);
    frame.positions.insert(frame.positions.end(), at, at + 3);
}

}  // namespace

std::vector<int> probe_elements(const std::vector<int>& known, size_t count) {
    std::vector<int> chosen;
    const auto take = [&](int z) {
        if (chosen.size() < count && std::find(chosen.begin(), chosen.end(), z) == chosen.end()) chosen.push_back(z);
    };
    for (const int z : {1, 8, 6, 14, 7, 29})
        if (std::find(known.begin(), known.end(), z) != known.end()) take(z);
    for (int z : known) take(z);
    return chosen;
}

Frame probe_cluster(const std::vector<int>& known) {
    if (knows(known, {1, 6, 8})) return shaken(builtin_system("ethanol", known), 31);
    if (knows(known, {1, 8})) {
        Frame molecules = water_crystal();
        molecules.cell.reset();
        molecules.periodic = {false, false, false};
        return shaken(molecules, 31);
    }
    return random_cluster(probe_elements(known, kRandomElements));
}

Frame probe_crystal(const std::vector<int>& known) {
    if (knows(known, {1, 8})) return shaken(water_crystal(), 37);
    for (const auto& [z, name] : {std::pair{6, "diamond"}, {14, "silicon"}})
        if (knows(known, {z})) return shaken(builtin_system(name, known), 37);
    return random_crystal(probe_elements(known, kRandomElements));
}

Frame random_cluster(const std::vector<int>& elements) {
    constexpr size_t kAtoms = 10;
    Frame frame;
    Random random(17);
    const double origin[3] = {0.1, -0.2, 0.3};
    add(frame, origin, elements.front());
    for (size_t tries = 0; frame.atomic_numbers.size() < kAtoms; ++tries) {
        if (tries > 100'000) fail(Status::internal, "no room for the atoms of the probe");
        const int z = elements[frame.atomic_numbers.size() % elements.size()];
        const size_t partner =
            std::min(static_cast<size_t>(random() * static_cast<double>(frame.atomic_numbers.size())),
                     frame.atomic_numbers.size() - 1);
        const double distance = (0.95 + 0.3 * random()) * (radius(z) + radius(frame.atomic_numbers[partner]));
        const double height = 2 * random() - 1, angle = 6.283185307179586 * random(),
                     across = std::sqrt(1 - height * height);
        const double* from = frame.positions.data() + 3 * partner;
        const double at[3] = {from[0] + distance * across * std::cos(angle),
                              from[1] + distance * across * std::sin(angle), from[2] + distance * height};
        if (nearest(frame, at, z) > 0.9) add(frame, at, z);
    }
    return frame;
}

Frame random_crystal(const std::vector<int>& elements) {
    constexpr size_t kAtoms = 8;
    Frame frame;
    double volume = 0;
    for (size_t atom = 0; atom < kAtoms; ++atom) volume += std::pow(2.3 * radius(elements[atom % elements.size()]), 3);
    Random random(23);
    for (size_t tries = 0; frame.atomic_numbers.size() < kAtoms; ++tries) {
        if (tries % 20'000 == 0) {  // start again, with a little more space
            const double edge = std::cbrt(volume) * (1 + 0.05 * static_cast<double>(tries / 20'000));
            frame = {};
            frame.cell = Mat3{{{edge, 0, 0}, {0.22 * edge, 1.05 * edge, 0}, {-0.13 * edge, 0.17 * edge, 0.96 * edge}}};
            frame.periodic = {true, true, true};
        }
        const int z = elements[frame.atomic_numbers.size() % elements.size()];
        const double u = random(), v = random(), w = random();
        double at[3];
        for (size_t k = 0; k < 3; ++k)
            at[k] = u * (*frame.cell)[0][k] + v * (*frame.cell)[1][k] + w * (*frame.cell)[2][k];
        if (nearest(frame, at, z) > 0.9) add(frame, at, z);
    }
    return frame;
}

}  // namespace mlff::verify
