// SPDX-License-Identifier: MIT
#include "dynamics/watcher.h"

#include "core/error.h"
#include "trust/formulas.h"

namespace mlff {

// NaN is above every limit and every number.
WatchReading read_spread(std::span<const double> sigma_forces, double limit) {
    WatchReading reading;
    for (size_t atom = 0; atom < sigma_forces.size(); ++atom) {
        reading.atoms_outside += !(sigma_forces[atom] <= limit);
        const bool is_worse = sigma_forces[atom] > reading.sigma_max || std::isnan(sigma_forces[atom]);
        if (reading.worst_atom >= 0 && (std::isnan(reading.sigma_max) || !is_worse)) continue;
        reading.sigma_max = sigma_forces[atom];
        reading.worst_atom = static_cast<int64_t>(atom);
    }
    return reading;
}

WatchReading read_meter(std::span<const double> expected_errors, std::span<const double> novelties,
                        double alarm_error) {
    WatchReading reading = read_spread(expected_errors, alarm_error);
    reading.atoms_outside = 0;
    for (size_t atom = 0; atom < novelties.size(); ++atom)
        reading.atoms_outside += trust::is_outside(alarm_error, expected_errors[atom], novelties[atom]);
    return reading;
}

Watcher::Watcher(const WatchRules& rules, std::optional<int64_t> last_candidate)
    : rules_(rules), last_candidate_(last_candidate) {
    if (!(rules.outside_sigma > 0))
        fail(Status::argument, "the error above which an atom is outside is ", rules.outside_sigma,
             " eV/A, expected more than 0");
    if (rules.stop_sigma && !(*rules.stop_sigma > 0))
        fail(Status::argument, "the error above which the run ends is ", *rules.stop_sigma,
             " eV/A, expected more than 0");
    if (rules.candidate_every < 1)
        fail(Status::argument, "a frame every ", rules.candidate_every, " steps, expected 1 or more");
}

bool Watcher::must_stop(const WatchReading& reading) const {
    return rules_.stop_sigma && !(reading.sigma_max <= *rules_.stop_sigma);
}

bool Watcher::is_candidate(const WatchReading& reading, int64_t step) const {
    if (last_candidate_ && step - *last_candidate_ < rules_.candidate_every) return false;
    return reading.atoms_outside > 0 || !(reading.sigma_max <= rules_.outside_sigma) || must_stop(reading);
}

}  // namespace mlff
