// SPDX-License-Identifier: MIT
#include "dynamics/replica_exchange.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "core/error.h"
#include "dynamics/counter_random.h"
#include "dynamics/units.h"

namespace mlff {

std::vector<double> temperature_ladder(double lowest, double highest, int64_t count) {
    if (!(lowest > 0 && highest > lowest && std::isfinite(highest)))
        fail(Status::argument, "a ladder from ", lowest, " K to ", highest,
             " K: expected a temperature above 0 and one above that");
    if (count < 2) fail(Status::argument, "a ladder of ", count, " temperatures, expected 2 or more");
    std::vector<double> temperatures;
    for (int64_t i = 0; i < count; ++i)
        temperatures.push_back(lowest *
                               std::pow(highest / lowest, static_cast<double>(i) / static_cast<double>(count - 1)));
    temperatures.back() = highest;
    return temperatures;
}

ReplicaExchange::ReplicaExchange(std::vector<double> temperatures, uint64_t seed)
    : temperatures_(std::move(temperatures)), seed_(seed) {
    if (temperatures_.size() < 2)
        fail(Status::argument, "replica exchange has ", temperatures_.size(), " temperatures, expected 2 or more");
    for (size_t i = 0; i < temperatures_.size(); ++i)
        if (!(std::isfinite(temperatures_[i]) && temperatures_[i] > (i == 0 ? 0 : temperatures_[i - 1])))
            fail(Status::argument, "temperature ", i, " of replica exchange is ", temperatures_[i],
                 " K, expected more than ", i == 0 ? 0 : temperatures_[i - 1], " K");
    replicas_.resize(temperatures_.size());
    std::iota(replicas_.begin(), replicas_.end(), 0);
    counts_.resize(temperatures_.size() - 1);
    last_end_.resize(temperatures_.size());
    trips_.resize(temperatures_.size());
    note_ends();
}

void ReplicaExchange::exchange(ManyDynamics& dynamics, int64_t step) {
    for (auto pair = static_cast<size_t>(round_++ % 2); pair + 1 < temperatures_.size(); pair += 2) {
        MolecularDynamics& cold = *dynamics.at(pair);
        MolecularDynamics& hot = *dynamics.at(pair + 1);
        const double beta_difference =
            1 / (kBoltzmann * temperatures_[pair]) - 1 / (kBoltzmann * temperatures_[pair + 1]);
        const double exponent = beta_difference * (cold.potential_energy() - hot.potential_energy());
        const double uniform =
            (random_bits(seed_, static_cast<uint64_t>(step), kExchangeDraw + pair)[0] + 0.5) / 4294967296.0;
        ++counts_[pair].attempted;
        if (!(std::log(uniform) < exponent)) continue;
        ++counts_[pair].accepted;
        swap_atoms(cold, hot, std::sqrt(temperatures_[pair + 1] / temperatures_[pair]));
        std::swap(replicas_[pair], replicas_[pair + 1]);
    }
    note_ends();
}

void ReplicaExchange::note_ends() {
    const auto lowest = static_cast<size_t>(replicas_.front()), highest = static_cast<size_t>(replicas_.back());
    if (last_end_[lowest] == 2) ++trips_[lowest];
    last_end_[lowest] = 1;
    if (last_end_[highest] == 1) last_end_[highest] = 2;
}

int64_t ReplicaExchange::round_trips() const { return std::accumulate(trips_.begin(), trips_.end(), int64_t{0}); }

std::string ReplicaExchange::state() const {
    std::ostringstream text;
    text << round_;
    for (size_t i = 0; i < replicas_.size(); ++i)
        text << " " << replicas_[i] << " " << last_end_[i] << " " << trips_[i];
    for (const ExchangeCounts& pair : counts_) text << " " << pair.attempted << " " << pair.accepted;
    return text.str();
}

void ReplicaExchange::set_state(const std::string& state, int64_t most_rounds) {
    std::istringstream text(state);
    bool is_good = static_cast<bool>(text >> round_) && round_ >= 0 && round_ <= most_rounds;
    std::vector<bool> is_there(replicas_.size());
    int64_t trips_left = round_;  // at most one trip ends in a round
    for (size_t i = 0; i < replicas_.size(); ++i) {
        is_good = is_good && text >> replicas_[i] >> last_end_[i] >> trips_[i] && replicas_[i] >= 0 &&
                  static_cast<size_t>(replicas_[i]) < is_there.size() && !is_there[static_cast<size_t>(replicas_[i])] &&
                  last_end_[i] >= 0 && last_end_[i] <= 2 && trips_[i] >= 0 && trips_[i] <= trips_left;
        if (!is_good) break;
        is_there[static_cast<size_t>(replicas_[i])] = true;
        trips_left -= trips_[i];
    }
    for (ExchangeCounts& pair : counts_)
        is_good = is_good && text >> pair.attempted >> pair.accepted && pair.accepted >= 0 &&
                  pair.accepted <= pair.attempted && pair.attempted <= round_;
    if (!is_good || !(text >> std::ws).eof())
        fail(Status::format, "the state of the replica exchange is damaged, or has other replicas");
}

}  // namespace mlff
