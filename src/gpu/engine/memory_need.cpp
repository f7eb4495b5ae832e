// SPDX-License-Identifier: MIT
#include "gpu/engine/memory_need.h"

#include <algorithm>
#include <cmath>

#include "core/bytes_text.h"
#include "core/error.h"

namespace mlff::gpu {
namespace {

// Like 500,000.
std::string count_text(int64_t count) {
    std::string digits = std::to_string(count);
    for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<size_t>(at), ",");
    return digits;
}

// Like 42 M.
std::string rounded_text(int64_t count) {
    return count < 10'000'000 ? count_text(count) : concat(std::llround(static_cast<double>(count) / 1e6), " M");
}

// Rounds down to two digits.
int64_t about(double count) {
    if (count < 100) return static_cast<int64_t>(count);
    const double unit = std::pow(10, std::floor(std::log10(count)) - 1);
    return static_cast<int64_t>(std::floor(count / unit) * unit);
}

}  // namespace

int64_t usable_bytes(int64_t free_bytes) { return free_bytes - std::min<int64_t>(free_bytes / 32, 256 << 20); }

void check_memory(const MemoryNeed& need, const MemoryThere& there) {
    if (need.bytes <= there.bytes) return;
    // At the same density, the numbers of atoms and of edges both shrink in proportion to the memory.
    const double fit = static_cast<double>(need.atom_count) * static_cast<double>(std::max<int64_t>(there.bytes, 0)) /
                       static_cast<double>(need.bytes);
    const bool knows_edges = need.edge_count > 0;
    fail(Status::memory, "needs ", knows_edges ? "" : "more than ", bytes_text(need.bytes), " for ",
         count_text(need.atom_count), " atoms",
         knows_edges ? concat(" with ", rounded_text(need.edge_count), " edges") : "",
         there.is_limit ? "; the limit of the session is " : "; the GPU has ",
         bytes_text(std::max<int64_t>(there.bytes, 0)), there.is_limit ? "" : " free", "; ",
         knows_edges ? "about " : "less than ", count_text(about(fit)), " atoms", knows_edges ? " of this density" : "",
         " would fit");
}

}  // namespace mlff::gpu
