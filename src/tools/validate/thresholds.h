// SPDX-License-Identifier: MIT
// The limits of the checks. docs/validation.md explains each.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace mlff::validate {

struct Thresholds {
    double drift_meV_per_atom_per_ns = 200;
    double drift_percent_of_kinetic_energy = 2;
    double time_step_order_tolerance = 0.5;
    double momentum = 1e-3;
    double angular_momentum = 1e-3;
    double temperature_percent = 3;
    double temperature_p_value = 1e-4;
    double equipartition_percent = 5;
    double bond_mean_percent = 15;
    double bond_stretch_percent = 60;
    double closest_contact = 0.55;
    double rdf_shift_angstrom = 0.3;
    double path_force_eV_per_A = 0.01;
    double against_force_rmse_eV_per_A = 0.15;
    double against_energy_rmse_meV_per_atom = 10;
    double against_rdf_shift_angstrom = 0.1;
};

struct ThresholdEntry {
    const char* key;
    double Thresholds::*value;
};
std::span<const ThresholdEntry> threshold_entries();

// Reads an object with some of the keys; the others keep their defaults. Throws Error{format} for unknown keys and for
// values that are not finite and positive; messages begin with `where`.
Thresholds parse_thresholds(const std::string& text, const std::string& where);
nlohmann::json thresholds_json(const Thresholds& thresholds);

}  // namespace mlff::validate
