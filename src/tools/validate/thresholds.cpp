// SPDX-License-Identifier: MIT
#include "tools/validate/thresholds.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "formats/json_text.h"

namespace mlff::validate {

std::span<const ThresholdEntry> threshold_entries() {
    static constexpr ThresholdEntry entries[] = {
        {"drift_meV_per_atom_per_ns", &Thresholds::drift_meV_per_atom_per_ns},
        {"drift_percent_of_kinetic_energy", &Thresholds::drift_percent_of_kinetic_energy},
        {"time_step_order_tolerance", &Thresholds::time_step_order_tolerance},
        {"momentum", &Thresholds::momentum},
        {"angular_momentum", &Thresholds::angular_momentum},
        {"temperature_percent", &Thresholds::temperature_percent},
        {"temperature_p_value", &Thresholds::temperature_p_value},
        {"equipartition_percent", &Thresholds::equipartition_percent},
        {"bond_mean_percent", &Thresholds::bond_mean_percent},
        {"bond_stretch_percent", &Thresholds::bond_stretch_percent},
        {"closest_contact", &Thresholds::closest_contact},
        {"rdf_shift_angstrom", &Thresholds::rdf_shift_angstrom},
        {"path_force_eV_per_A", &Thresholds::path_force_eV_per_A},
        {"against_force_rmse_eV_per_A", &Thresholds::against_force_rmse_eV_per_A},
        {"against_energy_rmse_meV_per_atom", &Thresholds::against_energy_rmse_meV_per_atom},
        {"against_rdf_shift_angstrom", &Thresholds::against_rdf_shift_angstrom},
    };
    return entries;
}

Thresholds parse_thresholds(const std::string& text, const std::string& where) {
    const nlohmann::json json = parse_untrusted_json(text, where);
    if (!json.is_object())
        fail(Status::format, where, ": expected an object of thresholds, {\"drift_meV_per_atom_per_ns\": 200, ...}");
    Thresholds thresholds;
    const auto entries = threshold_entries();
    for (const auto& [key, value] : json.items()) {
        const auto entry = std::find_if(entries.begin(), entries.end(),
                                        [&, &key = key](const ThresholdEntry& e) { return key == e.key; });
        if (entry == entries.end())
            fail(Status::format, where, ": '", key, "' is not a threshold; see docs/validation.md for the list");
        if (!value.is_number() || !std::isfinite(value.get<double>()) || !(value.get<double>() > 0))
            fail(Status::format, where, ": threshold '", key, "' is ", value.dump(), ", expected a number above 0");
        thresholds.*(entry->value) = value.get<double>();
    }
    return thresholds;
}

nlohmann::json thresholds_json(const Thresholds& thresholds) {
    nlohmann::json json;
    for (const ThresholdEntry& entry : threshold_entries()) json[entry.key] = thresholds.*(entry.value);
    return json;
}

}  // namespace mlff::validate
