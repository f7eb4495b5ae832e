// SPDX-License-Identifier: MIT
#include "measure/memory_growth.h"

#include <cstddef>

#include "core/error.h"

namespace mlff::bench {
namespace {

constexpr int64_t kLeastTrend = int64_t{256} << 10;

}  // namespace

MemoryGrowth memory_growth(const std::vector<int64_t>& readings) {
    if (readings.size() < 2) fail(Status::argument, "memory growth needs at least 2 readings, found ", readings.size());
    MemoryGrowth growth;
    growth.bytes = readings.back() - readings.front();
    size_t grown = 0;
    for (size_t i = 1; i < readings.size(); ++i) grown += readings[i] > readings[i - 1] ? 1 : 0;
    growth.is_trend = readings.size() > 4 && 2 * grown > readings.size() - 1 && growth.bytes >= kLeastTrend;
    return growth;
}

}  // namespace mlff::bench
