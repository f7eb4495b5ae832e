// SPDX-License-Identifier: MIT
#include "neighbors/cell_grid.h"

#include <numbers>

#include "core/error.h"

namespace mlff {
namespace {

constexpr double kMostNeighbors = 1e6;          // per atom, estimated
constexpr int64_t kMostMeanNeighbors = 50'000;  // 49 angstrom in water
constexpr int64_t kManyPairs = 100'000'000;     // up to this number, any mean is accepted
constexpr double kBinsPerAtom = 2;              // limits the memory for mostly empty boxes
constexpr double kMostBins = 2e9;               // indexed by int32
// Direction 0 has fine bins, because searching a range of bins along it costs no more than searching one.
constexpr std::array<double, 3> kBinsPerReach = {8, 2, 1};

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

double length(const Vec3& v) { return std::hypot(v[0], v[1], v[2]); }
double largest_component(const Vec3& v) { return std::max({std::abs(v[0]), std::abs(v[1]), std::abs(v[2])}); }

// In non-periodic directions the grid covers the bulk of the atoms; atoms outside it go into the outermost bins. Bins
// that are d apart are still at least d - 1 widths apart, and one stray atom does not stretch the grid over a vacuum.
// The bounds of the bulk are coarse, so the grid does not depend on the order of summation over atoms.
void place_grid(const AtomSurvey& survey, int64_t atom_count, CellGrid& grid) {
    const double atoms = static_cast<double>(std::max<int64_t>(atom_count, 1));
    const double step = grid.reach / 64;
    for (size_t k = 0; k < 3; ++k) {
        const double mean = survey.sum[k] / atoms;
        const double deviation = std::sqrt(std::max(survey.sum_of_squares[k] / atoms - mean * mean, 0.0));
        const double bulk_low = step * std::floor((mean - 3 * deviation) / step);
        const double bulk_high = step * std::ceil((mean + 3 * deviation) / step);
        const double low = atom_count == 0 ? 0 : std::max(survey.lowest[k], bulk_low);
        const double high = atom_count == 0 ? 0 : std::min(survey.highest[k], bulk_high);
        grid.origin[k] = grid.lattice.periodic[k] ? 0 : low;
        grid.length[k] = grid.lattice.periodic[k] ? 1 : std::max(high - low, 1e-3 * grid.reach);
    }
    for (size_t axis = 0; axis < 3; ++axis) {
        grid.middle[axis] = 0;
        for (size_t k = 0; k < 3; ++k)
            grid.middle[axis] += (grid.origin[k] + grid.length[k] / 2) * grid.lattice.vectors[k][axis];
    }
}

// Single precision: a wrapped position is at most M from the middle of the grid, and its image T farther. Rounding both
// positions, the translation, their sum and the square costs less than sqrt(3) u (3 M + 2 T) + 6 u reach with u =
// 2^-24; 16 u (M + T + reach) is a safe bound. Double precision, in the positions and in edge_vector: a few roundings
// of numbers no larger than the farthest atom plus the wrapping translation.
void choose_margins(const AtomSurvey& survey, CellGrid& grid) {
    const Lattice& lattice = grid.lattice;
    const double edges = length(lattice.vectors[0]) * length(lattice.vectors[1]) * length(lattice.vectors[2]);
    double wrapped = grid.reach;
    double unwrapped = survey.farthest;
    for (size_t k = 0; k < 3; ++k) {
        const double largest = largest_component(lattice.vectors[k]);
        const double extent = lattice.periodic[k] ? 1 : std::max(survey.highest[k] - survey.lowest[k], grid.reach);
        wrapped += (extent + 2 * grid.reach / lattice.height[k]) * largest;
        unwrapped += survey.most_wraps[k] * largest;
    }
    grid.filter_margin = 8 * double{std::numeric_limits<float>::epsilon()} * wrapped + 32 * kEpsilon * unwrapped;
    // edges / volume bounds the condition number of the inverse.
    grid.bin_margin = 16 * kEpsilon * (survey.farthest + grid.reach) * edges / lattice.volume;
}

void check_reach(const CellGrid& grid, int64_t atom_count) {
    const double reach = grid.reach;
    double volume = grid.lattice.volume;
    for (size_t k = 0; k < 3; ++k) {
        if (!grid.lattice.periodic[k]) {
            volume *= std::max(grid.length[k], 2 * reach);
            continue;
        }
        const double images = (reach + grid.filter_margin + 2 * grid.bin_margin) / grid.lattice.height[k];
        if (!(images <= kMostImages))
            fail(Status::system, "a cutoff (plus skin) of ", reach, " angstrom needs ", std::ceil(images),
                 " images in direction ", k, " of the cell, the limit is ", kMostImages);
    }
    const double sphere = 4.0 / 3 * std::numbers::pi * reach * reach * reach;
    const double neighbors = static_cast<double>(atom_count) * sphere / volume;
    if (neighbors > kMostNeighbors)
        fail(Status::system, "a cutoff (plus skin) of ", reach, " angstrom gives about ", neighbors,
             " neighbours per atom, the limit is ", kMostNeighbors);
}

// A lower bound: a box around all atoms is divided into parts in which any two atoms are within the reach. The pairs
// are fewest if all parts have the same number of atoms. Images of atoms only add pairs.
double count_fewest_pairs(const CellGrid& grid, const AtomSurvey& survey, int64_t atom_count) {
    const auto atoms = static_cast<double>(atom_count);
    double parts = 1;
    for (size_t k = 0; k < 3; ++k) {
        const double edge = (survey.highest[k] - survey.lowest[k]) * length(grid.lattice.vectors[k]);
        parts *= std::max(1.0, std::ceil(3.1 * edge / grid.reach));  // three edges add up to less than the reach
    }
    return atoms * std::max(0.0, atoms / parts - 1);
}

void choose_bins(int64_t atom_count, bool is_one_bin, CellGrid& grid) {
    const double most = is_one_bin ? 1 : std::clamp(kBinsPerAtom * static_cast<double>(atom_count), 1.0, kMostBins);
    Vec3 bins;
    for (size_t k = 0; k < 3; ++k)
        bins[k] =
            std::clamp(std::floor(grid.length[k] * grid.lattice.height[k] * kBinsPerReach[k] / grid.reach), 1.0, most);
    while (bins[0] * bins[1] * bins[2] > most) {
        double& largest = *std::max_element(bins.begin(), bins.end());
        largest = std::ceil(largest / 2);
    }
    for (size_t k = 0; k < 3; ++k) {
        grid.bin_count[k] = static_cast<int32_t>(bins[k]);
        grid.bin_width[k] = grid.length[k] / bins[k];
    }
}

}  // namespace

float CellGrid::surely_within() const {
    const double near = std::max(0.0, reach - filter_margin);
    return std::nextafter(static_cast<float>(near * near), 0.0f);
}
float CellGrid::surely_beyond() const {
    const double far = reach + filter_margin;
    return std::nextafter(static_cast<float>(far * far), std::numeric_limits<float>::max());
}

void check_atom_count(int64_t atom_count) {
    if (atom_count < 0) fail(Status::argument, "the system has ", atom_count, " atoms, expected 0 or more");
    if (atom_count > std::numeric_limits<int32_t>::max())
        fail(Status::system, "the system has ", atom_count, " atoms, the limit is ",
             std::numeric_limits<int32_t>::max());
}

void refuse_atom(int64_t atom, const double* at) {
    if (!std::isfinite(at[0]) || !std::isfinite(at[1]) || !std::isfinite(at[2]))
        fail(Status::system, "the position of atom ", atom, " is not finite");
    fail(Status::system, "atom ", atom, " at (", at[0], ", ", at[1], ", ", at[2],
         ") angstrom is too far from the origin: the limits are ", kFarthestAtom, " angstrom and ", kMostWraps,
         " cells");
}

void refuse_far_atoms(const SystemView& system) {
    for (int64_t atom = 0; atom < system.atom_count; ++atom) {
        const double* at = system.positions + 3 * atom;
        for (size_t axis = 0; axis < 3; ++axis)
            if (!(std::abs(at[axis]) <= kFarthestAtom)) refuse_atom(atom, at);
    }
}

int64_t most_pairs(int64_t atom_count) { return std::max(kManyPairs, kMostMeanNeighbors * atom_count); }

void refuse_crowd(int64_t atom_count, double reach) {
    fail(Status::system, "the ", atom_count, " atoms have more than ", most_pairs(atom_count) / atom_count,
         " neighbours on average within ", reach, " angstrom (cutoff plus skin): they are far too close together");
}

CellGrid choose_grid(const Lattice& lattice, const AtomSurvey& survey, int64_t atom_count, double search_reach,
                     bool is_one_bin) {
    CellGrid grid;
    grid.lattice = lattice;
    grid.reach = std::min(search_reach, 4 * kFarthestAtom);  // no two atoms are farther apart
    place_grid(survey, atom_count, grid);
    choose_margins(survey, grid);
    check_reach(grid, atom_count);
    grid.fewest_pairs = count_fewest_pairs(grid, survey, atom_count);
    if (grid.fewest_pairs > static_cast<double>(most_pairs(atom_count))) refuse_crowd(atom_count, grid.reach);
    choose_bins(atom_count, is_one_bin, grid);
    return grid;
}

}  // namespace mlff
