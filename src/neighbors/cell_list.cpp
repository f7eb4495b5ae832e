// SPDX-License-Identifier: MIT
#include "neighbors/cell_list.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/error.h"

namespace mlff {
namespace {

constexpr int64_t kAtomsPerChunk = 4096;  // fewer are not worth another thread
constexpr int64_t kMostChunks = 64;
constexpr double kFarthestAtom = 1e9;    // angstrom; beyond, positions have no digits left for distances
constexpr double kMostWraps = 1e9;       // the difference of two, plus an image, fits an int32
constexpr double kMostNeighbors = 1e6;   // estimated, of one atom
constexpr double kBinsPerAtom = 2;       // bounds the memory for boxes that are mostly empty
constexpr double kMostBins = 2e9;        // counted by int32
// Direction 0 is binned finely, because there a range of bins costs no more than one bin.
constexpr std::array<double, 3> kBinsPerReach = {8, 2, 1};

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// Calls work(chunk, begin, end) for at most kMostChunks ranges of atoms.
template <class Work>
void for_each_chunk(int64_t atom_count, ThreadTeam& team, const Work& work) {
    const int64_t size = std::max(kAtomsPerChunk, (atom_count + kMostChunks - 1) / kMostChunks);
    const auto call = [&](int64_t chunk, int) { work(chunk, chunk * size, std::min(atom_count, (chunk + 1) * size)); };
    team.run((atom_count + size - 1) / size, std::ref(call));  // by reference: std::function need not allocate
}

template <class Work>
void for_each_atom(int64_t atom_count, ThreadTeam& team, const Work& work) {
    for_each_chunk(atom_count, team, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t atom = begin; atom < end; ++atom) work(atom);
    });
}

Vec3 fractional(const Lattice& lattice, const double* x) {
    Vec3 result;
    for (size_t k = 0; k < 3; ++k)
        result[k] = x[0] * lattice.inverse[0][k] + x[1] * lattice.inverse[1][k] + x[2] * lattice.inverse[2][k];
    return result;
}

double length(const Vec3& v) { return std::hypot(v[0], v[1], v[2]); }
double largest_component(const Vec3& v) { return std::max({std::abs(v[0]), std::abs(v[1]), std::abs(v[2])}); }

}  // namespace

// What one pass over the atoms finds out.
struct CellList::Survey {
    int64_t refused = std::numeric_limits<int64_t>::max();  // the first atom that cannot be used
    double farthest = 0;                                    // largest coordinate, angstrom
    Vec3 most_wraps{};
    Vec3 lowest;  // of the fractional coordinates
    Vec3 highest;
    Vec3 sum{};
    Vec3 sum_of_squares{};

    Survey() {
        lowest.fill(std::numeric_limits<double>::max());
        highest.fill(std::numeric_limits<double>::lowest());
    }

    void add(const Lattice& axes, const double* position, int64_t atom) {
        const double distance = largest_component({position[0], position[1], position[2]});
        const Vec3 f = fractional(axes, position);
        bool usable = distance <= kFarthestAtom && !std::isnan(position[0] + position[1] + position[2]);
        for (size_t k = 0; k < 3; ++k) {
            const double wraps = axes.periodic[k] ? std::abs(std::floor(f[k])) : 0;
            usable = usable && wraps <= kMostWraps;
            most_wraps[k] = std::max(most_wraps[k], wraps);
            lowest[k] = std::min(lowest[k], f[k]);
            highest[k] = std::max(highest[k], f[k]);
            sum[k] += f[k];
            sum_of_squares[k] += f[k] * f[k];
        }
        farthest = std::max(farthest, distance);
        if (!usable) refused = std::min(refused, atom);
    }

    void merge(const Survey& other) {
        refused = std::min(refused, other.refused);
        farthest = std::max(farthest, other.farthest);
        for (size_t k = 0; k < 3; ++k) {
            most_wraps[k] = std::max(most_wraps[k], other.most_wraps[k]);
            lowest[k] = std::min(lowest[k], other.lowest[k]);
            highest[k] = std::max(highest[k], other.highest[k]);
            sum[k] += other.sum[k];
            sum_of_squares[k] += other.sum_of_squares[k];
        }
    }
};

