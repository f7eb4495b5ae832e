// SPDX-License-Identifier: MIT
// Profile of an evaluation: named stages, timed on each worker of a thread team. Without profiling, a stage costs one
// pointer test.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mlff {

enum class Direction { neither, forward, reverse };

struct Stage {
    const char* name = "";  // a string literal
    Direction direction = Direction::neither;
    int layer = -1;  // -1: belongs to no layer

    bool operator==(const Stage&) const;
};
std::string stage_text(const Stage& stage);  // "layer 1: messages"; omits the direction

// The work of a stage, computed from array sizes: useful additions and multiplications, and numbers read from and
// written to memory or caches, each counted once per entry into the stage. NaN: not known.
struct StageWork {
    double flops = 0, bytes = 0;

    StageWork operator+(const StageWork& other) const { return {flops + other.flops, bytes + other.bytes}; }
    StageWork operator*(double factor) const { return {flops * factor, bytes * factor}; }
};
inline constexpr double kUnknownWork = __builtin_nan("");

// The stages of one worker. Only that worker writes here.
class StageLog {
public:
    // The sum over all entries into a stage. Excludes the time spent in nested stages.
    struct Sum {
        Stage stage;
        int64_t first_begin = 0;  // nanoseconds, steady clock
        int64_t calls = 0, nanoseconds = 0;
        bool has_inner = false;       // other stages were nested inside
        double flops = 0, bytes = 0;  // NaN: not known
    };
    struct Interval {
        Stage stage;
        int64_t begin = 0, end = 0;  // nanoseconds, steady clock
    };

    void begin(const Stage& stage, const StageWork& work);
    void end();
    void add(const Stage& stage, int64_t begin, int64_t end, const StageWork& work);  // a stage timed elsewhere
    const Stage* current() const {
        return open_count_ > 0 ? &sums_[open_[open_count_ - 1].sum].stage : nullptr;
    }  // nullptr: no stage is open

    const std::vector<Sum>& sums() const { return sums_; }  // in the order in which they were first entered
    const std::vector<Interval>& intervals() const { return intervals_; }  // ordered by end
    void clear();
    void keep_intervals(bool keep) { keeps_intervals_ = keep; }

private:
    struct Open {
        size_t sum = 0;
        int64_t begin = 0, inner = 0;
        StageWork work{};
    };
    static constexpr size_t kMostOpen = 16;
    std::array<Open, kMostOpen> open_{};
    size_t open_count_ = 0;
    bool keeps_intervals_ = false;
    std::vector<Sum> sums_;
    std::vector<Interval> intervals_;
};

class StageProfile {
public:
    void reserve_logs(int worker_count);
    int worker_count() const { return static_cast<int>(logs_.size()); }
    StageLog& log(int worker) { return *logs_[static_cast<size_t>(worker)]; }
    const StageLog& log(int worker) const { return *logs_[static_cast<size_t>(worker)]; }
    // GPU stages, timed by the GPU's clock. Empty on the CPU.
    StageLog& device() { return device_; }
    const StageLog& device() const { return device_; }
    void clear();
    // Also keeps every interval, for a trace. This takes memory.
    void keep_intervals(bool keep);

    // Sums over all workers, in the order of first entry. Omits stages that only contain others: their own time is
    // threads waiting for each other.
    std::vector<StageLog::Sum> stages() const;

private:
    std::vector<std::unique_ptr<StageLog>> logs_;
    StageLog device_;
    bool keeps_intervals_ = false;
};

// Consecutive stages: each ends where the next begins, the last at the end of the scope.
class Stages {
public:
    explicit Stages(StageLog* log, Direction direction = Direction::neither, int layer = -1)
        : log_(log), direction_(direction), layer_(layer) {}
    Stages(const Stages&) = delete;
    Stages& operator=(const Stages&) = delete;
    ~Stages() { finish(); }

    void begin(const char* name) {
        if (log_) start(name, {kUnknownWork, kUnknownWork});
    }
    // `work` returns the StageWork. It is called only while profiling.
    template <class Work>
    void begin(const char* name, const Work& work) {
        if (log_) start(name, work());
    }
    void finish() {
        if (is_open_) log_->end();
        is_open_ = false;
    }

private:
    void start(const char* name, const StageWork& work) {
        finish();
        log_->begin({name, direction_, layer_}, work);
        is_open_ = true;
    }

    StageLog* log_;
    Direction direction_;
    int layer_;
    bool is_open_ = false;
};

}  // namespace mlff
