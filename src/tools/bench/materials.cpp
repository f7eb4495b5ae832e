// SPDX-License-Identifier: MIT
#include "tools/bench/materials.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "tools/validate/systems.h"
#include "tools/verify/probe_systems.h"

namespace mlff::bench {

Material choose_material(const std::vector<int>& known_elements) {
    const auto knows = [&](int z) {
        return std::find(known_elements.begin(), known_elements.end(), z) != known_elements.end();
    };
    if (knows(1) && knows(8))
        return {"water", validate::chosen_systems({"water-box"}, known_elements).front().frame, 3};
    return {"crystal", verify::probe_crystal(known_elements), 1};
}

Frame make_box(const Material& material, int64_t least_atoms) {
    const Mat3& cell = *material.cell.cell;
    std::array<int, 3> count = {1, 1, 1};
    while (material.cell.atom_count() * count[0] * count[1] * count[2] < least_atoms) {
        size_t shortest = 0;
        const auto length = [&](size_t axis) {
            return count[axis] * std::sqrt(cell[axis][0] * cell[axis][0] + cell[axis][1] * cell[axis][1] +
                                           cell[axis][2] * cell[axis][2]);
        };
        for (size_t axis = 1; axis < 3; ++axis)
            if (length(axis) < length(shortest)) shortest = axis;
        ++count[shortest];
    }
    Frame box;
    box.periodic = {true, true, true};
    box.cell = cell;
    for (size_t axis = 0; axis < 3; ++axis)
        for (double& x : (*box.cell)[axis]) x *= count[axis];
    for (int a = 0; a < count[0]; ++a)
        for (int b = 0; b < count[1]; ++b)
            for (int c = 0; c < count[2]; ++c) {
                box.atomic_numbers.insert(box.atomic_numbers.end(), material.cell.atomic_numbers.begin(),
                                          material.cell.atomic_numbers.end());
                for (size_t i = 0; i < material.cell.positions.size(); ++i)
                    box.positions.push_back(material.cell.positions[i] + a * cell[0][i % 3] + b * cell[1][i % 3] +
                                            c * cell[2][i % 3]);
            }
    return box;
}

Frame make_thinner(const Material& material, const Frame& frame, double factor) {
    Frame thinner = frame;
    if (thinner.cell)
        for (Vec3& edge : *thinner.cell)
            for (double& x : edge) x *= factor;
    for (size_t first = 0; first < thinner.atomic_numbers.size(); first += material.molecule_size)
        for (size_t k = 0; k < 3; ++k) {
            const double shift = (factor - 1) * frame.positions[3 * first + k];
            for (size_t atom = first; atom < first + material.molecule_size; ++atom)
                thinner.positions[3 * atom + k] += shift;
        }
    return thinner;
}

Frame make_cluster(const Material& material, int64_t atoms) {
    const auto size = static_cast<int64_t>(material.molecule_size);
    const int64_t molecules = std::max<int64_t>(1, (2 * atoms + size) / (2 * size));
    const Frame box = make_box(material, 4 * molecules * size);  // a ball inside it has half its volume
    Vec3 centre{};
    for (const Vec3& edge : *box.cell)
        for (size_t k = 0; k < 3; ++k) centre[k] += 0.5 * edge[k];
    std::vector<std::pair<double, size_t>> by_distance;
    for (size_t first = 0; first < box.atomic_numbers.size(); first += material.molecule_size) {
        double squared = 0;
        for (size_t k = 0; k < 3; ++k) squared += std::pow(box.positions[3 * first + k] - centre[k], 2);
        by_distance.emplace_back(squared, first);
    }
    std::sort(by_distance.begin(), by_distance.end());
    Frame cluster;
    for (size_t molecule = 0; molecule < static_cast<size_t>(molecules); ++molecule)
        for (size_t atom = by_distance[molecule].second; atom < by_distance[molecule].second + material.molecule_size;
             ++atom) {
            cluster.atomic_numbers.push_back(box.atomic_numbers[atom]);
            for (size_t k = 0; k < 3; ++k) cluster.positions.push_back(box.positions[3 * atom + k]);
        }
    return cluster;
}

RepeatedFrames::RepeatedFrames(std::vector<Frame> frames) : frames_(std::move(frames)) {
    for (const Frame& frame : frames_) places_.push_back(frame.positions.at(0));
}

const std::vector<Frame>& RepeatedFrames::next() {
    constexpr int64_t kPlaces = 1000;
    for (size_t i = 0; i < frames_.size(); ++i)
        frames_[i].positions[0] = places_[i] + 1e-6 * static_cast<double>(count_++ % kPlaces) / kPlaces;
    return frames_;
}

}  // namespace mlff::bench