void CellList::build(const SystemView& system, double search_reach, ThreadTeam& team) {
    if (system.atom_count < 0) fail(Status::argument, "the system has ", system.atom_count, " atoms");
    if (system.atom_count > std::numeric_limits<int32_t>::max())
        fail(Status::system, "the system has ", system.atom_count, " atoms, the limit is ",
             std::numeric_limits<int32_t>::max());
    reach = std::min(search_reach, 4 * kFarthestAtom);  // no two atoms are farther apart
    lattice = make_lattice(system);
    const Survey survey = survey_atoms(system, team);
    place_grid(survey, system.atom_count);
    choose_margins(survey);
    check_reach(system.atom_count);
    choose_bins(system.atom_count);
    sort_atoms(system, team);
    place_atoms(system, team);
}

CellList::Survey CellList::survey_atoms(const SystemView& system, ThreadTeam& team) {
    std::array<Survey, kMostChunks> parts;
    for_each_chunk(system.atom_count, team, [&](int64_t chunk, int64_t begin, int64_t end) {
        Survey part;
        for (int64_t atom = begin; atom < end; ++atom) part.add(lattice, system.positions + 3 * atom, atom);
        parts[static_cast<size_t>(chunk)] = part;
    });
    Survey whole;
    for (const Survey& part : parts) whole.merge(part);
    if (whole.refused >= system.atom_count) return whole;
    const double* at = system.positions + 3 * whole.refused;
    if (!std::isfinite(at[0]) || !std::isfinite(at[1]) || !std::isfinite(at[2]))
        fail(Status::system, "the position of atom ", whole.refused, " is not finite");
    fail(Status::system, "atom ", whole.refused, " at (", at[0], ", ", at[1], ", ", at[2],
         ") angstrom is too far away: the limits are ", kFarthestAtom, " angstrom and ", kMostWraps, " cells");
}

// Where nothing repeats, the grid covers the bulk of the atoms, and those beyond it fall into the outermost bins:
// bins d apart still are at least d - 1 widths apart, and one stray atom does not spread the grid over a vacuum.
void CellList::place_grid(const Survey& survey, int64_t atom_count) {
    const double atoms = static_cast<double>(std::max<int64_t>(atom_count, 1));
    for (size_t k = 0; k < 3; ++k) {
        const double mean = survey.sum[k] / atoms;
        const double deviation = std::sqrt(std::max(survey.sum_of_squares[k] / atoms - mean * mean, 0.0));
        const double low = atom_count == 0 ? 0 : std::max(survey.lowest[k], mean - 3 * deviation);
        const double high = atom_count == 0 ? 0 : std::min(survey.highest[k], mean + 3 * deviation);
        grid_origin_[k] = lattice.periodic[k] ? 0 : low;
        grid_length_[k] = lattice.periodic[k] ? 1 : std::max(high - low, 1e-3 * reach);
    }
    for (size_t axis = 0; axis < 3; ++axis) {
        grid_middle_[axis] = 0;
        for (size_t k = 0; k < 3; ++k)
            grid_middle_[axis] += (grid_origin_[k] + grid_length_[k] / 2) * lattice.vectors[k][axis];
    }
}

// Single precision: a wrapped position is at most M from the middle of the grid, its image T farther. Rounding
// both positions, the translation, their sum and the square costs less than sqrt(3) u (3 M + 2 T) + 6 u reach
// with u = 2^-24; 16 u (M + T + reach) is safe. Double precision, in the positions and in edge_vector: a few
// roundings of numbers no larger than the farthest atom plus what wrapping subtracts from it.
void CellList::choose_margins(const Survey& survey) {
    const double edges = length(lattice.vectors[0]) * length(lattice.vectors[1]) * length(lattice.vectors[2]);
    double wrapped = reach;
    double unwrapped = survey.farthest;
    for (size_t k = 0; k < 3; ++k) {
        const double largest = largest_component(lattice.vectors[k]);
        const double extent = lattice.periodic[k] ? 1 : std::max(survey.highest[k] - survey.lowest[k], reach);
        wrapped += (extent + 2 * reach / lattice.height[k]) * largest;
        unwrapped += survey.most_wraps[k] * largest;
    }
    filter_margin = 8 * double{std::numeric_limits<float>::epsilon()} * wrapped + 32 * kEpsilon * unwrapped;
    // edges / volume bounds the condition number of the inverse.
    bin_margin = 16 * kEpsilon * (survey.farthest + reach) * edges / lattice.volume;
}

