// SPDX-License-Identifier: MIT
// What a model gives for one frame of a file.
#pragma once

#include <array>
#include <vector>

#include "engine/session.h"
#include "formats/extxyz.h"

namespace mlff::app {

struct FrameResult {
    size_t atom_count = 0;
    double energy = 0;
    std::vector<double> forces;
    std::vector<double> atom_energies;  // empty if the model gives none
    std::vector<double> descriptors;    // [atom][descriptor_count], or empty
    std::array<double, 6> stress{};
    bool has_stress = false;
    // Of a committee: the spread of its members; else empty.
    std::vector<double> sigma_forces;  // [atom]
    double sigma_energy_per_atom = 0, sigma_max_force = 0;
    bool has_spread = false;
    // Of a model with a trust meter; else empty.
    std::vector<double> expected_errors, novelties;  // [atom]
    double alarm_error = 0;                          // eV/angstrom; above it, the force should not be trusted
};

struct FrameWishes {
    bool descriptors = false;
    bool even_if_not_finite = false;  // else numbers that are not finite are an Error
};
// Throws Error as Session::evaluate does.
FrameResult evaluate_frame(Session& session, const Frame& frame, const FrameWishes& wishes = {});

}  // namespace mlff::app
