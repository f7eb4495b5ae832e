// SPDX-License-Identifier: MIT
// Differences between the results of two models, and where they are largest.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mlff::validate {

// For one kind of number. A NaN propagates to every figure.
class Differences {
public:
    void add(double difference);
    size_t count() const { return count_; }
    double largest() const { return largest_; }  // largest absolute difference; 0 without samples
    double mean() const;                         // mean absolute difference
    double offset() const;                       // mean signed difference
    double rms() const;

private:
    size_t count_ = 0;
    double largest_ = 0, sum_ = 0, signed_sum_ = 0, squares_ = 0;
};

struct WorstAtom {
    int64_t frame = -1, atom = -1;  // -1: no two forces differ
    int32_t atomic_number = 0;
    std::array<double, 3> found{}, expected{};  // eV/angstrom
};

// For forces: the lengths of the difference vectors of the atoms, and the rms of the components.
class ForceDifferences {
public:
    // True if this frame has the worst atom so far.
    bool add_frame(int64_t frame, std::span<const int32_t> atomic_numbers, std::span<const double> found,
                   std::span<const double> expected);
    const Differences& lengths() const { return lengths_; }
    double component_rms() const;
    const WorstAtom& worst() const { return worst_; }

private:
    Differences lengths_;
    WorstAtom worst_;
};

}  // namespace mlff::validate
