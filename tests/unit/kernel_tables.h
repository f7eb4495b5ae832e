// SPDX-License-Identifier: MIT
// The same test with the kernels of each instruction set that this processor has.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "cpu_kernels/available_kernels.h"
#include "cpu_kernels/forced_kernels.h"

namespace mlff::test {

// visit(name), best first. MLFF_TEST_KERNELS=best: with that only, where all take too long.
template <class Visit>
void for_each_kernel_table(const Visit& visit) {
    for (const kernels::KernelTable<float>& table : kernels::available_kernels<float>()) {
        const std::string name(table.name);
        MESSAGE("with the kernels for " << name);
        CAPTURE(name);
        const kernels::ForcedKernels forced(name);
        visit(name);
        const char* wanted = std::getenv("MLFF_TEST_KERNELS");
        if (wanted && std::string_view(wanted) == "best") return;
    }
}

}  // namespace mlff::test
