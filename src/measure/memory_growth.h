// SPDX-License-Identifier: MIT
// Whether memory leaks.
#pragma once

#include <cstdint>
#include <vector>

namespace mlff::bench {

// Evaluates evenly spaced readings of the memory in use. A leak is growth by more than 10 MB from first to last, or a
// trend: growth in more than half of the intervals, by 256 KiB or more in total. A buffer that grows once or twice is
// not a leak.
inline constexpr int64_t kLeakBytes = 10'000'000;
struct MemoryGrowth {
    int64_t bytes = 0;
    bool is_trend = false;
    bool is_leak() const { return is_trend || bytes > kLeakBytes; }
};
MemoryGrowth memory_growth(const std::vector<int64_t>& readings);

}  // namespace mlff::bench
