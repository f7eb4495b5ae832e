// SPDX-License-Identifier: MIT
// Where the time of an evaluation goes, stage by stage, beside what the machine could do.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/stage_profile.h"
#include "tools/bench/peaks.h"
#include "tools/bench/suites.h"

namespace mlff::bench {

// One stage of one evaluation, on average. Rates are NaN where the work is not known.
struct ProfileRow {
    Stage stage;
    double calls = 0;    // of all threads together
    double seconds = 0;  // the sum over threads
    double share = 0;    // of the time of all threads
    double flops = 0, bytes = 0;
    double flop_rate = 0, byte_rate = 0;    // while all threads are in this stage, /s
    double flop_share = 0, byte_share = 0;  // of the peaks
};

struct Profile {
    std::string name;  // of the system
    int64_t atoms = 0;
    int threads = 1;
    bool is_on_gpu = false;       // then stages are those of the GPU, by its own clock
    int64_t evaluations = 0;      // that were added up
    double seconds = 0;           // of one evaluation, the median
    double profiled_seconds = 0;  // the mean of those that were profiled
    bool is_identical = false;    // both gave the same numbers, bit for bit
    std::vector<ProfileRow> rows;
    double left_over = 0;  // share of the time in no stage: threads that wait, on a GPU the host
    std::vector<StageLog::Interval> device_trace;
    std::vector<std::vector<StageLog::Interval>> trace;  // of one evaluation, [worker]
};

// `peaks` of the number of threads that the session has.
Profile profile_evaluation(Bench& bench, Session& session, const Frame& frame, const Peaks& peaks);

std::string profile_text(const Profile& profile);
nlohmann::json profile_json(const Profile& profile);
// In the trace event format that chrome://tracing and Perfetto read: complete events, a process for each system, a
// thread for each worker.
nlohmann::json trace_json(const std::vector<Profile>& profiles);

}  // namespace mlff::bench
