// SPDX-License-Identifier: MIT
// The options of mlff md, and what they mean for the dynamics.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "dynamics/molecular_dynamics.h"
#include "dynamics/stability.h"
#include "dynamics/watcher.h"

namespace mlff::app {

struct MdOptions {
    std::string input;
    int64_t frame = -1;  // from the end if negative
    ModelOptions model;
    std::string ensemble;
    int64_t steps = 0;
    double time_step = 0;
    std::optional<double> temperature, friction, relaxation_time, pressure, barostat_time, compressibility;
    std::optional<std::string> thermostat, barostat;
    std::optional<int64_t> barostat_every;
    bool full_cell = false;
    uint64_t seed = 1;
    int64_t remove_momentum_every = 0;
    std::string fixed;

    bool all = false;  // every frame, all at once
    std::optional<int64_t> replicas;
    std::vector<double> temperatures;  // of the replicas: the lowest and the highest, or all
    std::optional<int64_t> exchange_every;

    std::optional<int64_t> beads;  // of a ring polymer
    std::string beads_from;        // restart file with the beads to begin with
    bool write_beads = false;

    std::string output, log, checkpoint, restart;
    int64_t output_every = 100, log_every = 100, checkpoint_every = 10'000;
    bool overwrite = false;
    StabilityLimits limits;

    std::optional<bool> watch;  // --watch, --no-watch
    std::optional<double> stop_sigma;
    std::string harvest;
    double harvest_sigma = WatchRules().outside_sigma;
    std::optional<int64_t> harvest_every;
    int64_t harvest_frames = 200;

    void add_to(CLI::App& command);
    // Throws Error{argument} for options that contradict each other or lack one, naming them.
    DynamicsOptions dynamics() const;
    WatchRules watch_rules() const;
    bool wants_watch() const { return watch.value_or(false) || stop_sigma || !harvest.empty(); }  // not by default only
    // What decides the trajectory, by option: a restart file is continued with the same choices only.
    std::map<std::string, std::string> choices() const;
    std::string checkpoint_path() const;
    std::string last_frames_path() const;
    bool wants_many() const { return all || replicas || !temperatures.empty() || exchange_every; }
    bool wants_beads() const { return beads || !beads_from.empty() || write_beads; }
    std::string many_restart_path() const;  // of wants_many() and wants_beads(): output is a folder then
};

}  // namespace mlff::app
