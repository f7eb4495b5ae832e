// SPDX-License-Identifier: MIT
// Stages of an evaluation: they add up to the whole, nest, and change nothing.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../tags.h"
#include "core/stage_profile.h"
#include "cpu_kernels/kernel_table.h"
#include "tools/bench/profile.h"
#include "tools/verify/evaluation.h"

using namespace mlff;

namespace {

// Of one thread, so much of an evaluation is in stages that have names; the rest is between them.
constexpr double kNamedShare = 0.85;

constexpr const char* kProfiledMace = MLFF_GOLDEN_DIR "/p03_mace_plain_l1.model";

SessionOptions profiled_options(Precision precision, int threads) {
    SessionOptions options;
    options.device = "cpu";
    options.precision = precision;
    options.thread_count = threads;
    return options;
}

int64_t sum_of_times(const StageLog& log) {
    int64_t sum = 0;
    for (const StageLog::Sum& one : log.sums()) sum += one.nanoseconds;
    return sum;
}

double total_flops(const StageProfile& profile) {
    double sum = 0;
    for (const StageLog::Sum& stage : profile.stages())
        if (std::isfinite(stage.flops)) sum += stage.flops;
    return sum;
}

// Intervals come by their ends: each begins after the end of the one before, or before the beginning of all that it
// holds.
bool is_nested(const std::vector<StageLog::Interval>& intervals) {
    for (size_t i = 0; i < intervals.size(); ++i) {
        if (intervals[i].begin > intervals[i].end) return false;
        for (size_t j = 0; j < i; ++j)
            if (intervals[j].begin < intervals[i].begin && intervals[j].end > intervals[i].begin) return false;
    }
    return true;
}

}  // namespace

TEST_CASE("stages: time inside others is theirs, and all of it adds up to the whole") {
    StageLog log;
    log.keep_intervals(true);
    for (int round = 0; round < 3; ++round) {
        Stages whole(&log), inner(&log, Direction::forward, 0);
        whole.begin("whole");
        inner.begin("first", [] { return StageWork{100, 8}; });
        inner.begin("second");
        {
            Stages innermost(&log, Direction::reverse);
            innermost.begin("third");
            REQUIRE(log.current());
            CHECK(std::string(log.current()->name) == "third");
        }
    }
    CHECK(!log.current());
    REQUIRE(log.sums().size() == 4);
    CHECK(log.sums()[0].has_inner);
    CHECK(!log.sums()[1].has_inner);
    CHECK(log.sums()[2].has_inner);
    CHECK(log.sums()[1].flops == 300);
    CHECK(log.sums()[1].bytes == 24);
    CHECK(std::isnan(log.sums()[2].flops));
    for (const StageLog::Sum& sum : log.sums()) CHECK(sum.calls == 3);
    REQUIRE(log.intervals().size() == 12);
    CHECK(is_nested(log.intervals()));
    int64_t whole = 0;
    for (const StageLog::Interval& interval : log.intervals())
        if (interval.stage == Stage{"whole"}) whole += interval.end - interval.begin;
    CHECK(sum_of_times(log) == whole);
    CHECK(stage_text(log.sums()[1].stage) == "layer 1: first");
    CHECK(stage_text(log.sums()[0].stage) == "whole");
    log.clear();
    CHECK(log.sums().empty());
}

TEST_CASE("stages: without a log nothing is asked and nothing is kept") {
    Stages stages(nullptr);
    stages.begin("x", [] {
        FAIL("nobody wants to know");
        return StageWork{};
    });
    stages.finish();
    ThreadTeam team(2);
    CHECK(!team.stage_log(0));
    CHECK(!team.profile());
}

TEST_CASE("stages: workers of a team that are in none are in the caller's") {
    ThreadTeam team(3);
    StageProfile profile;
    team.set_profile(&profile);
    REQUIRE(profile.worker_count() == team.size());
    {
        Stages stages(team.stage_log(0));
        stages.begin("work");
        team.run(64, [&](int64_t, int worker) {
            Stages inner(team.stage_log(worker));
            inner.begin("chunk", [] { return StageWork{2, 3}; });
        });
    }
    team.set_profile(nullptr);
    const std::vector<StageLog::Sum> all = profile.stages();
    REQUIRE(all.size() == 1);  // "work" holds others
    CHECK(all[0].stage == Stage{"chunk"});
    CHECK(all[0].calls == 64);
    CHECK(all[0].flops == 128);
    CHECK(all[0].bytes == 192);
    for (int worker = 1; worker < team.size(); ++worker) {
        REQUIRE(!profile.log(worker).sums().empty());
        CHECK(profile.log(worker).sums()[0].stage == Stage{"work"});
    }
}

