// SPDX-License-Identifier: MIT
// Measurements of any function: times, statistics, memory.
#include <algorithm>
#include <cmath>
#include <functional>

#include "api/guard.h"
#include "api/handles.h"
#include "measure/memory_growth.h"
#include "measure/sampling.h"
#include "measure/statistics.h"

using mlff::fail;
using mlff::Status;
using namespace mlff::api;
using namespace mlff::bench;

namespace {

// 0: the default; below: none.
template <class Number>
Number number_or_default(Number given, Number otherwise) {
    return given == 0 ? otherwise : std::max<Number>(0, given);
}

void require_seconds(double seconds, const char* name) {
    if (!std::isfinite(seconds)) fail(Status::argument, "mlff_measure_options.", name, " is ", seconds);
}

SamplingRule rule_of(const mlff_measure_options& options, int64_t capacity) {
    require_size(options.struct_size, sizeof(mlff_measure_options), "mlff_measure_options");
    require_seconds(options.seconds, "seconds");
    require_seconds(options.warm_up_seconds, "warm_up_seconds");
    SamplingRule rule;
    rule.warm_up_calls = number_or_default(options.warm_up_calls, rule.warm_up_calls);
    rule.warm_up_seconds = number_or_default(options.warm_up_seconds, rule.warm_up_seconds);
    rule.seconds = number_or_default(options.seconds, rule.seconds);
    rule.least_samples = options.least_samples == 0 ? rule.least_samples : options.least_samples;
    rule.most_samples =
        options.most_samples == 0 ? std::max(rule.most_samples, rule.least_samples) : options.most_samples;
    if (rule.least_samples < 1 || rule.most_samples < rule.least_samples)
        fail(Status::argument, "a measurement of at least ", rule.least_samples, " and at most ", rule.most_samples,
             " samples was asked for, expected 1 or more of them");
    if (capacity < rule.least_samples)
        fail(Status::argument, "there is room for ", capacity, " samples of a function, but at least ",
             rule.least_samples, " are to be taken");
    rule.most_samples = static_cast<int>(std::min<int64_t>(capacity, rule.most_samples));
    return rule;
}

std::vector<std::function<void()>> checked_calls(int64_t count, const mlff_measured_function* functions,
                                                 void* const* user_data, const char* device) {
    const mlff::Device waited_for = device ? named_device(device) : mlff::Device{};
    const int gpu = waited_for.is_gpu() ? mlff::gpu_ordinal(waited_for) : -1;
    std::vector<std::function<void()>> calls;
    for (int64_t i = 0; i < count; ++i) {
        if (!functions[i]) fail(Status::argument, "functions[", i, "] is NULL");
        calls.emplace_back([i, gpu, function = functions[i], data = user_data ? user_data[i] : nullptr] {
            mlff::api::set_last_error("");
            if (const int32_t code = function(data); code != 0) {
                const std::string why = mlff_last_error();  // if the function called this library
                fail(Status::argument, "function ", i, " returned ", code, ", and a call that fails is not measured",
                     why.empty() ? "" : ": " + why);
            }
            if (gpu >= 0) mlff::gpu_synchronize(gpu);
        });
    }
    return calls;
}

void require_samples_given(const double* samples, int64_t count, const char* name) {
    require(samples, name);
    if (count < 1) fail(Status::argument, "statistics need at least one sample, found ", count);
}

}  // namespace

mlff_status mlff_measure(int64_t function_count, const mlff_measured_function* functions, void* const* user_data,
                         const mlff_measure_options* options, double* samples, int64_t capacity,
                         int64_t* sample_count) {
    return guarded([&] {
        require(functions, "functions");
        require(samples, "samples");
        require(sample_count, "sample_count");
        *sample_count = 0;
        if (function_count < 1) fail(Status::argument, "function_count is ", function_count, ", expected 1 or more");
        mlff_measure_options defaults{};
        defaults.struct_size = sizeof defaults;
        const mlff_measure_options& given = options ? *options : defaults;
        const SamplingRule rule = rule_of(given, capacity);
        SteadyClock clock;
        const auto times =
            sample_times_in_turns(clock, rule, checked_calls(function_count, functions, user_data, given.device));
        for (size_t i = 0; i < times.size(); ++i)
            std::copy(times[i].begin(), times[i].end(), samples + static_cast<int64_t>(i) * capacity);
        *sample_count = static_cast<int64_t>(times.front().size());
    });
}

mlff_status mlff_get_statistics(const double* samples, int64_t sample_count, mlff_statistics* statistics) {
    return guarded([&] {
        require(statistics, "statistics");
        require_size(statistics->struct_size, sizeof(mlff_statistics), "mlff_statistics");
        require_samples_given(samples, sample_count, "samples");
        const Summary summary = summarize({samples, static_cast<size_t>(sample_count)});
        statistics->sample_count = sample_count;
        statistics->mean = summary.mean;
        statistics->median = summary.median;
        statistics->deviation = summary.deviation;
        statistics->minimum = summary.minimum;
        statistics->maximum = summary.maximum;
        statistics->p95 = summary.p95;
        statistics->p99 = summary.p99;
        statistics->median_low = summary.median_interval.low;
        statistics->median_high = summary.median_interval.high;
        statistics->per_second = summary.median != 0 ? 1 / summary.median : 0;
        statistics->outlier_count = static_cast<int64_t>(summary.outliers.size());
    });
}

mlff_status mlff_get_median_ratio(const double* numerators, const double* denominators, int64_t sample_count,
                                  double* ratio, double* low, double* high) {
    return guarded([&] {
        require_samples_given(numerators, sample_count, "numerators");
        require_samples_given(denominators, sample_count, "denominators");
        const std::span<const double> above(numerators, static_cast<size_t>(sample_count)),
            below(denominators, static_cast<size_t>(sample_count));
        const Interval interval = median_ratio_interval(above, below);
        if (ratio) *ratio = percentile(above, 50) / percentile(below, 50);
        if (low) *low = interval.low;
        if (high) *high = interval.high;
    });
}

mlff_status mlff_memory_watch_create(const char* device, mlff_memory_watch** watch) {
    return guarded([&] {
        require(watch, "watch");
        *watch = nullptr;
        auto made = std::make_unique<mlff_memory_watch>();
        made->meter = make_memory_meter(named_device(device));
        made->readings.reserve(1024);  // so that readings take no memory
        made->meter->begin_peak();
        made->readings.push_back(made->meter->used_bytes());
        *watch = made.release();
    });
}

void mlff_memory_watch_free(mlff_memory_watch* watch) { delete watch; }

mlff_status mlff_memory_watch_read(mlff_memory_watch* watch) {
    return guarded([&] {
        require(watch, "watch");
        watch->readings.push_back(watch->meter->used_bytes());
    });
}

mlff_status mlff_memory_watch_get_report(mlff_memory_watch* watch, mlff_memory_report* report) {
    return guarded([&] {
        require(watch, "watch");
        require(report, "report");
        require_size(report->struct_size, sizeof(mlff_memory_report), "mlff_memory_report");
        const std::vector<int64_t>& readings = watch->readings;
        const MemoryGrowth growth = memory_growth(readings);
        const int64_t largest = *std::max_element(readings.begin(), readings.end());
        report->reading_count = static_cast<int64_t>(readings.size());
        report->first_bytes = readings.front();
        report->last_bytes = readings.back();
        report->peak_bytes = std::max(largest, watch->meter->peak_bytes());
        report->growth_bytes = growth.bytes;
        report->is_trend = growth.is_trend ? 1 : 0;
        report->is_leak = growth.is_leak() ? 1 : 0;
    });
}
