// SPDX-License-Identifier: MIT
// The same test with the kernels of each instruction set that this processor has.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "cpu_kernels/available_kernels.h"

namespace mlff::test {

// MLFF_CPU while this lives, and what it was after that.
class ForcedKernels {
public:
    explicit ForcedKernels(const std::string& name) {
        if (const char* value = std::getenv("MLFF_CPU")) before_ = value;
        setenv("MLFF_CPU", name.c_str(), 1);
    }
    ForcedKernels(const ForcedKernels&) = delete;
    ForcedKernels& operator=(const ForcedKernels&) = delete;
    ~ForcedKernels() {
        if (before_)
            setenv("MLFF_CPU", before_->c_str(), 1);
        else
            unsetenv("MLFF_CPU");
    }

private:
    std::optional<std::string> before_;
};

// visit(name), best first. MLFF_TEST_KERNELS=best: with that only, where all take too long.
template <class Visit>
void for_each_kernel_table(const Visit& visit) {
    for (const kernels::KernelTable<float>& table : kernels::available_kernels<float>()) {
        const std::string name(table.name);
        MESSAGE("with the kernels for " << name);
        CAPTURE(name);
        const ForcedKernels forced(name);
        visit(name);
        const char* wanted = std::getenv("MLFF_TEST_KERNELS");
        if (wanted && std::string_view(wanted) == "best") return;
    }
}

}  // namespace mlff::test
