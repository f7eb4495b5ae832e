// SPDX-License-Identifier: MIT
// Whether the forces of a run may be trusted, step by step: what is read of them, which steps are worth keeping, and
// when the run should end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace mlff {

// What a model says of the forces of one step, whatever says it.
struct WatchReading {
    double sigma_max = 0;       // eV/angstrom: the largest expected error of the force on an atom; 0 without atoms
    int64_t worst_atom = -1;    // whose error that is; -1 without atoms
    int64_t atoms_outside = 0;  // atoms that are not like those the model was trained on
};

// Of a committee, from the spread of the force on each atom: those above `limit` are outside.
WatchReading read_spread(std::span<const double> sigma_forces, double limit);
// Of a trust meter: its own alarm says which are outside (trust/formulas.h).
WatchReading read_meter(std::span<const double> expected_errors, std::span<const double> novelties, double alarm_error);

struct WatchRules {
    double outside_sigma = 0.2;        // eV/angstrom: above it, an atom is outside
    std::optional<double> stop_sigma;  // eV/angstrom: above it, the run should end
    int64_t candidate_every = 20;      // steps, at least, from one candidate to the next
};

class Watcher {
public:
    // Throws Error{argument} for rules that make no sense. `last_candidate`: the step of an earlier part of the run.
    explicit Watcher(const WatchRules& rules, std::optional<int64_t> last_candidate = {});

    bool must_stop(const WatchReading& reading) const;
    // Whether the atoms of this step are worth a label: one is outside or ends the run, and the last candidate was long
    // enough ago. A candidate that was left out counts too, so what comes next does not depend on it.
    bool is_candidate(const WatchReading& reading, int64_t step) const;
    void note_candidate(int64_t step) { last_candidate_ = step; }
    std::optional<int64_t> last_candidate() const { return last_candidate_; }

private:
    WatchRules rules_;
    std::optional<int64_t> last_candidate_;
};

}  // namespace mlff
