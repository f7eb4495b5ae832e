// SPDX-License-Identifier: MIT
#include "core/stage_profile.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/error.h"

namespace mlff {
namespace {

int64_t steady_nanoseconds() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

StageLog::Sum& sum_of(std::vector<StageLog::Sum>& sums, const Stage& stage, int64_t begin) {
    const auto found =
        std::find_if(sums.begin(), sums.end(), [&](const StageLog::Sum& sum) { return sum.stage == stage; });
    if (found != sums.end()) return *found;
    StageLog::Sum& added = sums.emplace_back();
    added.stage = stage;
    added.first_begin = begin;
    return added;
}

}  // namespace

bool Stage::operator==(const Stage& other) const {
    return direction == other.direction && layer == other.layer &&
           (name == other.name || std::strcmp(name, other.name) == 0);
}

std::string stage_text(const Stage& stage) {
    return stage.layer < 0 ? std::string(stage.name) : concat("layer ", stage.layer + 1, ": ", stage.name);
}

void StageLog::begin(const Stage& stage, const StageWork& work) {
    if (open_count_ == kMostOpen) fail(Status::internal, "stages are nested more than ", kMostOpen, " deep");
    if (open_count_ > 0) sums_[open_[open_count_ - 1].sum].has_inner = true;
    const int64_t now = steady_nanoseconds();
    const auto place = static_cast<size_t>(&sum_of(sums_, stage, now) - sums_.data());
    open_[open_count_++] = {place, now, 0, work};
}

void StageLog::end() {
    const int64_t now = steady_nanoseconds();
    const Open& closed = open_[--open_count_];
    const int64_t elapsed = now - closed.begin;
    Sum& sum = sums_[closed.sum];
    ++sum.calls;
    sum.nanoseconds += elapsed - closed.inner;
    sum.flops += closed.work.flops;
    sum.bytes += closed.work.bytes;
    if (open_count_ > 0) open_[open_count_ - 1].inner += elapsed;
    if (keeps_intervals_) intervals_.push_back({sum.stage, closed.begin, now});
}

void StageLog::add(const Stage& stage, int64_t begin, int64_t end, const StageWork& work) {
    Sum& sum = sum_of(sums_, stage, begin);
    ++sum.calls;
    sum.nanoseconds += end - begin;
    sum.flops += work.flops;
    sum.bytes += work.bytes;
    if (keeps_intervals_) intervals_.push_back({stage, begin, end});
}

void StageLog::clear() {
    sums_.clear();
    intervals_.clear();
}

void StageProfile::reserve_logs(int worker_count) {
    while (this->worker_count() < worker_count) {
        logs_.push_back(std::make_unique<StageLog>());
        logs_.back()->keep_intervals(keeps_intervals_);
    }
}

void StageProfile::clear() {
    for (auto& log : logs_) log->clear();
    device_.clear();
}

void StageProfile::keep_intervals(bool keep) {
    keeps_intervals_ = keep;
    for (auto& log : logs_) log->keep_intervals(keep);
    device_.keep_intervals(keep);
}

std::vector<StageLog::Sum> StageProfile::stages() const {
    std::vector<StageLog::Sum> all;
    for (const auto& log : logs_)
        for (const StageLog::Sum& sum : log->sums()) {
            StageLog::Sum& total = sum_of(all, sum.stage, sum.first_begin);
            total.first_begin = std::min(total.first_begin, sum.first_begin);
            total.has_inner |= sum.has_inner;  // a late worker may have had no work in the inner stages
            total.calls += sum.calls;
            total.nanoseconds += sum.nanoseconds;
            total.flops += sum.flops;
            total.bytes += sum.bytes;
        }
    std::erase_if(all, [](const StageLog::Sum& sum) { return sum.has_inner; });
    std::stable_sort(all.begin(), all.end(),
                     [](const StageLog::Sum& a, const StageLog::Sum& b) { return a.first_begin < b.first_begin; });
    return all;
}

}  // namespace mlff
