// SPDX-License-Identifier: MIT
#include "bench_compare.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iostream>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/model_names.h"
#include "gpu/runtime/gpu.h"
#include "python_models/model_name.h"
#include "run_facts.h"
#include "tools/bench/side_by_side.h"

namespace mlff::app {
namespace {

int thread_count_of(const std::string& text, const std::string& spec) {
    int count = -1;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), count);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || count < 0)
        fail(Status::argument, "--compare '", spec, "': threads=", text, ": expected a number; 0 = all cores");
    return count;
}

// A switch of Optimizations: `off` is the value that switches it off.
bool is_switched_on(const std::string& value, const char* on, const char* off, const std::string& key,
                    const std::string& spec) {
    if (value != on && value != off)
        fail(Status::argument, "--compare '", spec, "': ", key, "=", value, ": expected ", on, " or ", off);
    return value == on;
}

bool is_setting_name(const std::string& key) {
    return key == "device" || key == "precision" || key == "head" || key == "threads" || key == "graph" ||
           key == "neighbors" || key == "fused";
}

// Settings follow the model, or stand alone for that of --model: what comes after a comma and has a '=' is one.
ModelOptions parse_compare_spec(const std::string& spec, const ModelOptions& defaults) {
    ModelOptions chosen = defaults;
    std::string rest = spec;
    bool has_threads = false;
    while (!rest.empty()) {
        const size_t comma = rest.rfind(',');
        const std::string item = comma == std::string::npos ? rest : rest.substr(comma + 1);
        const size_t equals = item.find('=');
        const std::string key = item.substr(0, equals),
                          value = equals == std::string::npos ? "" : item.substr(equals + 1);
        const bool is_name = key.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
        const auto is_of_model = [&] {
            return comma == std::string::npos || split_members(rest).back().size() > item.size();
        };
        if (equals == std::string::npos || !is_name || (!is_setting_name(key) && is_of_model())) break;  // the model
        if (value.empty()) fail(Status::argument, "--compare '", spec, "': ", key, "= has no value");
        if (key == "device")
            chosen.session.device = value;
        else if (key == "precision")
            chosen.precision = value;
        else if (key == "head")
            chosen.session.head = value;
        else if (key == "threads")
            chosen.session.thread_count = thread_count_of(value, spec), has_threads = true;
        else if (key == "graph")
            chosen.session.optimizations.graphs = is_switched_on(value, "on", "off", key, spec);
        else if (key == "neighbors")
            chosen.session.optimizations.neighbor_grid = is_switched_on(value, "grid", "brute", key, spec);
        else if (key == "fused")
            chosen.session.optimizations.fused_messages = is_switched_on(value, "on", "off", key, spec);
        else
            fail(Status::argument, "--compare '", spec, "': ", key,
                 "=: expected device, precision, threads, head, graph, neighbors or fused");
        rest = comma == std::string::npos ? "" : rest.substr(0, comma);
    }
    if (!rest.empty()) chosen.model = chosen.dispersion.empty() ? rest : with_dispersion(rest, chosen.dispersion);
    if (has_threads && python::is_python_name(chosen.model))
        fail(Status::argument, "--compare '", spec,
             "': threads= is for native models; set the threads of Python with OMP_NUM_THREADS, for instance");
    return chosen;
}

}  // namespace

int run_bench_compare(const BenchCompareOptions& options) {
    if (options.specs.size() < 2)
        fail(Status::argument, "--compare is needed at least twice; the others are compared with the first");
    std::vector<bench::Implementation> implementations;
    for (const std::string& spec : options.specs) {
        const ModelOptions chosen = parse_compare_spec(spec, options.defaults);
        implementations.push_back({chosen.model, sha256_of_model(chosen.model), chosen.session_options()});
    }
    bench::SideBySideRun run(std::move(implementations), options.is_quick);
    const auto on_gpu = std::find_if(run.result.implementations.begin(), run.result.implementations.end(),
                                     [](const bench::Implementation& one) { return names_gpu(one.device); });
    add_run_facts(run.result, on_gpu == run.result.implementations.end() ? "cpu" : on_gpu->device);

    const bool prints_text = options.json != "-", is_terminal = isatty(STDERR_FILENO) == 1;
    if (prints_text)
        std::cout << run.result.material << ", energies and forces compared with the fp64 reference\n"
                  << side_by_side_header(run.result) << std::flush;
    bench::SteadyClock clock;
    run.measure(
        clock, options.sizes,
        [&](const std::string& what) {
            if (is_terminal) std::cerr << "\r\033[K" << what << std::flush;
        },
        [&](const bench::SideBySideSize& size) {
            if (is_terminal) std::cerr << "\r\033[K" << std::flush;
            if (prints_text) std::cout << side_by_side_text(run.result, size) << std::flush;
        });
    if (prints_text) {
        for (const std::string& line : run.result.left_out) std::cout << "not measured: " << line << "\n";
        if (!run.result.is_passed()) std::cout << "FAIL: not all checks passed\n";
    }
    const std::string text =
        side_by_side_json(run.result).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (!options.json.empty()) write_text(options.json, text);
    if (!options.report.empty()) {
        write_text(options.report + "/report.json", text);
        write_text(options.report + "/report.md", side_by_side_markdown(run.result));
        write_text(options.report + "/report.html", side_by_side_html(run.result));
    }
    return run.result.is_passed() ? kGood : kCheckFailed;
}

}  // namespace mlff::app
