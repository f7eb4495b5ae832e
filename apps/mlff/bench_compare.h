// SPDX-License-Identifier: MIT
// mlff bench --compare: several implementations in one run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command.h"

namespace mlff::app {

struct BenchCompareOptions {
    ModelOptions defaults;           // of what an implementation does not say
    std::vector<std::string> specs;  // MODEL[,device=D][,precision=P][,threads=N][,head=H]
    std::vector<int64_t> sizes;
    bool is_quick = false;
    std::string json, report;
};
int run_bench_compare(const BenchCompareOptions& options);  // the exit code

}  // namespace mlff::app
