// SPDX-License-Identifier: MIT
// mlff bench without a clock: statistics with known answers, a clock that is told what to say, and results compared
// with results.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <limits>

#include "../sanitized.h"
#include "../tags.h"
#include "core/error.h"
#include "dynamics/counter_random.h"
#include "neighbors/neighbor_list.h"
#include "tools/bench/baseline.h"
#include "tools/bench/calibrate.h"
#include "tools/bench/disturbance.h"
#include "tools/bench/memory_monitor.h"
#include "tools/bench/reference.h"
#include "tools/bench/report_html.h"
#include "tools/bench/side_by_side.h"
#include "tools/bench/suites.h"
#include "tools/validate/report.h"

#include <nlohmann/json.hpp>

using namespace mlff;
using namespace mlff::bench;

namespace {

bool is_near(double found, double expected) {
    return std::abs(found - expected) <= 1e-12 * std::max(1.0, std::abs(expected));
}

// Like times of a quiet machine: `centre` and 1 % of noise.
std::vector<double> noisy_times(double centre, size_t count, uint64_t seed) {
    std::vector<double> times;
    for (size_t i = 0; i < count; ++i) times.push_back(centre * (1 + 0.01 * random_normals(seed, 0, i)[0]));
    return times;
}

// A clock that stands still unless a call moves it on.
class ToldClock : public Clock {
public:
    double seconds() override { return now; }
    double now = 0;
};
class ToldMemory : public MemoryMeter {
public:
    explicit ToldMemory(std::function<int64_t(int64_t)> use) : use_(std::move(use)) {}
    int64_t used_bytes() override { return use_(calls_++); }

private:
    std::function<int64_t(int64_t)> use_;
    int64_t calls_ = 0;
};
// Each reading is a millisecond after the one before.
class TickingClock : public Clock {
public:
    double seconds() override { return now_ += 1e-3; }

private:
    double now_ = 0;
};

// A figure of a row by its name; NaN if there is none.
double figure_of(const Row& row, const std::string& name) {
    for (const auto& [found, value] : row.figures)
        if (found == name) return value;
    return NAN;
}

Report report_of(const std::vector<double>& times, double force_error) {
    Report report;
    report.model = "x.model";
    report.sha256 = "abc";
    report.device = "cpu";
    report.precision = "mixed";
    report.machine.processor = "some processor";
    report.rows.emplace_back("latency", "21 atoms", 21, "s", times);
    report.rows.back().checks.push_back(
        validate::at_most("forces against the fp64 reference", force_error, 1e-4, "eV/A"));
    return report;
}
nlohmann::json document(const std::vector<double>& times, double force_error = 1e-6) {
    return report_json(report_of(times, force_error));
}

Comparison compare(const nlohmann::json& now, const nlohmann::json& before) {
    return compare_with_baseline(now, before, "old.json");
}

std::string refusal(const nlohmann::json& now, const nlohmann::json& before) {
    try {
        compare(now, before);
    } catch (const Error& error) {
        CHECK(error.status() == Status::format);
        return error.what();
    }
    return "";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Bench quick_bench(Clock& clock, MemoryMeter& memory, int64_t steps = 20) {
    const auto model = load_model("analytic");
    SessionOptions options;
    options.device = "cpu";
    options.thread_count = 1;
    return {.model = model,
            .model_name = "analytic",
            .options = options,
            .material = choose_material(model->summary().elements),
            .is_quick = true,
            .sizes = {10, 40},
            .step_count = steps,
            .clock = clock,
            .process_memory = memory};
}
Report run_suite(void (*suite)(Bench&, Report&), std::function<int64_t(int64_t)> memory, int64_t steps = 20,
                 double stretch = 1) {
    TickingClock clock;
    ToldMemory told(std::move(memory));
    Bench bench = quick_bench(clock, told, steps);
    for (double& x : bench.material.cell.positions) x *= stretch;
    Report report;
    suite(bench, report);
    return report;
}

}  // namespace

TEST_CASE("statistics of measurements have their known values") {
    // numpy: mean, median, std(ddof=1), percentile(95), percentile(99)
    const std::vector<double> samples = {4, 1, 7, 2, 9, 3, 100, 5, 6, 8};
    const Summary found = summarize(samples);
    CHECK(is_near(found.mean, 14.5));
    CHECK(is_near(found.median, 5.5));
    CHECK(is_near(found.deviation, 30.152390728873666));
    CHECK(is_near(found.minimum, 1));
    CHECK(is_near(found.maximum, 100));
    CHECK(is_near(found.p95, 9 + 0.55 * 91));
    CHECK(is_near(found.p99, 9 + 0.91 * 91));
    CHECK(found.outliers == std::vector<size_t>{6});
    CHECK(found.median_interval.low >= 2);
    CHECK(found.median_interval.low < 5.5);
    CHECK(found.median_interval.high > 5.5);
    CHECK(found.median_interval.high <= 9);  // the outlier is not in it
}

TEST_CASE("percentiles lie between neighbours of the sorted samples") {
    const std::vector<double> samples = {30, 10, 20, 40};
    CHECK(is_near(percentile(samples, 0), 10));
    CHECK(is_near(percentile(samples, 25), 17.5));
    CHECK(is_near(percentile(samples, 50), 25));
    CHECK(is_near(percentile(samples, 100), 40));
    CHECK(is_near(percentile(std::vector<double>{3}, 99), 3));
}

TEST_CASE("one sample has no spread, and what is no sample is refused") {
    const Summary one = summarize(std::vector<double>{2});
    CHECK(one.deviation == 0);
    CHECK((one.median_interval.low == 2 && one.median_interval.high == 2));
    CHECK(one.outliers.empty());
    CHECK_THROWS_AS(summarize(std::vector<double>{}), Error);
    CHECK_THROWS_AS(summarize(std::vector<double>{1, std::nan("")}), Error);
    CHECK_THROWS_AS(summarize(std::vector<double>{1, std::numeric_limits<double>::infinity()}), Error);
    CHECK_THROWS_AS(percentile(std::vector<double>{1}, 101), Error);
}

TEST_CASE("the interval of the median holds the true one as often as it should, and is the same each time") {
    int inside = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        const Interval interval = median_interval(noisy_times(1, 31, seed));
        if (interval.low <= 1 && 1 <= interval.high) ++inside;
    }
    // The same method with numpy and 1,500 sets: 93.1 % for 31 samples. 200 sets are within 3.5 standard deviations of
    // that.
    CHECK(inside >= 174);
    CHECK(inside <= 198);
    const Interval first = median_interval(noisy_times(1, 31, 5)), again = median_interval(noisy_times(1, 31, 5));
    CHECK((first.low == again.low && first.high == again.high));
    // The interval shrinks as one over the root of the count: 16 times the samples, a quarter of the width.
    const Interval few = median_interval(noisy_times(1, 50, 3)), many = median_interval(noisy_times(1, 800, 3));
    CHECK((many.high - many.low) < 0.5 * (few.high - few.low));
}

