// SPDX-License-Identifier: MIT
// Several implementations in one run: models, devices, precisions, native or Python, sampled in turns.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/reference.h"
#include "tools/bench/suites.h"

namespace mlff::bench {

// What is measured, and what a session says that it became.
struct Implementation {
    std::string model, sha256;  // the latter "" if there is no file
    SessionOptions options;
    std::string label = "";  // short, and another for each: "X.model, cpu, mixed, 2 threads"
    std::string device = "", precision = "", head = "";
    int threads = 0;  // 0: Python chooses them
};

struct SideBySideEntry {
    Row row;              // of suite "compare"; its figures and checks have the accuracy, where there is a reference
    double speed_up = 1;  // of the medians, over the first implementation
    Interval speed_up_interval = {1, 1};
};

struct SideBySideSize {
    std::string name;
    std::vector<SideBySideEntry> entries;  // one for each implementation
};

struct SideBySide : RunFacts {
    std::vector<Implementation> implementations;
    std::vector<SideBySideSize> sizes;
    std::vector<std::string> left_out;

    bool is_passed() const;  // all forces are as near to the reference as their precision promises
};

class SideBySideRun {
public:
    // Opens a session of each, fills in what they became, and chooses atoms that all of them know. Throws Error that
    // names the implementation.
    SideBySideRun(std::vector<Implementation> implementations, bool is_quick);
    // `sizes` empty: those of the suite "latency". `announce` is told what comes next, `on_size` what was found; both
    // may be empty.
    void measure(Clock& clock, const std::vector<int64_t>& sizes,
                 const std::function<void(const std::string&)>& announce,
                 const std::function<void(const SideBySideSize&)>& on_size);

    SideBySide result;  // whose facts of the machine the caller fills in

private:
    SideBySideSize measure_size(Clock& clock, const Frame& frame);

    struct Contestant {
        std::unique_ptr<Session> session;
        std::shared_ptr<Session> reference;  // nullptr: none; shared by those of the same model
    };
    std::vector<Contestant> contestants_;
    Material material_;
};

nlohmann::json side_by_side_json(const SideBySide& result);
std::string side_by_side_markdown(const SideBySide& result);
std::string side_by_side_html(const SideBySide& result);

// Lines of the terminal's table: the head of it, and one for each implementation.
std::string side_by_side_header(const SideBySide& result);
std::string side_by_side_text(const SideBySide& result, const SideBySideSize& size);

}  // namespace mlff::bench
