// SPDX-License-Identifier: MIT
// Does every backend of this machine give the numbers of the reference? Takes a few seconds.
#pragma once

#include <string>
#include <vector>

namespace mlff::app {

struct BackendTest {
    std::string model;            // "student" or "MACE"
    std::string device, kernels;  // kernels: the instruction set, on the CPU
    std::string precision;
    double force_difference = 0;  // eV/angstrom: the largest from the reference
    double limit = 0;             // that it may be
    double milliseconds = 0;      // for one evaluation; 0: not measured
    std::string why_failed;       // "" if it works

    bool is_passed() const { return why_failed.empty(); }
};

// The embedded student and the embedded MACE model on molecules that are part of mlff: on the CPU with the kernels of
// each instruction set (or those that MLFF_CPU names) and on each GPU, beside the plain loops of the reference.
std::vector<BackendTest> test_backends();

}  // namespace mlff::app
