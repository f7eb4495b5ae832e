// SPDX-License-Identifier: MIT
#include "tools/bench/profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace mlff::bench {
namespace {

using ProfileJson = nlohmann::json;

constexpr double kProfiledSeconds = 2, kProfiledSecondsOfQuick = 0.1;
constexpr int64_t kLeastProfiled = 5;

const char* direction_text(Direction direction) {
    return direction == Direction::forward ? "forward" : direction == Direction::reverse ? "reverse" : "";
}

// Allocates the results beforehand, so that only the session is timed.
struct ProfiledSystem {
    ProfiledSystem(const Session& session, const Frame& frame)
        : system(frame.view()),
          forces(frame.positions.size(), NAN),
          atom_energies(session.model().gives_atom_energies() ? frame.atomic_numbers.size() : 0, NAN) {
        results.outputs.energy = &energy;
        results.outputs.forces = forces.data();
        if (session.model().gives_virial(system)) results.outputs.virial = virial.data();
        if (!atom_energies.empty()) results.outputs.atom_energies = atom_energies.data();
    }
    void evaluate(Session& session) { session.evaluate({&system, 1}, {&results, 1}); }
    bool is_same(const ProfiledSystem& other) const {
        return energy == other.energy && forces == other.forces && virial == other.virial &&
               atom_energies == other.atom_energies;
    }

    SystemView system;
    double energy = NAN;
    std::array<double, 9> virial{};
    std::vector<double> forces, atom_energies;
    Results results;
};

// Profiles the team while it lives.
class Profiling {
public:
    Profiling(ThreadTeam& team, StageProfile& profile) : team_(team) { team.set_profile(&profile); }
    Profiling(const Profiling&) = delete;
    Profiling& operator=(const Profiling&) = delete;
    ~Profiling() { team_.set_profile(nullptr); }

private:
    ThreadTeam& team_;
};

void fill_rows(Profile& profile, const StageProfile& stages, double whole_seconds, Precision precision,
               const Peaks& peaks) {
    const auto evaluations = static_cast<double>(profile.evaluations);
    const double threads = profile.is_on_gpu ? 1 : profile.threads,
                 peak_flops = precision == Precision::fp64 ? peaks.flops_double : peaks.flops_single;
    profile.left_over = 1;
    for (const StageLog::Sum& sum : profile.is_on_gpu ? stages.device().sums() : stages.stages()) {
        ProfileRow row;
        row.stage = sum.stage;
        row.calls = static_cast<double>(sum.calls) / evaluations;
        row.seconds = 1e-9 * static_cast<double>(sum.nanoseconds) / evaluations;
        row.share = row.seconds * evaluations / (threads * whole_seconds);
        row.flops = sum.flops / evaluations;
        row.bytes = sum.bytes / evaluations;
        row.flop_rate = row.flops * threads / row.seconds;
        row.byte_rate = row.bytes * threads / row.seconds;
        row.flop_share = row.flop_rate / peak_flops;
        row.byte_share = row.byte_rate / peaks.bytes;
        profile.left_over -= row.share;
        profile.rows.push_back(row);
    }
}

ProfileJson known(double value) { return std::isfinite(value) ? ProfileJson(value) : ProfileJson(); }

std::string rate_text(double rate, double share) {
    if (!std::isfinite(rate) || !(rate > 0)) return "        -         ";
    char text[64];
    std::snprintf(text, sizeof text, "%9.2f %7.1f %%", rate * 1e-9, 100 * share);
    return text;
}

void append_events(ProfileJson& events, const std::vector<StageLog::Interval>& intervals, int64_t start, size_t process,
                   size_t thread, const std::string& thread_name) {
    events.push_back(
        {{"ph", "M"}, {"name", "thread_name"}, {"pid", process}, {"tid", thread}, {"args", {{"name", thread_name}}}});
    std::vector<const StageLog::Interval*> in_order;
    for (const StageLog::Interval& interval : intervals) in_order.push_back(&interval);
    // Stages that contain others come first.
    std::stable_sort(in_order.begin(), in_order.end(), [](const auto* a, const auto* b) {
        return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
    });
    for (const StageLog::Interval* interval : in_order)
        events.push_back(
            {{"ph", "X"},
             {"name", stage_text(interval->stage)},
             {"cat",
              interval->stage.direction == Direction::neither ? "stage" : direction_text(interval->stage.direction)},
             {"pid", process},
             {"tid", thread},
             {"ts", 1e-3 * static_cast<double>(interval->begin - start)},
             {"dur", 1e-3 * static_cast<double>(interval->end - interval->begin)}});
}

}  // namespace

