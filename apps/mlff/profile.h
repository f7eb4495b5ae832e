// SPDX-License-Identifier: MIT
// mlff bench --profile: where does the time of an evaluation go?
#pragma once

#include <string>

#include "tools/bench/suites.h"

namespace mlff::app {

struct ProfileOptions {
    bool is_wanted = false;
    std::string trace;  // file; "" = none
    std::string json;   // file, "-" = standard output, "" = none
};

// `report` says what machine, model and session this is.
int run_profile(bench::Bench& bench, const bench::Report& report, const ProfileOptions& options);

}  // namespace mlff::app
