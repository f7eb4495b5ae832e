// SPDX-License-Identifier: MIT
// The comparison that other tests rely on must itself be able to fail.
#include "close.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace mlff::test;

TEST_CASE("the check rejects NaN, infinities and wrong signs") {
    const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    CHECK_FALSE(is_close(nan, 0.0, 1e9));
    CHECK_FALSE(is_close(0.0, nan, 1e9));
    CHECK_FALSE(is_close(nan, nan, 1e9));
    CHECK_FALSE(is_close(infinity, 0.0, 1e9));
    CHECK_FALSE(is_close(1.0, 2.0, nan));
    CHECK_FALSE(is_close(1000.0, -1.0, 1e-3));
    CHECK_FALSE(is_close(-1.0, -2.0, 0.5));
    CHECK(is_close(-1.0, -1.0, 0.0));
    CHECK(is_close(1.0, 1.5, 0.5));
}

TEST_CASE("differences of arrays are found and described") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<double> expected = {1, 2, 3};
    CHECK(difference(std::vector<double>{1, 2, 3}, expected, 0) == "");
    CHECK(difference(std::vector<double>{1, 2}, expected, 1) == "2 numbers, expected 3");
    CHECK(difference(std::vector<double>{1, 2, 4}, expected, 0.5).find("number 2 is 4, expected 3") !=
          std::string::npos);
    CHECK(difference(std::vector<double>{1, nan, 3}, expected, 1e9).find("number 1 is nan") != std::string::npos);
    CHECK(difference(std::vector<double>{9, nan, 30}, expected, 1).find("number 1 is nan") != std::string::npos);
}
