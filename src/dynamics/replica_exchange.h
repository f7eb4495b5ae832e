// SPDX-License-Identifier: MIT
// Replica exchange (parallel tempering; Sugita and Okamoto 1999): copies of a system at a ladder of temperatures, whose
// neighbours swap their atoms now and then. System i of the dynamics always has temperature i.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dynamics/many_dynamics.h"

namespace mlff {

// From the lowest to the highest, each by the same factor above the one below. Throws Error{argument}.
std::vector<double> temperature_ladder(double lowest, double highest, int64_t count);

struct ExchangeCounts {
    int64_t attempted = 0, accepted = 0;
    double ratio() const { return attempted > 0 ? static_cast<double>(accepted) / static_cast<double>(attempted) : 0; }
};

class ReplicaExchange {
public:
    // Temperatures rise. Throws Error{argument} unless there are two or more.
    ReplicaExchange(std::vector<double> temperatures, uint64_t seed);

    // One attempt for every other pair of neighbours, in turn those that begin at 0 and at 1. Metropolis, with random
    // numbers that are a function of seed, step and pair. All systems must go on.
    void exchange(ManyDynamics& dynamics, int64_t step);

    const std::vector<double>& temperatures() const { return temperatures_; }
    // The replica that is at each temperature: its place at the beginning.
    const std::vector<int64_t>& replicas() const { return replicas_; }
    const ExchangeCounts& counts(size_t pair) const { return counts_[pair]; }  // of temperatures `pair` and `pair` + 1
    int64_t round_trips() const;  // from the lowest temperature to the highest and back, of all replicas

    // For restart files: whole numbers, separated by spaces.
    std::string state() const;
    // Throws Error{format}, also if it counts more rounds of attempts than there can have been.
    void set_state(const std::string& state, int64_t most_rounds);

private:
    void note_ends();

    std::vector<double> temperatures_;
    uint64_t seed_;
    int64_t round_ = 0;
    std::vector<int64_t> replicas_;       // [temperature]
    std::vector<ExchangeCounts> counts_;  // [pair]
    // [replica]: the end of the ladder it was at last (0 none, 1 lowest, 2 highest after the lowest), and its trips.
    std::vector<int64_t> last_end_, trips_;
};

}  // namespace mlff
