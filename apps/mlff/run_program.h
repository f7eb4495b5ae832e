// SPDX-License-Identifier: MIT
// Other programs: asked for something with a time limit, or doing a part of the work.
#pragma once

#include <string>
#include <vector>

namespace mlff::app {

struct ProgramResult {
    int exit_code = -1;  // -1: it did not end by itself
    int signal = 0;      // that ended it
    bool is_timed_out = false;
    std::string output;  // standard output, at most 1 MiB of it
    // "" if it ended with 0, else how it ended
    std::string why_failed() const;
};

// arguments[0] is a path, or a name that PATH has. Standard input and error are /dev/null. When the time is over, it
// and what it started are killed.
ProgramResult run_program(const std::vector<std::string>& arguments, double seconds);

// Without a time limit, as part of this program: it shares standard error, and its standard output is not seen.
ProgramResult run_silently(const std::vector<std::string>& arguments);

}  // namespace mlff::app
