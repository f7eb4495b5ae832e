// SPDX-License-Identifier: MIT
// Compares several implementations in one run: models, devices, precisions, native or Python, sampled in turns.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/reference.h"
#include "tools/bench/suites.h"

namespace mlff::bench {

// What is measured, and the session's actual settings.
struct Implementation {
    std::string model, sha256;  // sha256 "" if there is no file
    SessionOptions options;
    std::string label = "";  // short and unique: "X.model, cpu, mixed, 2 threads"
    std::string device = "", precision = "", head = "";
    int threads = 0;  // 0: chosen by Python
};

struct SideBySideEntry {
    Row row;              // suite "compare"; figures and checks contain the accuracy if there is a reference
    double speed_up = 1;  // ratio of medians, relative to the first implementation
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

    bool is_passed() const;  // all forces agree with the reference within the limits of their precision
};

class SideBySideRun {
public:
    // Opens a session for each, fills in their actual settings, and chooses atoms that all of them know. Throws Error
    // that names the implementation.
    SideBySideRun(std::vector<Implementation> implementations, bool is_quick);
    // `sizes` empty: those of the suite "latency". `announce` is called with what comes next, `on_size` with the
    // results; both may be empty.
    void measure(Clock& clock, const std::vector<int64_t>& sizes,
                 const std::function<void(const std::string&)>& announce,
                 const std::function<void(const SideBySideSize&)>& on_size);

    SideBySide result;  // the caller fills in the facts about the machine

private:
    SideBySideSize measure_size(Clock& clock, const Frame& frame);

    struct Contestant {
        std::unique_ptr<Session> session;
        std::shared_ptr<Reference> reference;  // shared by implementations of the same model
    };
    std::vector<Contestant> contestants_;
    Material material_;
};

nlohmann::json side_by_side_json(const SideBySide& result);
std::string side_by_side_markdown(const SideBySide& result);
std::string side_by_side_html(const SideBySide& result);

// Lines of the terminal's table: the header, and one line per implementation.
std::string side_by_side_header(const SideBySide& result);
std::string side_by_side_text(const SideBySide& result, const SideBySideSize& size);

}  // namespace mlff::bench
