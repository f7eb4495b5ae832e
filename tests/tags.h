// SPDX-License-Identifier: MIT
// Tags of test cases that some runs leave out, TEST_CASE("..." * kTag): names of suites, which tests/CMakeLists.txt
// gives to --test-suite-exclude.
#pragma once

#include <doctest/doctest.h>

namespace mlff::test {

// Numbers that take long under the sanitizers and go through code that other cases go through as well.
inline const doctest::test_suite kSlowUnderSanitizers("slow-under-sanitizers");

// Not in CTest at all: run the program without options for them.
inline const doctest::test_suite kTakesMinutes("takes-minutes");

}  // namespace mlff::test
