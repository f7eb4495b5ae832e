// SPDX-License-Identifier: MIT
// mlff bench without a clock: statistics with known answers, a clock that is told what to say, and results compared with results.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "bench/statistics.h"
#include "core/error.h"
#include "dynamics/counter_random.h"

using namespace mlff;
using namespace mlff::bench;

namespace {

bool is_near(double found, double expected) { return std::abs(found - expected) <= 1e-12 * std::max(1.0, std::abs(expected)); }

// Like times of a quiet machine: `centre` and 1 % of noise.
std::vector<double> noisy_times(double centre, size_t count, uint64_t seed) {
    std::vector<double> times;
    for (size_t i = 0; i < count; ++i) times.push_back(centre * (1 + 0.01 * random_normals(seed, 0, i)[0]));
    return times;
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
    // The same method with numpy and 1,500 sets: 93.1 % for 31 samples. 200 sets are within 3.5 standard deviations of that.
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
