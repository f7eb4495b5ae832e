// SPDX-License-Identifier: MIT
// Profiles an evaluation stage by stage, and compares it with the machine's peak rates.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/stage_profile.h"
#include "tools/bench/peaks.h"
#include "tools/bench/suites.h"

namespace mlff::bench {

// One stage of one evaluation, on average. Rates are NaN if the work is unknown.
struct ProfileRow {
    Stage stage;
    double calls = 0;    // sum over threads
    double seconds = 0;  // sum over threads
    double share = 0;    // of the time of all threads
    double flops = 0, bytes = 0;
    double flop_rate = 0, byte_rate = 0;    // while all threads are in this stage, /s
    double flop_share = 0, byte_share = 0;  // of the peaks
};

struct Profile {
    std::string name;  // name of the system
    int64_t atoms = 0;
    int threads = 1;
    bool is_on_gpu = false;       // if true, stages are those of the GPU, by its own clock
    int64_t evaluations = 0;      // number of evaluations summed
    double seconds = 0;           // per evaluation, median
    double profiled_seconds = 0;  // per profiled evaluation, mean
    bool is_identical = false;    // results with and without profiling agree bit for bit
    std::vector<ProfileRow> rows;
    double left_over = 0;  // share of time outside all stages: waiting for threads, or on a GPU for the host
    std::vector<StageLog::Interval> device_trace;
    std::vector<std::vector<StageLog::Interval>> trace;  // of one evaluation, [worker]
};

// `peaks`: for the session's number of threads.
Profile profile_evaluation(Bench& bench, Session& session, const Frame& frame, const Peaks& peaks);

std::string profile_text(const Profile& profile);
nlohmann::json profile_json(const Profile& profile);
// In the trace event format of chrome://tracing and Perfetto: complete events, one process per system, one thread per
// worker.
nlohmann::json trace_json(const std::vector<Profile>& profiles);

}  // namespace mlff::bench
