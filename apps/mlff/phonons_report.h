// SPDX-License-Identifier: MIT
// What mlff phonons found, and how it is shown.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "properties/phonons/band_path.h"
#include "properties/phonons/dynamical_matrix.h"
#include "properties/phonons/mesh.h"
#include "properties/phonons/setup.h"

namespace mlff::app {

struct PhononResults {
    std::string input, model, device, precision;  // of the last three "" where forces were read from a file
    std::vector<Displacement> displacements;
    double step = 0;  // angstrom
    std::optional<phonons::RestState> rest;
    bool imposes_mirrors = false;  // the model distinguishes mirror images, and the crystal does not
    phonons::ForceConstants constants;
    std::string lattice;  // of the path's labels: "cF"; "" if it is not in the table
    std::vector<phonons::BandPoint> path;
    std::vector<std::vector<double>> path_frequencies;  // THz
    std::array<int64_t, 3> mesh{};
    phonons::MeshModes modes;
    phonons::StateDensity density;
    std::vector<phonons::ThermalPoint> thermal;
    std::vector<phonons::ThermalPoint> thermal_curve;  // the same range, in finer steps
};

std::string phonon_text(const phonons::Setup& setup, const PhononResults& results);
nlohmann::json phonon_json(const phonons::Setup& setup, const PhononResults& results);
std::string phonon_markdown(const phonons::Setup& setup, const PhononResults& results);
std::string phonon_html(const phonons::Setup& setup, const PhononResults& results);

}  // namespace mlff::app