void CellList::check_reach(int64_t atom_count) const {
    double volume = lattice.volume;
    for (size_t k = 0; k < 3; ++k) {
        if (!lattice.periodic[k]) {
            volume *= std::max(grid_length_[k], 2 * reach);
            continue;
        }
        const double images = (reach + filter_margin + 2 * bin_margin) / lattice.height[k];
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

void CellList::choose_bins(int64_t atom_count) {
    const double most = std::clamp(kBinsPerAtom * static_cast<double>(atom_count), 1.0, kMostBins);
    Vec3 bins;
    for (size_t k = 0; k < 3; ++k)
        bins[k] =
            std::clamp(std::floor(grid_length_[k] * lattice.height[k] * kBinsPerReach[k] / reach), 1.0, most);
    while (bins[0] * bins[1] * bins[2] > most) {
        double& largest = *std::max_element(bins.begin(), bins.end());
        largest = std::ceil(largest / 2);
    }
    for (size_t k = 0; k < 3; ++k) {
        bin_count[k] = static_cast<int32_t>(bins[k]);
        bin_width[k] = grid_length_[k] / bins[k];
    }
}

int32_t CellList::bin_of(const double* position) const {
    const Vec3 f = fractional(lattice, position);
    std::array<int32_t, 3> index;
    for (size_t k = 0; k < 3; ++k) {
        const double inside = lattice.periodic[k] ? f[k] - std::floor(f[k]) : f[k] - grid_origin_[k];
        index[k] = static_cast<int32_t>(std::clamp(inside / bin_width[k], 0.0, bin_count[k] - 1.0));
    }
    return (index[2] * bin_count[1] + index[1]) * bin_count[0] + index[0];
}

// A counting sort, stable, so that the order depends on nothing but the positions.
void CellList::sort_atoms(const SystemView& system, ThreadTeam& team) {
    const auto atoms = static_cast<size_t>(system.atom_count);
    unsorted_bin_.resize_discard(atoms);
    for_each_atom(system.atom_count, team, [&](int64_t atom) {
        unsorted_bin_[static_cast<size_t>(atom)] = bin_of(system.positions + 3 * atom);
    });
    first_in_bin.resize_discard(static_cast<size_t>(bin_count[0] * bin_count[1] * bin_count[2]) + 1);
    std::fill(first_in_bin.begin(), first_in_bin.end(), 0);
    for (const int32_t in : unsorted_bin_) ++first_in_bin[static_cast<size_t>(in)];
    std::inclusive_scan(first_in_bin.begin(), first_in_bin.end(), first_in_bin.begin());
    sites.resize_discard(atoms);
    bin.resize_discard(atoms);
    for (size_t atom = atoms; atom-- > 0;) {  // turns the ends of the bins into their beginnings
        const int32_t in = unsorted_bin_[atom];
        const auto place = static_cast<size_t>(--first_in_bin[static_cast<size_t>(in)]);
        sites[place].atom = static_cast<int32_t>(atom);
        bin[place] = in;
    }
}

void CellList::place_atoms(const SystemView& system, ThreadTeam& team) {
    const auto atoms = static_cast<size_t>(system.atom_count);
    x.resize_discard(atoms);
    y.resize_discard(atoms);
    z.resize_discard(atoms);
    move_sites(system, team);
    for_each_atom(system.atom_count, team, [&](int64_t atom) {
        const auto sorted = static_cast<size_t>(atom);
        Site& site = sites[sorted];
        const Vec3 f = fractional(lattice, site.position.data());
        Vec3 wrapped;
        for (size_t axis = 0; axis < 3; ++axis) wrapped[axis] = site.position[axis] - grid_middle_[axis];
        for (size_t k = 0; k < 3; ++k) {
            const double wraps = lattice.periodic[k] ? std::floor(f[k]) : 0;
            site.wrap[k] = static_cast<int32_t>(wraps);
            for (size_t axis = 0; axis < 3; ++axis) wrapped[axis] -= wraps * lattice.vectors[k][axis];
        }
        x[sorted] = static_cast<float>(wrapped[0]);
        y[sorted] = static_cast<float>(wrapped[1]);
        z[sorted] = static_cast<float>(wrapped[2]);
    });
}

void CellList::move_sites(const SystemView& system, ThreadTeam& team) {
    for_each_atom(system.atom_count, team, [&](int64_t atom) {
        Site& site = sites[static_cast<size_t>(atom)];
        std::copy_n(system.positions + 3 * int64_t{site.atom}, 3, site.position.data());
    });
}

}  // namespace mlff
