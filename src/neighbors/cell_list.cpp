// SPDX-License-Identifier: MIT
#include "neighbors/cell_list.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace mlff {
namespace {

constexpr int64_t kAtomsPerChunk = 4096;  // fewer do not justify another thread
constexpr int64_t kMostChunks = 64;

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

AtomSurvey survey_atoms(const SystemView& system, const Lattice& lattice, ThreadTeam& team) {
    std::array<AtomSurvey, kMostChunks> parts;
    for_each_chunk(system.atom_count, team, [&](int64_t chunk, int64_t begin, int64_t end) {
        AtomSurvey part;
        for (int64_t atom = begin; atom < end; ++atom) part.add(lattice, system.positions + 3 * atom, atom);
        parts[static_cast<size_t>(chunk)] = part;
    });
    AtomSurvey whole;
    for (const AtomSurvey& part : parts) whole.merge(part);
    if (whole.refused < system.atom_count) refuse_atom(whole.refused, system.positions + 3 * whole.refused);
    return whole;
}

}  // namespace

void CellList::build(const SystemView& system, double search_reach, bool is_one_bin, ThreadTeam& team) {
    check_atom_count(system.atom_count);
    const Lattice lattice = make_lattice(system);
    const AtomSurvey survey = survey_atoms(system, lattice, team);
    grid = choose_grid(lattice, survey, system.atom_count, search_reach, is_one_bin);
    sort_atoms(system, team);
    place_atoms(system, team);
}

// A stable counting sort: the order depends only on the positions.
void CellList::sort_atoms(const SystemView& system, ThreadTeam& team) {
    const auto atoms = static_cast<size_t>(system.atom_count);
    unsorted_bin_.resize_discard(atoms);
    for_each_atom(system.atom_count, team, [&](int64_t atom) {
        unsorted_bin_[static_cast<size_t>(atom)] = grid.bin_of(system.positions + 3 * atom);
    });
    first_in_bin.resize_discard(static_cast<size_t>(grid.total_bins()) + 1);
    std::fill(first_in_bin.begin(), first_in_bin.end(), 0);
    for (const int32_t in : unsorted_bin_) ++first_in_bin[static_cast<size_t>(in)];
    std::inclusive_scan(first_in_bin.begin(), first_in_bin.end(), first_in_bin.begin());
    sites.resize_discard(atoms);
    bin.resize_discard(atoms);
    for (size_t atom = atoms; atom-- > 0;) {  // turns the end of each bin into its beginning
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
        const WrappedAtom wrapped = grid.wrap_atom(site.position.data());
        site.wrap = wrapped.wrap;
        x[sorted] = wrapped.place[0];
        y[sorted] = wrapped.place[1];
        z[sorted] = wrapped.place[2];
    });
}

void CellList::move_sites(const SystemView& system, ThreadTeam& team) {
    for_each_atom(system.atom_count, team, [&](int64_t atom) {
        Site& site = sites[static_cast<size_t>(atom)];
        std::copy_n(system.positions + 3 * int64_t{site.atom}, 3, site.position.data());
    });
}

}  // namespace mlff
