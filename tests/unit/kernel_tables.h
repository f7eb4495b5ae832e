// SPDX-License-Identifier: MIT
// The same test with the kernels of each instruction set that this processor has.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cpu_kernels/available_kernels.h"
#include "cpu_kernels/forced_kernels.h"

namespace mlff::test {

// Names of tables, best first. MLFF_TEST_KERNELS=best: that only, where all take too long.
inline std::vector<std::string> tested_kernel_tables() {
    const char* wanted = std::getenv("MLFF_TEST_KERNELS");
    const bool only_best = wanted && std::string_view(wanted) == "best";
    std::vector<std::string> names;
    for (const kernels::KernelTable<float>& table : kernels::available_kernels<float>())
        if (names.empty() || !only_best) names.emplace_back(table.name);
    return names;
}

// visit(name) with each of them.
template <class Visit>
void for_each_kernel_table(const Visit& visit) {
    for (const std::string& name : tested_kernel_tables()) {
        MESSAGE("with the kernels for " << name);
        CAPTURE(name);
        const kernels::ForcedKernels forced(name);
        visit(name);
    }
}

}  // namespace mlff::test