TEST_CASE("profiles: stages add up to the whole, nest and change no bit; student and MACE" *
          test::kSlowUnderSanitizers) {
    for (const std::string name : {"builtin", kProfiledMace}) {
        const auto model = load_model(name);
        const Frame frame =
            bench::make_box(bench::choose_material(model->summary().elements), name == "builtin" ? 192 : 96);
        for (const Precision precision : {Precision::mixed, Precision::fp64}) {
            double flops_of_one_thread = 0;
            for (const int threads : {1, 3}) {
                CAPTURE(name);
                CAPTURE(precision_name(precision));
                CAPTURE(threads);
                Session session(model, profiled_options(precision, threads));
                const verify::Evaluation plain = verify::evaluate(session, frame);
                REQUIRE(plain == plain);  // no NaN
                StageProfile profile;
                session.team().set_profile(&profile);
                profile.keep_intervals(true);
                for (int i = 0; i < 3; ++i) CHECK(verify::evaluate(session, frame) == plain);

                int64_t whole = 0;
                for (const StageLog::Interval& interval : profile.log(0).intervals())
                    if (interval.stage == Stage{"evaluation"}) whole += interval.end - interval.begin;
                CHECK(sum_of_times(profile.log(0)) == whole);
                for (int worker = 0; worker < profile.worker_count(); ++worker) {
                    CHECK(is_nested(profile.log(worker).intervals()));
                    CHECK(sum_of_times(profile.log(worker)) <= whole);
                }
                double named = 0, forward = 0, reverse = 0;
                for (const StageLog::Sum& stage : profile.stages()) {
                    named += static_cast<double>(stage.nanoseconds);
                    (stage.stage.direction == Direction::forward ? forward : reverse) +=
                        stage.stage.direction == Direction::neither ? 0.0 : static_cast<double>(stage.nanoseconds);
                    CHECK(stage.calls % 3 == 0);
                    CHECK(!(stage.flops < 0));
                    CHECK(!(stage.bytes < 0));
                }
                CHECK(forward > 0);
                CHECK(reverse > 0);
                const double share = named / (static_cast<double>(whole) * session.thread_count());
                if (threads == 1)
                    MESSAGE(name.substr(name.rfind('/') + 1)
                            << ": " << 100 * share << " % of the time is in named stages");
                if (threads == 1) CHECK(share >= kNamedShare);
                CHECK(share <= 1);
                if (threads == 1) flops_of_one_thread = total_flops(profile);
                CHECK(flops_of_one_thread > 0);
                CHECK(std::abs(total_flops(profile) - flops_of_one_thread) <= 1e-12 * flops_of_one_thread);
                session.team().set_profile(nullptr);
                CHECK(verify::evaluate(session, frame) == plain);
            }
        }
    }
}

TEST_CASE("profiles: text, JSON and trace of the command" * test::kSlowUnderSanitizers) {
    const auto model = load_model("builtin");
    bench::SteadyClock clock;
    bench::ProcessMemory memory;
    bench::Bench bench{.model = model,
                       .model_name = "builtin",
                       .options = profiled_options(Precision::mixed, 2),
                       .material = bench::choose_material(model->summary().elements),
                       .is_quick = true,
                       .sizes = {},
                       .step_count = 0,
                       .clock = clock,
                       .process_memory = memory};
    Session session(model, bench.options);
    const bench::Peaks peaks = bench::measure_peaks(clock, session.team(), 3 << 20);
    for (double peak : {peaks.flops_single, peaks.flops_double, peaks.bytes}) CHECK((peak > 1e6 && peak < 1e15));
    const bench::Profile profile = profile_evaluation(bench, session, bench::make_system(bench.material, 60), peaks);
    CHECK(profile.is_identical);
    CHECK(profile.evaluations >= 5);
    double shares = profile.left_over;
    for (const bench::ProfileRow& row : profile.rows) shares += row.share;
    CHECK(std::abs(shares - 1) <= 1e-9);
    const std::string text = profile_text(profile);
    for (const char* part : {"neighbours", "layer 2: messages", "forward", "reverse", "GFLOP/s", "bit for bit"})
        CHECK(text.find(part) != std::string::npos);

    const nlohmann::json json = profile_json(profile);
    CHECK(json.at("identical") == true);
    bool has_rate = false, lacks_rate = false;
    for (const nlohmann::json& stage : json.at("stages")) {
        CHECK(stage.at("seconds").get<double>() >= 0);
        const bool knows = stage.contains("flop_per_s");
        CHECK(knows == stage.contains("flop_share_of_peak"));
        (knows ? has_rate : lacks_rate) = true;
    }
    CHECK(has_rate);
    CHECK(lacks_rate);  // "neighbours", of which nobody has counted the operations

    const nlohmann::json trace = nlohmann::json::parse(bench::trace_json({profile}).dump());
    std::map<int, std::vector<std::pair<double, double>>> open;  // of each thread: begin and end
    size_t events = 0;
    for (const nlohmann::json& event : trace.at("traceEvents")) {
        if (event.at("ph") != "X") continue;
        ++events;
        auto& stack = open[event.at("tid").get<int>()];
        const double begin = event.at("ts"), end = begin + event.at("dur").get<double>();
        constexpr double kRounding = 1e-6;  // us
        CHECK(begin >= 0);
        while (!stack.empty() && stack.back().second <= begin + kRounding) stack.pop_back();
        if (!stack.empty()) CHECK((begin >= stack.back().first - kRounding && end <= stack.back().second + kRounding));
        stack.emplace_back(begin, end);
    }
    CHECK(events > 10);
    CHECK(open.contains(0));
}

TEST_CASE("the kernel that measures the peak does its work in both precisions") {
    float single = 0;
    double exact = 0;
    CHECK(kernels::choose_kernels<float>().multiply_add(5, &single) ==
          2 * kernels::choose_kernels<double>().multiply_add(5, &exact));
    CHECK(single == 78);  // 1 + 2 + ... + 12
    CHECK(exact == 78);
}