Profile profile_evaluation(Bench& bench, Session& session, const Frame& frame, const Peaks& peaks) {
    Profile profile;
    profile.name = concat(frame.atom_count(), " atoms", frame.cell ? ", periodic" : "");
    profile.atoms = frame.atom_count();
    profile.threads = session.thread_count();
    bench.announce("profile, " + profile.name);
    ProfiledSystem plain(session, frame), profiled(session, frame);
    profile.seconds = summarize(sample_times(bench.clock, bench.rule(), [&] { plain.evaluate(session); })).median;

    StageProfile stages;
    const Profiling profiling(session.team(), stages);
    profiled.evaluate(session);  // allocates memory for the stages
    profile.is_identical = plain.is_same(profiled);
    stages.clear();
    const double budget = bench.is_quick ? kProfiledSecondsOfQuick : kProfiledSeconds;
    double whole = 0;
    while (profile.evaluations < kLeastProfiled ||
           (whole < budget && profile.evaluations < bench.rule().most_samples)) {
        double elapsed = 0;
        {
            const Stopwatch watch(bench.clock, elapsed);
            profiled.evaluate(session);
        }
        whole += elapsed;
        ++profile.evaluations;
        profile.is_identical = profile.is_identical && plain.is_same(profiled);
    }
    profile.profiled_seconds = whole / static_cast<double>(profile.evaluations);
    profile.is_on_gpu = !stages.device().sums().empty();
    fill_rows(profile, stages, whole, session.precision(), peaks);

    stages.clear();
    stages.keep_intervals(true);
    profiled.evaluate(session);
    for (int worker = 0; worker < stages.worker_count(); ++worker)
        profile.trace.push_back(stages.log(worker).intervals());
    profile.device_trace = stages.device().intervals();
    return profile;
}

std::string profile_text(const Profile& profile) {
    std::string text =
        concat("\n", profile.name, ": ", quantity_text(profile.seconds, "s"), ", ",
               quantity_text(profile.profiled_seconds, "s"), " while profiled (the mean of ", profile.evaluations,
               "); results are ", profile.is_identical ? "the same bit for bit" : "NOT the same", "\n");
    char line[200];
    std::snprintf(line, sizeof line, "%-8s %-38s %10s %8s %9s %9s %9s %9s %9s\n", "",
                  profile.is_on_gpu ? "stage on the GPU" : "stage", "time", "share", "calls", "GFLOP/s", "of peak",
                  "GB/s", "of peak");
    text += line;
    for (const ProfileRow& row : profile.rows) {
        std::snprintf(line, sizeof line, "%-8s %-38s %10s %6.1f %% %9.6g %s %s\n", direction_text(row.stage.direction),
                      stage_text(row.stage).c_str(), quantity_text(row.seconds, "s").c_str(), 100 * row.share,
                      row.calls, rate_text(row.flop_rate, row.flop_share).c_str(),
                      rate_text(row.byte_rate, row.byte_share).c_str());
        text += line;
    }
    std::snprintf(line, sizeof line, "%-8s %-38s %10s %6.1f %%\n", "",
                  profile.is_on_gpu     ? "the GPU waits for the host"
                  : profile.threads > 1 ? "threads wait for each other"
                                        : "between stages",
                  "", 100 * profile.left_over);
    return text + line;
}

nlohmann::json profile_json(const Profile& profile) {
    ProfileJson rows = ProfileJson::array();
    for (const ProfileRow& row : profile.rows) {
        ProfileJson one = {
            {"name", row.stage.name},
            {"direction", row.stage.direction == Direction::neither ? ProfileJson()
                                                                    : ProfileJson(direction_text(row.stage.direction))},
            {"layer", row.stage.layer < 0 ? ProfileJson() : ProfileJson(row.stage.layer + 1)},
            {"calls", row.calls},
            {"seconds", row.seconds},
            {"share", row.share}};
        // Unknown values are omitted.
        for (const auto& [key, value] :
             std::initializer_list<std::pair<const char*, double>>{{"flop", row.flops},
                                                                   {"flop_per_s", row.flop_rate},
                                                                   {"flop_share_of_peak", row.flop_share},
                                                                   {"bytes", row.bytes},
                                                                   {"bytes_per_s", row.byte_rate},
                                                                   {"bytes_share_of_peak", row.byte_share}})
            if (std::isfinite(value)) one[key] = value;
        rows.push_back(std::move(one));
    }
    return {{"name", profile.name},
            {"atoms", profile.atoms},
            {"threads", profile.threads},
            {"evaluations", profile.evaluations},
            {"seconds", profile.seconds},
            {"profiled_seconds", known(profile.profiled_seconds)},
            {"identical", profile.is_identical},
            {"stages", rows},
            {"left_over", known(profile.left_over)}};
}

nlohmann::json trace_json(const std::vector<Profile>& profiles) {
    ProfileJson events = ProfileJson::array();
    for (size_t p = 0; p < profiles.size(); ++p) {
        const Profile& profile = profiles[p];
        int64_t start = std::numeric_limits<int64_t>::max(), device_start = start;
        for (const auto& intervals : profile.trace)
            for (const StageLog::Interval& interval : intervals) start = std::min(start, interval.begin);
        for (const StageLog::Interval& interval : profile.device_trace)
            device_start = std::min(device_start, interval.begin);
        events.push_back(
            {{"ph", "M"}, {"name", "process_name"}, {"pid", p + 1}, {"tid", 0}, {"args", {{"name", profile.name}}}});
        for (size_t worker = 0; worker < profile.trace.size(); ++worker)
            append_events(events, profile.trace[worker], start, p + 1, worker,
                          worker == 0 ? "thread 0, the caller" : concat("thread ", worker));
        // The GPU has its own clock: its first stage is drawn at the beginning.
        if (!profile.device_trace.empty())
            append_events(events, profile.device_trace, device_start, p + 1, profile.trace.size(),
                          "GPU, from its first stage on");
    }
    return {{"displayTimeUnit", "ms"}, {"traceEvents", events}};
}

}  // namespace mlff::bench
