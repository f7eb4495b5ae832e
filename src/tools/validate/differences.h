// SPDX-License-Identifier: MIT
// Two models side by side: how far their numbers are apart, and where most.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mlff::validate {

// Of one kind of number. A NaN stays in every figure.
class Differences {
public:
    void add(double difference);
    size_t count() const { return count_; }
    double largest() const { return largest_; }  // of the sizes; 0 if there are none
    double mean() const;                         // of the sizes
    double offset() const;                       // the mean with signs
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

// Of forces: lengths of the vectors by which the atoms' forces differ, and rms of components.
class ForceDifferences {
public:
    // True if the worst of all atoms so far is in this frame.
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
