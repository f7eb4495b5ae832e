// SPDX-License-Identifier: MIT
// Benchmark results, as text, Markdown and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/bench/statistics.h"
#include "tools/validate/check.h"

namespace mlff::bench {

using validate::Check;

// The samples of one row so far.
struct Measured {
    SampleBlocks blocks;
    std::vector<double> probes;  // s, probe_seconds() before and after each block
};

// One quantity, measured several times; less is better.
struct Row {
    std::string suite, name;  // together they identify the row in a baseline
    int64_t atoms = 0;        // 0: does not apply
    std::string unit;         // of the samples: "s" or "B"
    std::vector<double> samples;
    std::vector<size_t> blocks;  // number of samples per block, in the order of the samples
    std::vector<double> probes;  // s, probe_seconds() meanwhile; empty: not a time
    double contention = 1;       // tools/bench/disturbance.h
    Summary summary;
    std::vector<std::pair<std::string, double>> figures;  // derived figures; the name contains the unit
    std::vector<Check> checks;                            // errors and leaks, with their limits

    Row(std::string suite_, std::string name_, int64_t atoms_, std::string unit_, std::vector<double> samples_)
        : suite(std::move(suite_)),
          name(std::move(name_)),
          atoms(atoms_),
          unit(std::move(unit_)),
          samples(std::move(samples_)),
          blocks{samples.size()},
          summary(summarize(samples)) {}
    Row(std::string suite_, std::string name_, int64_t atoms_, const Measured& times)
        : Row(std::move(suite_), std::move(name_), atoms_, "s", joined(times.blocks)) {
        blocks.clear();
        for (const auto& block : times.blocks) blocks.push_back(block.size());
        probes = times.probes;
    }
    std::string title() const { return suite + ", " + name; }
};

struct Machine {
    std::string processor, architecture, instructions;
    int cores = 0;
    std::string gpu, gpu_driver, gpu_runtime;  // "" if the device is not a GPU
    int64_t gpu_memory_bytes = 0;
    int gpu_clock_MHz = 0;
};

// Facts about any run.
struct RunFacts {
    std::string mlff_version, commit, time;  // commit "": unknown at build time
    Machine machine;
    std::string material;
    bool is_quick = false;
};

struct Report : RunFacts {
    std::string model, sha256, device, precision, head;
    int threads = 0;  // 0: chosen by Python
    std::vector<Row> rows;
    std::vector<std::string> left_out;  // what does not apply here, and why
    std::vector<std::string> failures;  // what could not be measured because it failed

    bool is_passed() const;  // all checks passed, and nothing failed
};

nlohmann::json facts_json(const RunFacts& facts);
nlohmann::json row_json(const Row& row);
nlohmann::json report_json(const Report& report);
std::string report_markdown(const Report& report);
std::string row_text(const Row& row);    // lines of the terminal's table
std::string notes_text(const Row& row);  // the last column: figures and the number of outliers
std::string machine_text(const Machine& machine);
std::string threads_text(int count);  // "1 thread", "2 threads"; 0: chosen by Python
// "mlff VERSION, commit ...; time; machine; material"
std::string facts_text(const RunFacts& facts);

// "1.234e-05", and "12.3 ms", "4.5 MB".
std::string digits(double value);
std::string quantity_text(double value, const std::string& unit);

}  // namespace mlff::bench
