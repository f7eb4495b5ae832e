// SPDX-License-Identifier: MIT
#include "dispersion/cpu/columns.h"

#include <algorithm>
#include <cmath>

#include "cpu_kernels/kernel_table.h"

namespace mlff::dispersion::cpu {

void Columns::choose_grid(const AtomSet& atoms) {
    constexpr double kSide = 4;              // angstrom
    constexpr double kMostCellsPerAtom = 2;  // for atoms far apart
    std::array<double, 3> high{};
    for (size_t axis = 0; axis < 3; ++axis)
        low_[axis] = high[axis] = atoms.positions.empty() ? 0 : atoms.positions[axis];
    for (size_t i = 0; i < atoms.positions.size(); ++i) {
        low_[i % 3] = std::min(low_[i % 3], atoms.positions[i]);
        high[i % 3] = std::max(high[i % 3], atoms.positions[i]);
    }
    const double most = 64 + kMostCellsPerAtom * static_cast<double>(atoms.count());
    for (side_ = kSide;; side_ *= 1.5) {
        double count = 1;
        for (size_t axis = 0; axis < 3; ++axis) count *= std::floor((high[axis] - low_[axis]) / side_) + 1;
        if (count <= most) break;
    }
    cell_count_ = 1;
    for (size_t axis = 0; axis < 3; ++axis) {
        cells_[axis] = static_cast<int64_t>(std::floor((high[axis] - low_[axis]) / side_)) + 1;
        cell_count_ *= cells_[axis];
    }
}

int64_t Columns::cell_along(size_t axis, double x) const {
    const double cell = std::floor((x - low_[axis]) / side_);
    return static_cast<int64_t>(std::clamp(cell, 0.0, static_cast<double>(cells_[axis] - 1)));
}

void Columns::sort(const AtomSet& atoms, size_t slot_count) {
    choose_grid(atoms);
    std::vector<int32_t>& index_of = index_of_slot_;
    index_of.assign(slot_count, -1);
    for (const int32_t slot : atoms.slots) index_of[static_cast<size_t>(slot)] = 0;
    present_.clear();
    for (size_t slot = 0; slot < slot_count; ++slot)
        if (index_of[slot] == 0) {
            index_of[slot] = static_cast<int32_t>(present_.size());
            present_.push_back(static_cast<int32_t>(slot));
        }
    const auto count = static_cast<size_t>(atoms.count());
    start_.assign(present_.size() * static_cast<size_t>(cell_count_) + 1, 0);
    keys_.resize(count);
    for (size_t i = 0; i < count; ++i) {
        const double* x = &atoms.positions[3 * i];
        const int64_t cell = (cell_along(2, x[2]) * cells_[1] + cell_along(1, x[1])) * cells_[0] + cell_along(0, x[0]);
        keys_[i] = index_of[static_cast<size_t>(atoms.slots[i])] * cell_count_ + cell;
        ++start_[static_cast<size_t>(keys_[i]) + 1];
    }
    for (size_t k = 1; k < start_.size(); ++k) start_[k] += start_[k - 1];
    for (auto& row : coordinates_) {
        row.resize(count + kernels::kRowPadding);
        std::fill(row.begin() + static_cast<ptrdiff_t>(count), row.end(), 0.0);
    }
    order_.resize(count);
    // Filling moves each start to the next one; the shift below moves them back.
    for (size_t i = 0; i < count; ++i) {
        const int32_t place = start_[static_cast<size_t>(keys_[i])]++;
        order_[static_cast<size_t>(place)] = static_cast<int32_t>(i);
        for (size_t axis = 0; axis < 3; ++axis)
            coordinates_[axis][static_cast<size_t>(place)] = atoms.positions[3 * i + axis];
    }
    for (size_t k = start_.size() - 1; k > 0; --k) start_[k] = start_[k - 1];
    start_[0] = 0;
}

void Columns::find_rows(const double* position, double distance, std::vector<CellRow>& rows) const {
    rows.clear();
    const auto away = [&](size_t axis, int64_t cell) {
        const double begin = low_[axis] + static_cast<double>(cell) * side_, x = position[axis];
        return std::max({begin - x, x - begin - side_, 0.0});
    };
    const int64_t last_z = cell_along(2, position[2] + distance), last_y = cell_along(1, position[1] + distance);
    const double square = distance * distance * (1 + 1e-12);
    for (int64_t z = cell_along(2, position[2] - distance); z <= last_z; ++z)
        for (int64_t y = cell_along(1, position[1] - distance); y <= last_y; ++y) {
            const double dz = away(2, z), dy = away(1, y), left = square - dz * dz - dy * dy;
            if (left < 0) continue;
            const double reach = std::sqrt(left);
            const int64_t row = (z * cells_[1] + y) * cells_[0];
            rows.push_back({row + cell_along(0, position[0] - reach), row + cell_along(0, position[0] + reach)});
        }
}

void Columns::find_runs(const std::vector<CellRow>& rows, size_t e, std::vector<int32_t>& runs) const {
    runs.clear();
    const int32_t* start = start_.data() + static_cast<int64_t>(e) * cell_count_;
    for (const CellRow& row : rows) {
        const int32_t begin = start[row.first], end = start[row.last + 1];
        if (begin < end) runs.insert(runs.end(), {begin, end});
    }
}

}  // namespace mlff::dispersion::cpu
