// SPDX-License-Identifier: MIT
#include "tools/validate/differences.h"

#include <algorithm>
#include <cmath>

namespace mlff::validate {

void Differences::add(double difference) {
    const double size = std::abs(difference);
    ++count_;
    if (!(size <= largest_) && !std::isnan(largest_)) largest_ = size;  // a NaN is kept
    sum_ += size;
    signed_sum_ += difference;
    squares_ += size * size;
}

double Differences::mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }
double Differences::offset() const { return count_ ? signed_sum_ / static_cast<double>(count_) : 0; }
double Differences::rms() const { return count_ ? std::sqrt(squares_ / static_cast<double>(count_)) : 0; }

bool ForceDifferences::add_frame(int64_t frame, std::span<const int32_t> atomic_numbers, std::span<const double> found,
                                 std::span<const double> expected) {
    bool has_worst = false;
    for (size_t atom = 0; atom < atomic_numbers.size(); ++atom) {
        double squares = 0;
        for (size_t i = 3 * atom; i < 3 * atom + 3; ++i) squares += (found[i] - expected[i]) * (found[i] - expected[i]);
        const double size = std::sqrt(squares), before = lengths_.largest();
        lengths_.add(size);
        if (size <= before || std::isnan(before)) continue;
        has_worst = true;
        worst_ = {frame, static_cast<int64_t>(atom), atomic_numbers[atom], {}, {}};
        std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(3 * atom), 3, worst_.found.begin());
        std::copy_n(expected.begin() + static_cast<std::ptrdiff_t>(3 * atom), 3, worst_.expected.begin());
    }
    return has_worst;
}

double ForceDifferences::component_rms() const { return lengths_.rms() / std::sqrt(3.0); }

}  // namespace mlff::validate
