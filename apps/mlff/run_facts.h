// SPDX-License-Identifier: MIT
// When, where and with what something was measured.
#pragma once

#include <string>

#include "tools/bench/results.h"

namespace mlff::app {

// Version, commit, time and machine; the GPU where `device` is one.
void add_run_facts(bench::RunFacts& facts, const std::string& device);

}  // namespace mlff::app
