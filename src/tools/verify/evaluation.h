// SPDX-License-Identifier: MIT
// One system and all results of a session for it.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/session.h"
#include "formats/extxyz.h"

namespace mlff::verify {

struct Evaluation {
    double energy = NAN;  // eV
    std::vector<double> forces, virial,
        atom_energies;  // [atom][3], [3][3], [atom]; the last two are empty if the model provides none

    bool operator==(const Evaluation&) const = default;  // bit for bit; NaN equals nothing
};

inline std::vector<Evaluation> evaluate(Session& session, const std::vector<Frame>& frames) {
    std::vector<Evaluation> found(frames.size());
    std::vector<SystemView> systems;
    std::vector<Results> results(frames.size());
    for (size_t i = 0; i < frames.size(); ++i) {
        systems.push_back(frames[i].view());
        found[i].forces.assign(3 * frames[i].atomic_numbers.size(), NAN);
        if (session.model().gives_virial(systems[i])) found[i].virial.assign(9, NAN);
        if (session.model().gives_atom_energies()) found[i].atom_energies.assign(frames[i].atomic_numbers.size(), NAN);
        const auto place = [](std::vector<double>& numbers) { return numbers.empty() ? nullptr : numbers.data(); };
        results[i].outputs = {&found[i].energy, found[i].forces.data(), place(found[i].virial),
                              place(found[i].atom_energies)};
    }
    session.evaluate_unchecked(systems, results);
    return found;
}
inline Evaluation evaluate(Session& session, const Frame& frame) {
    return evaluate(session, std::vector<Frame>{frame}).front();
}

// The largest difference; NaN if any is NaN, or if the sizes differ.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
    if (a.size() != b.size()) return NAN;
    double largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        const double difference = std::abs(a[i] - b[i]);
        if (!(difference <= largest)) largest = difference;
        if (std::isnan(largest)) return largest;
    }
    return largest;
}
inline double largest_size(const std::vector<double>& numbers) {
    return largest_difference(numbers, std::vector<double>(numbers.size(), 0.0));
}

}  // namespace mlff::verify