TEST_CASE("outliers are found where most samples are equal, too, and not among normal ones") {
    CHECK(find_outliers(std::vector<double>{5, 5, 5, 5, 5, 5, 5, 9}) == std::vector<size_t>{7});
    CHECK(find_outliers(std::vector<double>{5, 5, 5}).empty());
    CHECK(find_outliers(noisy_times(1, 20, 1)).empty());
}

TEST_CASE("an interval by rank is that of the bootstrap" * test::kSlowUnderSanitizers) {
    std::vector<double> many;
    for (uint64_t i = 0; i < kMostResampled; ++i) many.push_back(random_normals(3, 0, i)[0]);
    const Interval resampled = median_interval(many);
    many.push_back(random_normals(3, 1, 0)[0]);
    const Interval by_rank = median_interval(many);
    const double width = 2 * 1.96 * 1.2533 / std::sqrt(5000.0);  // of the median of normal numbers
    CHECK(std::abs(by_rank.high - by_rank.low - width) <= 0.15 * width);
    CHECK(std::abs(by_rank.low - resampled.low) <= 0.1 * width);
    CHECK(std::abs(by_rank.high - resampled.high) <= 0.1 * width);
    many[17] = std::nan("");
    CHECK_THROWS_AS(median_interval(many), Error);
}

TEST_CASE("a straight line through points") {
    const StraightLine exact = fit_straight_line(std::vector<double>{1, 2, 4}, std::vector<double>{5, 7, 11});
    CHECK(is_near(exact.slope, 2));
    CHECK(is_near(exact.intercept, 3));
    CHECK(exact.slope_error < 1e-12);
    // By hand: residuals -1/3, 2/3, -1/3 squared sum to 2/3; one degree of freedom; sum of x^2 about the mean is 2.
    const StraightLine rough = fit_straight_line(std::vector<double>{0, 1, 2}, std::vector<double>{0, 2, 2});
    CHECK(is_near(rough.slope, 1));
    CHECK(is_near(rough.intercept, 1.0 / 3));
    CHECK(is_near(rough.slope_error, std::sqrt(2.0 / 3 / 2)));
    CHECK_THROWS_AS(fit_straight_line(std::vector<double>{1, 1}, std::vector<double>{1, 2}), Error);
}

TEST_CASE("calls that warm up are not counted, and sampling ends by number or by time") {
    ToldClock clock;
    int calls = 0;
    const auto call = [&] { clock.now += ++calls <= 2 ? 100 : 0.25; };  // the first two are slow
    CHECK(sample_times(clock, {2, 0, 3, 10, 0}, call) == std::vector<double>(3, 0.25));
    CHECK(calls == 5);
    CHECK(sample_times(clock, {0, 0, 3, 10, 1.0}, call).size() == 4);  // until the time is over
    CHECK(sample_times(clock, {0, 0, 3, 6, 1000}, call).size() == 6);  // or the most
    calls = 10;
    CHECK(sample_times(clock, {1, 1.0, 1, 1, 0}, call).size() == 1);
    CHECK(calls == 15);  // four calls of 0.25 s to warm up, then one
    const auto standing = [] {};
    CHECK(sample_times(clock, {1, 1.0, 2, 5, 0}, standing) ==
          std::vector<double>(2, 0.0));  // a clock that stands still does not hang
}

TEST_CASE("the ratio of medians: samples taken side by side are drawn together") {
    // A machine that is three times as slow in every other round: for both alike, so that the ratio is known as well as
    // on a quiet one.
    std::vector<double> first = noisy_times(2, 41, 1), second = noisy_times(1, 41, 2);
    const Interval quiet = median_ratio_interval(first, second);
    CHECK((quiet.low < 2 && 2 < quiet.high && quiet.high - quiet.low < 0.05));
    for (size_t i = 0; i < first.size(); i += 2) first[i] *= 3, second[i] *= 3;
    const Interval busy = median_ratio_interval(first, second);
    CHECK((busy.low < 2 && 2 < busy.high && busy.high - busy.low < 0.15));
    const Interval alone = median_interval(first);
    CHECK(alone.high - alone.low > 1);
    const Interval same = median_ratio_interval(first, first);
    CHECK((same.low == 1 && same.high == 1));
    CHECK_THROWS_AS(median_ratio_interval(first, std::vector<double>(3, 1.0)), Error);
    CHECK_THROWS_AS(median_ratio_interval(first, std::vector<double>(first.size(), 0.0)), Error);
}

TEST_CASE("calls take turns, there and back, and short ones come once more before they count") {
    ToldClock clock;
    std::string order;
    const auto call = [&](char name, double seconds) {
        return [&clock, &order, name, seconds] {
            order += name;
            clock.now += seconds;
        };
    };
    const auto times =
        sample_times_in_turns(clock, {1, 0, 3, 9, 0}, {call('a', 0.25), call('b', 0.001), call('c', 0.5)});
    CHECK(order ==
          "abc"
          "abbc"
          "cbba"
          "abbc");
    REQUIRE(times.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
        REQUIRE(times[i].size() == 3);
        for (double time : times[i]) CHECK(std::abs(time - std::vector<double>{0.25, 0.001, 0.5}[i]) < 1e-9);
    }
    // The time is for each: two calls of 0.25 s and 2 x 1 s are four rounds.
    CHECK(sample_times_in_turns(clock, {0, 0, 1, 9, 1}, {call('a', 0.25), call('b', 0.25)})[1].size() == 4);
}

