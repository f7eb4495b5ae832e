// SPDX-License-Identifier: MIT
// One step of a trajectory: what changes from frame to frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/system_view.h"

namespace mlff {

class MolecularDynamics;

struct Snapshot {
    int64_t step = 0;
    double time = 0;                                    // fs
    std::vector<double> positions, velocities, forces;  // angstrom, angstrom/fs, eV/angstrom
    Mat3 cell{};
    double potential_energy = 0, kinetic_energy = 0, temperature = 0;  // eV, eV, K

    void take(const MolecularDynamics& dynamics);
};

// Keeps the last few steps, for a report when a run becomes unstable.
class RecentSnapshots {
public:
    static constexpr size_t kLength = 5;

    Snapshot& next() { return snapshots_[count_++ % kLength]; }  // to be filled by the caller
    size_t size() const { return count_ < kLength ? count_ : kLength; }
    const Snapshot& operator[](size_t i) const { return snapshots_[(count_ - size() + i) % kLength]; }  // oldest first

private:
    std::array<Snapshot, kLength> snapshots_;
    size_t count_ = 0;
};

}  // namespace mlff
