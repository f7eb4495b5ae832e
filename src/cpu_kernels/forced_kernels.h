// SPDX-License-Identifier: MIT
// For tests and benchmarks that run the kernels of each instruction set in turn.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace mlff::kernels {

// Sets MLFF_CPU while it lives, and restores the old value afterwards.
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

}  // namespace mlff::kernels