TEST_CASE("growth of memory is a leak above 10 MB or as a trend") {
    std::vector<int64_t> flat(20, 50'000'000), once = flat, steady = flat, large = flat, tiny = flat;
    for (size_t i = 0; i < 20; ++i) {
        if (i >= 10) once[i] += 4'000'000;
        if (i >= 10) large[i] += 10'500'000;
        steady[i] += static_cast<int64_t>(i) * 40'960;
        tiny[i] += static_cast<int64_t>(i) * 4'096;
    }
    CHECK((memory_growth(flat).bytes == 0 && !memory_growth(flat).is_trend));
    CHECK((memory_growth(once).bytes == 4'000'000 && !memory_growth(once).is_trend));
    CHECK((memory_growth(steady).bytes == 19 * 40'960 && memory_growth(steady).is_trend));
    CHECK((memory_growth(large).bytes > kLeakBytes && !memory_growth(large).is_trend));
    CHECK(!memory_growth(tiny).is_trend);
    CHECK((memory_growth(steady).is_leak() && memory_growth(large).is_leak()));
    CHECK((!memory_growth(flat).is_leak() && !memory_growth(once).is_leak() && !memory_growth(tiny).is_leak()));
    CHECK_THROWS_AS(memory_growth({1}), Error);
}

TEST_CASE("this process has memory, and its peak is at least what was taken") {
    ProcessMemory memory;
    memory.begin_peak();
    const int64_t before = memory.used_bytes();
    CHECK(before > 100'000);
    std::vector<char> taken(64'000'000, 1);
    CHECK(taken[12'345'678] == 1);
    CHECK(memory.peak_bytes() - before > 60'000'000);
}

TEST_CASE("memory of a process that this one has started counts") {
    ProcessMemory memory;
    const int64_t before = memory.used_bytes();
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {  // nothing but system calls, for other threads may hold locks
        static char taken[32'000'000];
        for (size_t i = 0; i < sizeof taken; i += 1024) static_cast<volatile char*>(taken)[i] = 1;
        _exit(write(ends[1], taken, 1) == 1 ? pause() : 1);
    }
    REQUIRE(child > 0);
    char ready = 0;
    CHECK(read(ends[0], &ready, 1) == 1);
    CHECK(memory.used_bytes() - before > 30'000'000);
    memory.begin_peak();
    CHECK(memory.peak_bytes() - before > 30'000'000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    CHECK(memory.used_bytes() - before < 30'000'000);
    close(ends[0]);
    close(ends[1]);
}

TEST_CASE("clusters are whole molecules, boxes whole cells, and atoms stay apart") {
    const Material water = choose_material({1, 6, 8});
    CHECK(water.name == "water");
    CHECK(make_cluster(water, 10).atom_count() == 9);
    CHECK(make_cluster(water, 20).atom_count() == 21);
    CHECK(make_cluster(water, 1).atom_count() == 3);
    CHECK(make_cluster(water, 200).atom_count() == 201);
    CHECK(make_box(water, 1).atom_count() == 192);
    CHECK(make_box(water, 193).atom_count() == 384);
    CHECK(make_box(water, 1536).atom_count() == 1536);
    const Material silicon = choose_material({14});
    CHECK(make_cluster(silicon, 10).atom_count() == 10);
    const Material odd = choose_material({79});
    CHECK(make_box(odd, 100).atom_count() >= 100);
    for (const Frame& frame :
         {make_cluster(water, 50), make_box(water, 384), make_cluster(silicon, 30), make_box(odd, 100)}) {
        NeighborOptions options;
        options.cutoff = 0.7;
        NeighborList list(options);
        ThreadTeam team(1);
        list.update(frame.view(), team);
        CHECK(list.edges().edge_count == 0);
        CHECK((frame.cell.has_value() == frame.periodic[0]));
    }
    // In a cluster of water each oxygen has its two hydrogens.
    const Frame cluster = make_cluster(water, 50);
    for (size_t i = 0; i < cluster.atomic_numbers.size(); ++i) {
        CHECK(cluster.atomic_numbers[i] == (i % 3 == 0 ? 8 : 1));
        double squared = 0;
        for (size_t k = 0; k < 3; ++k)
            squared += std::pow(cluster.positions[3 * i + k] - cluster.positions[3 * (i - i % 3) + k], 2);
        CHECK(squared < 1.2 * 1.2);
    }
}

TEST_CASE("suites give the rows they promise, with the clock's numbers") {
    const Report latency = run_suite(run_latency, [](int64_t) { return 0; });
    REQUIRE(latency.rows.size() == 2);
    for (const Row& row : latency.rows) {
        CHECK(is_near(row.summary.median, 1e-3));
        CHECK(row.samples.size() == 8);  // of one pass
        CHECK(row.blocks == std::vector<size_t>{8});
        CHECK(row.probes.size() == 2);
        REQUIRE(row.figures.size() == 3);  // us/atom, error of the energy, RMSE of the forces
        CHECK(is_near(row.figures[0].second, 1e3 / static_cast<double>(row.atoms)));
        CHECK((row.figures[1].second >= 0 && row.figures[2].second >= 0));
        CHECK(row.checks.size() == 1);
    }
    CHECK(latency.is_passed());
    const Report throughput = run_suite(run_throughput, [](int64_t) { return 0; });
    REQUIRE(throughput.rows.size() == 2);
    CHECK(is_near(throughput.rows[1].figures[0].second, 8000));
    const Report load = run_suite(run_load, [](int64_t) { return 0; });
    CHECK(load.rows.size() == 2);
    const Report neighbors = run_suite(run_neighbors, [](int64_t) { return 0; });
    CHECK(neighbors.rows.size() == 2);
    CHECK(neighbors.rows[0].figures[0].second > 1);
}

TEST_CASE("dynamics counts steps, and a leak fails") {
    const Report good = run_suite(
        run_dynamics, [](int64_t) { return 50'000'000; }, 40);
    REQUIRE(good.rows.size() == 1);
    CHECK(good.is_passed());
    CHECK(is_near(good.rows[0].summary.median, 0.5e-3));  // two steps between two readings of the clock
    CHECK(is_near(good.rows[0].figures[0].second, 2000));
    CHECK(is_near(good.rows[0].figures[1].second, 2000 * 0.5e-6 * 86400));
    CHECK(std::isfinite(good.rows[0].figures[2].second));
    CHECK(!run_suite(run_dynamics, [](int64_t call) { return 50'000'000 + 100'000 * call; }).is_passed());  // a trend
    CHECK(!run_suite(run_dynamics, [](int64_t call) {
               return call > 9 ? 70'000'000 : 50'000'000;
           }).is_passed());  // 20 MB at once
    const Report broken = run_suite(
        run_dynamics, [](int64_t) { return 50'000'000; }, 20, std::nan(""));  // atoms nowhere
    CHECK(!broken.is_passed());
    REQUIRE(broken.failures.size() == 1);
    CHECK(has(broken.failures[0], "dynamics broke"));
    CHECK(has(report_markdown(broken), "FAIL"));
    CHECK(report_json(broken).at("passed") == false);
}

TEST_CASE("memory is fitted by a line") {
    int64_t atoms = 0;
    const std::vector<int64_t> sizes = {192, 768, 1536};
    const Report report = run_suite(run_memory, [&](int64_t call) {
        atoms = sizes[static_cast<size_t>(call / 9)];  // nine readings for three phases
        return call % 9 == 0  ? 1'000'000
               : call % 9 < 3 ? 3'000'000
                              : 1'000'000 + 5'000'000 + 700 * atoms;  // before, with a session, after its calls
    });
    REQUIRE(report.rows.size() == 3);
    const Row& last = report.rows.back();
    CHECK(is_near(figure_of(last, "B/atom fitted"), 700));
    CHECK(std::abs(figure_of(last, "B/atom standard error of the fit")) < 1e-6);
    CHECK(is_near(figure_of(last, "B for no atoms"), 5'000'000));
    CHECK(is_near(figure_of(last, "B kept by session"), 2'000'000));
    CHECK(is_near(figure_of(last, "B kept by second call"), 0));
}

TEST_CASE("a monitor knows what each phase kept and the most of all") {
    const std::vector<int64_t> readings = {100, 150, 400, 150, 180, 170, 170, 170, 90};
    ToldMemory memory([&](int64_t call) { return readings.at(static_cast<size_t>(call)); });
    MemoryMonitor monitor(memory);
    monitor.begin("load");        // 100
    monitor.begin("first call");  // 150 after, 400 at most; begins with 150
    monitor.begin("steady");      // 180 after, 170 is no peak; begins with 170
    monitor.end();                // 170, 90
    monitor.end();
    REQUIRE(monitor.phases().size() == 3);
    CHECK(monitor.phases()[0].kept() == 50);
    CHECK(monitor.phases()[0].peak == 400);
    CHECK(monitor.phases()[1].kept() == 30);
    CHECK(monitor.phases()[1].peak == 180);
    CHECK(monitor.phases()[2].kept() == 0);
    CHECK(monitor.phases()[2].peak == 170);
    CHECK(monitor.most_bytes() == 300);
}

TEST_CASE("leaks of repeated calls and of repeated sessions fail") {
    const Report good = run_suite(run_leaks, [](int64_t) { return 50'000'000; });
    REQUIRE(good.rows.size() == 2);
    CHECK(good.is_passed());
    for (const Row& row : good.rows) CHECK(row.checks.size() == 1);
    const Report calls =
        run_suite(run_leaks, [](int64_t reading) { return 50'000'000 + 20'000 * std::min<int64_t>(reading, 80); });
    REQUIRE(calls.rows.size() == 2);
    CHECK(!calls.rows[0].checks[0].is_passed());
    CHECK(calls.rows[1].checks[0].is_passed());
    // What has stopped to grow after a while is no leak.
    CHECK(run_suite(run_leaks, [](int64_t reading) {
              return 50'000'000 + 20'000 * std::min<int64_t>(reading, 60);
          }).is_passed());
    CHECK(!run_suite(run_leaks, [](int64_t reading) { return reading > 30 ? 61'000'000 : 50'000'000; })
               .rows[1]
               .checks[0]
               .is_passed());
}

TEST_CASE("a calibration is made of what the clock and the memory say, and predictions are judged by it") {
    // Each call takes a millisecond whatever its size, and each session 8 MB.
    plan::Calibration calibration;
    {
        TickingClock clock;
        ToldMemory memory([](int64_t call) { return call == 0 || call % 6 == 1 ? 30'000'000 : 38'000'000; });
        Bench bench = quick_bench(clock, memory);
        calibration = calibrate(bench);
    }
    CHECK(calibration.process_bytes == 30'000'000);
    REQUIRE(calibration.memory_samples.size() == 4);  // not of the clusters
    CHECK(calibration.evaluation_samples.size() == 8);
    CHECK(calibration.step_samples.size() == 8);
    for (const plan::Sample& sample : calibration.evaluation_samples) CHECK(is_near(sample.value, 1e-3));
    for (const plan::Sample& sample : calibration.memory_samples) CHECK(is_near(sample.value, 8e6));
    CHECK(calibration.memory_samples.back().load.edges > 0);
    CHECK(static_cast<double>(calibration.memory_samples[3].load.edges) <
          0.75 * static_cast<double>(calibration.memory_samples[2].load.edges));  // another density
    CHECK(std::abs(calibration.memory.of({500, 30'000}) - 8e6) < 1);
    CHECK(std::abs(calibration.evaluation.of({500, 30'000}) - 1e-3) < 1e-9);
    CHECK(calibration.memory_error < 1e-6);
    CHECK(has(calibration_table(calibration), "8 MB"));

    const auto judged = [&](int64_t session_bytes) {
        TickingClock clock;
        ToldMemory memory([&](int64_t call) { return call % 6 == 0 ? 30'000'000 : 30'000'000 + session_bytes; });
        Bench bench = quick_bench(clock, memory);
        Report report;
        run_plan(bench, report);
        CHECK(report.rows.empty());
        CHECK(report.left_out.size() == 1);
        bench.calibration = calibration;
        run_plan(bench, report);
        return report;
    };
    const Report good = judged(8'500'000);
    REQUIRE(good.rows.size() == 3);  // memory, an evaluation, a step
    CHECK(good.rows[0].checks[0].is_passed());
    CHECK(good.rows[1].checks[0].is_passed());
    CHECK(is_near(figure_of(good.rows[0], "predicted B"),
                  calibration.memory.of({384, std::llround(384 * figure_of(good.rows[0], "edges/atom"))})));
    CHECK(!judged(16'000'000).rows[0].checks[0].is_passed());
}

TEST_CASE("a baseline: noise is no regression, a slowed run is") {
    const nlohmann::json before = document(noisy_times(1e-3, 40, 1));
    const Comparison equal = compare(document(noisy_times(1e-3, 40, 2)), before);
    CHECK(equal.compared == 1);
    CHECK(equal.regressions.empty());
    CHECK(equal.improvements.empty());
    CHECK(
        compare(document(noisy_times(1.03e-3, 40, 2)), before).regressions.empty());  // surely slower, but by 3 % only
    const Comparison slowed = compare(document(noisy_times(1.1e-3, 40, 2)), before);
    REQUIRE(slowed.regressions.size() == 1);
    CHECK(has(slowed.regressions[0], "latency, 21 atoms"));
    CHECK(has(slowed.regressions[0], "more"));
    CHECK(compare(document(noisy_times(0.9e-3, 40, 2)), before).improvements.size() == 1);
    // A median 20 % higher among samples that scatter by more says nothing.
    const Comparison wild =
        compare(document({1.2e-3, 0.5e-3, 2.5e-3, 0.9e-3, 1.9e-3}), document({1e-3, 0.6e-3, 2.2e-3, 0.8e-3, 1.7e-3}));
    CHECK(wild.regressions.empty());
}

namespace {

// Times of one row as a real machine gives them: in five blocks, each with its own drift, samples that are a little or,
// one in ten, much too long, and a run that is as a whole a little faster or slower than others, which nothing in it
// shows. On a busy machine other programs take a part of the processors, and for a while a neighbour slows the
// processor down.
struct Noise {
    uint64_t seed;
    bool is_busy;
    double drift;  // of runs and of blocks, relative; what samples and probes scatter by goes with it

    mutable uint64_t drawn = 0;
    double uniform(double low, double high) const {
        return low + (high - low) * random_bits(seed, 1, drawn++)[0] / 4294967296.0;
    }
    double normal() const { return random_normals(seed, 2, drawn++)[0]; }
};
std::vector<MeasuredTimes> noisy_run(const Noise& noise, double factor, size_t row_count) {
    constexpr size_t kBlocks = 5, kSamples = 5;
    const double run_drift = std::exp(noise.drift * noise.normal());
    std::vector<double> slowed(kBlocks, 1.0), probes(kBlocks, 1.0);
    double contention = 1, taken = 1;
    if (noise.is_busy) {
        const auto begin = static_cast<size_t>(noise.uniform(0, kBlocks)),
                   end = begin + static_cast<size_t>(noise.uniform(0, kBlocks + 1));
        const double neighbor = noise.uniform(1, 2),
                     felt = std::pow(neighbor, noise.uniform(0.7, 1.3));  // not alike by all that runs
        for (size_t block = begin; block < std::min(end, kBlocks); ++block)
            slowed[block] = neighbor, probes[block] = felt;
        contention = 1 / (1 - noise.uniform(0, 0.6));
        taken = noise.uniform(1, contention);
    }
    std::vector<MeasuredTimes> rows(row_count);
    for (MeasuredTimes& row : rows) {
        row.contention = contention;
        const double row_drift = run_drift * std::exp(0.5 * noise.drift * noise.normal());
        for (size_t block = 0; block < kBlocks; ++block) {
            const double block_time =
                1e-3 * factor * row_drift * taken * slowed[block] * std::exp(noise.drift * noise.normal());
            row.blocks.emplace_back();
            for (size_t i = 0; i < kSamples; ++i)
                row.blocks.back().push_back(block_time * (noise.uniform(0, 1) < 0.1
                                                              ? noise.uniform(1.5, 5)
                                                              : 1 + 1.5 * noise.drift * std::abs(noise.normal())));
            for (int side = 0; side < 2; ++side)
                row.probes.push_back(1e-4 * probes[block] * (1 + noise.drift * std::abs(noise.normal())));
        }
    }
    return rows;
}

struct Tally {
    double alarmed_runs = 0, failed = 0, passed = 0;  // parts of all: runs in which a row failed; rows
};
Tally compare_noisy_runs(bool is_busy, double drift, double factor, double allowed) {
    constexpr size_t kPairs = mlff::test::kIsSanitized ? 50 : 1000, kRows = 12;
    Tally tally;
    for (uint64_t pair = 0; pair < kPairs; ++pair) {
        const auto now = noisy_run({2 * pair + 1, is_busy, drift}, factor, kRows),
                   before = noisy_run({2 * pair + 2, is_busy, drift}, 1, kRows);
        size_t failed = 0, passed = 0;
        for (size_t i = 0; i < kRows; ++i) {
            const validate::Verdict verdict = compare_times(now[i], before[i], allowed).verdict;
            failed += verdict == validate::Verdict::failed;
            passed += verdict == validate::Verdict::passed;
        }
        tally.alarmed_runs += failed > 0 ? 1.0 / kPairs : 0;
        tally.failed += static_cast<double>(failed) / (kPairs * kRows);
        tally.passed += static_cast<double>(passed) / (kPairs * kRows);
    }
    return tally;
}

}  // namespace

TEST_CASE("a baseline: a quick run cries no wolf, and sees a slow-down of 30 %") {
    constexpr double kDrift = 0.02;
    const Tally same = compare_noisy_runs(false, kDrift, 1, kQuickSlowdown),
                slower = compare_noisy_runs(false, kDrift, 1.3, kQuickSlowdown);
    CHECK(same.alarmed_runs < 0.01);
    CHECK(same.passed > 0.7);
    CHECK(slower.failed > 0.95);
    CHECK(slower.passed == 0);
    // On a busy machine most is undecided, and still nothing is made up.
    const Tally busy = compare_noisy_runs(true, kDrift, 1, kQuickSlowdown),
                far_slower = compare_noisy_runs(true, kDrift, 10, kQuickSlowdown);
    CHECK(busy.alarmed_runs < 0.01);
    CHECK(far_slower.failed > 0.95);
}

TEST_CASE("a baseline: a full run on a quiet machine sees a slow-down of 10 %") {
    constexpr double kDrift = 0.005;
    const Tally same = compare_noisy_runs(false, kDrift, 1, kSlowdown),
                slower = compare_noisy_runs(false, kDrift, 1.1, kSlowdown);
    CHECK(same.alarmed_runs < 0.01);
    CHECK(same.passed > 0.95);
    CHECK(slower.failed > 0.95);
}

TEST_CASE("a baseline: what may have slowed a run down widens what is known of it") {
    const auto run = [](double time, double contention, double probe) {
        return MeasuredTimes{
            {{time, 2 * time}, {1.01 * time}, {1.02 * time, 9 * time}}, contention, {probe, probe, 5 * probe}};
    };
    const Change plain = compare_times(run(1.2, 1, 1), run(1, 1, 1), 0.1);
    CHECK(is_near(plain.ratio, 1.2));
    CHECK(is_near(plain.low, 1.2 / 1.02));
    CHECK(is_near(plain.high, 1.2 * 1.02));
    CHECK(plain.verdict == validate::Verdict::failed);
    CHECK(is_near(compare_times(run(1.2, 1.5, 1), run(1, 1, 1), 0.1).low, 1.2 / 1.02 / 1.5));
    CHECK(compare_times(run(1.2, 1.5, 1), run(1, 1, 1), 0.1).verdict == validate::Verdict::undecided);
    CHECK(compare_times(run(1.2, 1, 1.5), run(1, 1, 1), 0.1).verdict == validate::Verdict::undecided);
    CHECK(compare_times(run(1.2, 1, 1.5), run(1, 1, 1.5), 0.1).verdict ==
          validate::Verdict::failed);  // both alike, as far as anyone knows
    CHECK(is_near(compare_times(run(1, 1, 1), run(1, 1, 1.5), 0.1).high, 1.02 * 1.5));
    CHECK(compare_times(run(1, 1, 1), run(1, 1, 1), 0.1).verdict == validate::Verdict::passed);
    // One block does not know how much the next would differ.
    CHECK(compare_times({{{1.2}}}, {{{1.0}}}, 0.1).verdict == validate::Verdict::undecided);
    CHECK(compare_times({{{0.0}}}, {{{0.0}}}, 0.1).verdict == validate::Verdict::passed);
    CHECK_THROWS_AS(compare_times({{{NAN}}}, {{{1.0}}}, 0.1), Error);
}

TEST_CASE("what other programs take of the processors is in /proc/stat") {
    const char* before = "cpu  100 0 50 1000 10 0 0 40 7 0\ncpu0 1 2 3\n";
    const char* after = "cpu  250 0 50 1040 10 0 0 50 7 0\ncpu0 1 2 3\n";
    const ProcessorTimes spent = parse_processor_times(after, 100, 2.5) - parse_processor_times(before, 100, 1.5);
    CHECK(is_near(spent.all, 2));       // of 2 processors in a second
    CHECK(is_near(spent.others, 0.6));  // 1.5 s of programs and 0.1 s of other guests, less what was our own
    CHECK(is_near(contention(spent, 2, 1), 1));
    CHECK(is_near(contention(spent, 2, 2), 2 / 1.4));
    CHECK(is_near(contention(spent, 20, 2), 1));
    CHECK(is_near(contention({}, 2, 2), 1));
    CHECK(is_near(contention({5, 2}, 2, 2), 100));
    CHECK(parse_processor_times("intr 1 2", 100, 0).all == 0);
    const ProcessorTimes now = processor_times();
    CHECK(now.all > 0);
    CHECK(now.others <= now.all);
    SteadyClock clock;
    CHECK(probe_seconds(clock) > 0);
}

TEST_CASE("a baseline: a quick run that is too noisy says so") {
    const auto quick = [](const std::vector<double>& times, double contention) {
        nlohmann::json run = document(times);
        run["quick"] = true;
        run["rows"][0]["contention"] = contention;
        return run;
    };
    const nlohmann::json before = quick(noisy_times(1e-3, 40, 1), 1);
    CHECK(compare(quick(noisy_times(1.3e-3, 40, 2), 1), before).regressions.size() == 1);
    CHECK(compare(quick(noisy_times(1.08e-3, 40, 2), 1), before).regressions.empty());
    const Comparison noisy = compare(quick(noisy_times(1.3e-3, 40, 2), 2), before);
    CHECK(noisy.regressions.empty());
    REQUIRE(noisy.undecided.size() == 1);
    CHECK(has(noisy.undecided[0], "latency, 21 atoms: 1.2"));
    CHECK(has(noisy.undecided[0], "too noisy to tell: from "));
    REQUIRE(noisy.notes.size() == 1);
    CHECK(noisy.notes[0] == "other programs may have slowed this run down: times up to 2 times as long as alone");
    CHECK(counts_text(noisy) == "0 regressions, 1 undecided");
    Report report = report_of(noisy_times(1e-3, 50, 1), 2e-6);
    CHECK(has(report_html(report, noisy), "beside old.json: 0 regressions, 1 undecided in 1 lines"));
    CHECK(has(report_html(report, noisy), "undecided beside the baseline"));
}

TEST_CASE("a quick run goes through its short suites several times") {
    TickingClock clock;
    ToldMemory memory([](int64_t) { return 0; });
    Bench bench = quick_bench(clock, memory);
    Report report;
    std::vector<size_t> firsts;
    run_suites(bench, {{"latency", run_latency, true}, {"memory", run_memory}, {"load", run_load, true}}, report,
               [&](size_t first) { firsts.push_back(first); });
    CHECK(firsts == std::vector<size_t>{0, 2, 5});
    REQUIRE(report.rows.size() == 7);
    for (const Row& row : report.rows) {
        CHECK(row.blocks.size() == (row.unit == "s" ? kQuickPasses : 1));
        CHECK(row.samples.size() == (row.unit == "s" ? 8 * kQuickPasses : 1));
        CHECK(row.contention >= 1);
    }
}

TEST_CASE("a baseline: wrong numbers are regressions however fast they are") {
    const nlohmann::json before = document(noisy_times(1e-3, 40, 1));
    CHECK(compare(document(noisy_times(1e-3, 40, 2), 5e-6), before).regressions.empty());
    for (double error :
         {2e-4, 3e-5, std::nan("")}) {  // beyond the bound; within it, but thirty times what it was; not a number
        CAPTURE(error);
        const Comparison wrong = compare(document(noisy_times(0.5e-3, 40, 2), error), before);
        REQUIRE(wrong.regressions.size() == 1);
        CHECK(has(wrong.regressions[0], "forces against the fp64 reference"));
    }
    nlohmann::json unchecked = document(noisy_times(1e-3, 40, 2));
    unchecked["rows"][0]["checks"].clear();
    CHECK(compare(unchecked, before).notes.size() == 1);
}

TEST_CASE("a baseline of something else is refused by name") {
    const nlohmann::json now = document(noisy_times(1e-3, 10, 1));
    CHECK(refusal(now, now) == "");
    for (const char* field :
         {"/machine/processor", "/sha256", "/device", "/precision", "/threads", "/quick", "/version"}) {
        CAPTURE(field);
        nlohmann::json other = now;
        other[nlohmann::json::json_pointer(field)] = "other";
        CHECK(has(refusal(now, other), std::string(field).substr(1)));
        CHECK(has(refusal(now, other), "old.json"));
    }
    CHECK(has(refusal(now, nlohmann::json::array()), "mlff bench"));
    nlohmann::json other = now;
    other["rows"][0]["name"] = "22 atoms";
    CHECK(has(refusal(now, other), "none of the rows"));
    other = now;
    other["rows"][0]["samples"] = {1, "two"};
    CHECK(has(refusal(now, other), "old.json"));
    other["rows"][0]["samples"] = nlohmann::json::array();
    CHECK(has(refusal(now, other), "old.json"));
    other = now;
    other["rows"][0]["blocks"] = {3, 4};
    CHECK(has(refusal(now, other), "10 samples, but its blocks add up to 7"));
    other["rows"][0].erase("blocks");  // a file of an earlier version
    CHECK(refusal(now, other) == "");
    other = now;
    other["mlff"] = "0.0.1";
    CHECK(compare(now, other).notes.size() == 1);
}

TEST_CASE("reports: all samples in the JSON, rows and checks in Markdown") {
    const Report report = report_of({1e-3, 2e-3, 3e-3}, 2e-4);
    CHECK(!report.is_passed());
    const nlohmann::json json = report_json(report);
    CHECK(json.at("rows").at(0).at("samples") == nlohmann::json({1e-3, 2e-3, 3e-3}));
    CHECK(json.at("rows").at(0).at("median") == 2e-3);
    CHECK(json.at("passed") == false);
    CHECK(json.at("machine").at("gpu").is_null());
    const std::string text = report_markdown(report);
    CHECK(has(text, "| 21 atoms | 2 ms |"));
    CHECK(has(text, "FAIL"));
    CHECK(has(row_text(report.rows[0]), "2 ms"));
    CHECK(quantity_text(0, "s") == "0 s");
    CHECK(quantity_text(123.4, "s") == "123.4 s");
    CHECK(quantity_text(2.5e-6, "s") == "2.5 us");
    CHECK(quantity_text(12'300'000, "B") == "12.3 MB");
    CHECK(quantity_text(0.25, "B/atom") == "0.25 B/atom");
    Row row("memory", "192 atoms", 192, "B", std::vector<double>{5e6});
    row.figures = {{"B/atom", 26041.7}, {"B kept by session", 1.2e9}, {"predicted B", 0}, {"edges/atom", 52}};
    CHECK(notes_text(row) == "26.04 kB/atom, 1.2 GB kept by session, 0 B predicted, 52 edges/atom");
    const Check leak = validate::at_most("growth", 12'345'678, 1e7, "B");
    CHECK(validate::value_text(leak) + ", " + validate::range_text(leak) == "12.3 MB, at most 10.0 MB");
}

TEST_CASE("a page has a section for each suite, and what is quoted is escaped") {
    Report report = report_of(noisy_times(1e-3, 50, 1), 2e-6);
    report.model = "<b>.model";
    report.rows.emplace_back("memory", "192 atoms", 192, "B", std::vector<double>{5e6});
    report.rows.emplace_back("memory", "384 atoms", 384, "B", std::vector<double>{9e6});
    report.rows.emplace_back("load", "the model", 0, "s", std::vector<double>{0.1});
    report.left_out = {"something & all"};
    const std::string good = report_html(report);
    for (const char* part : {"Benchmark of &lt;b&gt;.model", "PASS: 4 lines measured, 1 check passed", "id=\"latency\"",
                             "id=\"memory\"", "id=\"load\"", "id=\"checks\"", "something &amp; all", ">P99</text>"})
        CHECK_MESSAGE(has(good, part), part);
    CHECK(!has(good, "<b>"));
    CHECK(!has(good, "nan"));
    Comparison worse;
    worse.file = "old.json";
    worse.compared = 4;
    worse.regressions = {"latency, 21 atoms: much more"};
    CHECK(has(report_html(report, worse),
              "FAIL: 4 lines measured, 1 check passed; beside old.json: 1 regression in 4 lines"));
    CHECK(has(report_html(report, worse), "latency, 21 atoms: much more"));
    // Samples that are all the same, or none at all above zero, have no histogram.
    CHECK(!has(report_html(report_of({1e-3, 1e-3, 1e-3}, 2e-6)), "rect"));
    CHECK(!has(report_html(report_of({0, 0, 1e-3}, 2e-6)), "rect"));
    CHECK(has(report_html(report_of({1e-3, 2e-3}, 2e-4)), "FAIL: 1 check failed"));
}

TEST_CASE("frames that are evaluated again are never the same twice, and nearly where they were") {
    const Frame frame = make_cluster(choose_material({1, 8}), 10);
    RepeatedFrames frames({frame, frame});
    double last = NAN;
    for (int call = 0; call < 3; ++call)
        for (const Frame& moved : frames.next()) {
            CHECK(moved.positions[0] != last);
            last = moved.positions[0];
            REQUIRE(moved.positions.size() == frame.positions.size());
            for (size_t i = 0; i < frame.positions.size(); ++i)
                CHECK(std::abs(moved.positions[i] - frame.positions[i]) <= (i == 0 ? 1e-6 : 0));
        }
}

TEST_CASE("mace-torch is held against the native reference of its file, other calculators against nothing") {
    SessionOptions options;
    options.device = "cpu";
    options.thread_count = 1;
    const std::string file = MLFF_GOLDEN_DIR "/p10_mace_1layer_c1_ell1.model";
    Reference found("python:mace:" + file + "?env=/nowhere", nullptr, options);
    REQUIRE(found.why_none().empty());
    options.precision = Precision::fp64;
    Session native(load_model(file), options);
    const Frame some = make_cluster(choose_material(native.model().summary().elements), 10);
    CHECK(found.accuracy_of(native, some).forces.is_passed());
    options.precision = Precision::automatic;
    for (const char* name : {"python:calculators.py:Pairs", "python:mace:/nowhere.model", "python:student:/nowhere"})
        CHECK(!Reference(name, nullptr, options).why_none().empty());
    CHECK_THROWS_AS(Reference("analytic", load_model("analytic"), SessionOptions{.head = "nobody"}), Error);
    // Forces that are a little wrong are found to be so: mixed beside fp64, and the reference beside itself.
    const auto model = load_model("builtin");
    const Frame frame = make_cluster(choose_material(model->summary().elements), 10);
    Session mixed(model, options);
    Reference reference("builtin", model, options);
    CHECK(reference.why_none().empty());
    options.device = "reference";
    options.precision = Precision::fp64;
    Session plain(model, options);
    const Accuracy rounded = reference.accuracy_of(mixed, frame), exact = reference.accuracy_of(plain, frame);
    CHECK((rounded.forces.is_passed() && rounded.forces.value > 1e-9 && rounded.meV_per_atom > 0 &&
           rounded.meV_per_atom < 0.1));
    CHECK((rounded.force_rmse > 1e-10 && rounded.force_rmse < rounded.forces.value));
    CHECK((exact.forces.value == 0 && exact.meV_per_atom == 0 && exact.force_rmse == 0));
    CHECK(exact.forces.upper < rounded.forces.upper);
    Row row("latency", "9 atoms", 9, "s", {1});
    rounded.add_to(row);
    REQUIRE(row.figures.size() == 2);
    CHECK((row.figures[0].second == rounded.meV_per_atom && row.figures[1].second == rounded.force_rmse));
    CHECK(row.checks.size() == 1);
}

TEST_CASE("larger systems are compared with fp64 on the CPU, which is compared with plain loops itself") {
    const std::shared_ptr<const Model> model = load_model("builtin");
    SessionOptions options;
    options.device = "cpu";
    const Frame frame = make_box(choose_material(model->summary().elements), 192);
    REQUIRE(frame.atom_count() > Reference::kMostOfPlainLoops);
    Reference reference("builtin", model, options);
    Session mixed(model, options);
    const Accuracy rounded = reference.accuracy_of(mixed, frame);
    CHECK((rounded.forces.is_passed() && rounded.forces.value > 1e-9));
    options.precision = Precision::fp64;
    Session fp64(model, options);
    const Accuracy tables = reference.accuracy_of(fp64, frame);
    CHECK((tables.forces.is_passed() && tables.forces.value > 0));  // from radial functions in tables
    // What is too large says so.
    Frame too_many;
    too_many.atomic_numbers.resize(Reference::kMostOfCpu + 1);
    Row row("latency", "many", 1, "s", {1});
    std::vector<std::string> left_out;
    reference.compare(fp64, too_many, "many", row, left_out);
    too_many.atomic_numbers.resize(Reference::kMostAtoms + 1);
    reference.compare(mixed, too_many, "more", row, left_out);
    CHECK((row.figures.empty() && row.checks.empty()));
    CHECK(left_out == std::vector<std::string>{"errors of energies and forces of many: more than 2000",
                                               "errors of energies and forces of more: more than 100000"});
    reference.compare(mixed, frame, "box", row, left_out);
    CHECK((row.figures.size() == 2 && left_out.size() == 2));
}

TEST_CASE("optimisations that are switched off are named, and refused where there are none") {
    SessionOptions grid, brute;
    grid.device = brute.device = "cpu";
    grid.thread_count = brute.thread_count = 1;
    brute.optimizations.neighbor_grid = false;
    SideBySideRun run({{"builtin", "", grid}, {"builtin", "", brute}}, true);
    CHECK(run.result.implementations[1].label == run.result.implementations[0].label + ", neighbors=brute");
    TickingClock clock;
    run.measure(clock, {30}, {}, {});
    CHECK(run.result.is_passed());
    const nlohmann::json ones = side_by_side_json(run.result).at("implementations");
    CHECK(ones.at(0).at("switched_off").empty());
    CHECK(ones.at(1).at("switched_off") == nlohmann::json({"neighbors=brute"}));

    const std::shared_ptr<const Model> model = load_model("builtin");
    SessionOptions without_graphs = grid, not_fused = grid;
    without_graphs.optimizations.graphs = false;
    not_fused.optimizations.fused_messages = false;
    CHECK_THROWS_WITH_AS(Session(model, without_graphs), "graph=off: only a GPU has graphs, not device cpu", Error);
    CHECK_THROWS_WITH_AS(
        Session(model, not_fused),
        "fused=off: only for a GPU, not for device cpu; device=reference has the plain loops of the CPU", Error);
}

TEST_CASE("implementations side by side: speed-ups, accuracy, labels") {
    SessionOptions fast, plain, single;
    fast.device = single.device = "cpu";
    fast.thread_count = plain.thread_count = 2;
    single.thread_count = 1;
    plain.device = "reference";
    SideBySideRun run(
        {{"analytic", "", fast}, {"analytic", "", plain}, {"analytic", "", single}, {"analytic", "", single}}, true);
    const std::vector<Implementation>& ones = run.result.implementations;
    CHECK(ones[1].device == "reference");
    CHECK(ones[0].label == "analytic, cpu, " + ones[0].precision + ", 2 threads");
    CHECK(ones[2].label == "analytic, cpu, " + ones[2].precision + ", 1 thread");
    CHECK(ones[3].label == ones[2].label + " (2)");
    CHECK(run.result.material == "water");
    TickingClock clock;
    size_t seen = 0;
    run.measure(clock, {10, 120}, {}, [&](const SideBySideSize&) { ++seen; });
    CHECK(seen == 2);
    REQUIRE(run.result.sizes.size() == 2);
    for (const SideBySideSize& size : run.result.sizes) {
        REQUIRE(size.entries.size() == 4);
        for (const SideBySideEntry& entry : size.entries) {
            CHECK(is_near(entry.row.summary.median, 1e-3));
            CHECK(is_near(entry.speed_up, 1));
            CHECK(entry.row.checks.size() == 1);
        }
    }
    CHECK(run.result.is_passed());
    SideBySide result = run.result;
    SideBySideEntry& wrong = result.sizes[0].entries[2];
    wrong.speed_up = 2.5;
    wrong.speed_up_interval = {2.25, 2.75};
    wrong.row.checks[0].value = 7;
    CHECK(!result.is_passed());
    const nlohmann::json json = side_by_side_json(result);
    CHECK(json.at("passed") == false);
    CHECK(json.at("implementations").size() == 4);
    CHECK(json.at("sizes").at(0).at("entries").at(2).at("speed_up") == 2.5);
    CHECK(json.at("sizes").at(0).at("entries").at(2).at("implementation") == ones[2].label);
    CHECK(json.at("sizes").at(1).at("entries").at(3).at("samples").size() >= 5);
    CHECK(has(side_by_side_markdown(result), "| 2.5 | 2.25 to 2.75 | "));
    CHECK(has(side_by_side_text(result, result.sizes[0]), "FAIL"));
    CHECK(has(side_by_side_html(result), "FAIL: 1 of 8 comparisons of forces"));
    wrong.row.checks[0].value = std::nan("");
    CHECK(!result.is_passed());
}

TEST_CASE("implementations side by side: what cannot be compared is refused by name") {
    CHECK_THROWS_WITH_AS(SideBySideRun({{"analytic", "", {}}, {"nowhere.model", "", {}}}, true),
                         doctest::Contains("--compare nowhere.model: "), Error);
}
