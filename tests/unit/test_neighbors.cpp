// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "../sanitized.h"
#include "core/error.h"
#include "neighbor_systems.h"
#include "neighbors/batch_edges.h"
#include "neighbors/batch_search.h"
#include "neighbors/cell_grid.h"
#include "neighbors/displacements.h"
#include "neighbors/lattice.h"
#include "neighbors/neighbor_list.h"

using namespace mlff;
using namespace mlff::testing;

namespace {

bool matches_oracle(const NeighborList& list, const SystemView& system) {
    const Edges& edges = list.edges();
    const std::vector<Edge> found = list_edges(edges, system.atom_count);
    return edges.atom_count == system.atom_count && edges.edge_count == static_cast<int64_t>(found.size()) &&
           sorted(found) == sorted(expected_edges(system, list.options()));
}

std::string refusal(const Atoms& atoms, double cutoff) {
    NeighborList list(with_cutoff(cutoff));
    return message_of(Status::system, [&] { list.update(atoms.view(), team()); });
}

}  // namespace

TEST_CASE("the brute force oracle counts shells of a simple cubic lattice") {
    const Atoms atoms = simple_cubic(2.0);
    const auto count = [&](double cutoff) {
        return brute_force_neighbors(atoms.view(), with_cutoff(cutoff)).sender.size();
    };
    CHECK(count(2.0) == 0);
    CHECK(count(2.01) == 6);
    CHECK(count(3.0) == 18);
    CHECK(count(3.6) == 26);
    CHECK(count(4.01) == 32);
    NeighborOptions half = with_cutoff(3.6);
    half.half = true;
    CHECK(brute_force_neighbors(atoms.view(), half).sender.size() == 13);
    Atoms alone = atoms;
    alone.periodic = {false, false, false};
    CHECK(brute_force_neighbors(alone.view(), with_cutoff(50)).sender.empty());
}

TEST_CASE("the brute force oracle gives a pair across a face") {
    Atoms atoms = simple_cubic(10.0);
    atoms.positions = {0.5, 0, 0, 9.5, 0, 0};
    const BruteForceEdges edges = brute_force_neighbors(atoms.view(), with_cutoff(1.5));
    REQUIRE(edges.sender == std::vector<int32_t>{1, 0});
    CHECK(edges.shift == std::vector<int32_t>{-1, 0, 0, 1, 0, 0});
    CHECK(edges.vector[0] == -1.0);
    CHECK(edges.vector[3] == 1.0);
    CHECK(edges.distance == std::vector<double>{1.0, 1.0});
}

TEST_CASE("random cells give the edges of the oracle, bit for bit") {
    Random random(1);
    for (int round = 0; round < (test::kIsSanitized ? 1000 : 6000); ++round) {
        const Atoms atoms = random_atoms(random, round % 10 == 0 ? 60 : 12);
        NeighborOptions options = with_cutoff(random_cutoff(random, atoms));
        options.half = random.integer(0, 3) == 0;
        options.is_brute_force = round % 5 == 0;
        NeighborList list(options);
        list.update(atoms.view(), team());
        CAPTURE(round);
        REQUIRE(matches_oracle(list, atoms.view()));
    }
}

TEST_CASE("one list serves systems of changing size") {
    Random random(2);
    NeighborList list(with_cutoff(4.0));
    for (int round = 0; round < 200; ++round) {
        const Atoms atoms = random_atoms(random, 30);
        list.update(atoms.view(), team());
        REQUIRE(matches_oracle(list, atoms.view()));
    }
    CHECK(list.build_count() == 200);
}

TEST_CASE("cutoffs exactly at distances that occur") {
    Atoms atoms = simple_cubic(3.0);
    atoms.positions.clear();
    for (int i = 0; i < 216; ++i)
        for (const int cell : {i % 6, i / 6 % 6, i / 36}) atoms.positions.push_back(0.7 * cell);
    for (size_t k = 0; k < 3; ++k) atoms.cell[k][k] = 6 * 0.7;
    for (const double cutoff : {0.7, std::sqrt(2.0) * 0.7, 1.4, 2.1, 0.7 * std::sqrt(5.0)}) {
        NeighborList list(with_cutoff(cutoff));
        list.update(atoms.view(), team());
        CHECK(matches_oracle(list, atoms.view()));
    }
}

TEST_CASE("liquids of many bins give the edges of the oracle") {
    Random random(3);
    for (const int per_edge : {3, 9}) {
        const Atoms atoms = liquid(random, per_edge);
        for (const bool half : {false, true}) {
            NeighborOptions options = with_cutoff(4.5);
            options.half = half;
            NeighborList list(options);
            list.update(atoms.view(), team());
            CHECK(matches_oracle(list, atoms.view()));
        }
    }
}

TEST_CASE("deformed liquids of many bins give the edges of the oracle") {
    Random random(14);
    for (int round = 0; round < 16; ++round) {
        const Atoms cubic = liquid(random, 6);
        Atoms atoms;
        const Mat3 deformed = random_cell(random);
        atoms.cell = deformed;
        for (size_t k = 0; k < 3; ++k) atoms.periodic[k] = random.integer(0, 2) > 0;
        for (size_t k = 0; k < cubic.positions.size(); k += 3)
            for (size_t axis = 0; axis < 3; ++axis)
                atoms.positions.push_back((cubic.positions[k] * deformed[0][axis] +
                                           cubic.positions[k + 1] * deformed[1][axis] +
                                           cubic.positions[k + 2] * deformed[2][axis]) /
                                          cubic.cell[0][0]);
        const double spacing = std::cbrt(std::abs(determinant(deformed)) / 216);
        NeighborList list(with_cutoff(random.uniform(1, 2.5) * spacing));
        list.update(atoms.view(), team());
        CAPTURE(round);
        CHECK(matches_oracle(list, atoms.view()));
    }
}

TEST_CASE("atoms very far outside the cell, and mostly empty boxes") {
    Random random(4);
    for (const double distance : {1e3, 1e5, 1e7}) {
        Atoms atoms = liquid(random, 4);
        for (size_t k = 0; k < atoms.positions.size(); k += 7)
            atoms.positions[k] += 8.8 * std::floor(random.uniform(-distance, distance));
        NeighborList list(with_cutoff(4.0));
        list.update(atoms.view(), team());
        CHECK(matches_oracle(list, atoms.view()));
        atoms.periodic = {false, true, false};
        list.update(atoms.view(), team());
        CHECK(matches_oracle(list, atoms.view()));
    }
}

TEST_CASE("strongly skewed cells") {
    Random random(5);
    Atoms atoms = liquid(random, 4);
    for (const double skew : {3.0, 17.5, -40.0}) {
        for (size_t axis = 0; axis < 3; ++axis) {
            atoms.cell[1][axis] += skew * atoms.cell[0][axis];
            atoms.cell[2][axis] -= 2 * skew * atoms.cell[1][axis];
        }
        NeighborList list(with_cutoff(3.0));
        list.update(atoms.view(), team());
        CHECK(matches_oracle(list, atoms.view()));
        atoms.cell = liquid(random, 4).cell;
    }
}

TEST_CASE("coincident atoms are neighbours at distance zero, an atom is not its own") {
    Atoms atoms = simple_cubic(9.0);
    atoms.positions = {1, 2, 3, 1, 2, 3};
    NeighborList list(with_cutoff(1.0));
    list.update(atoms.view(), team());
    REQUIRE(list.edges().edge_count == 2);
    CHECK(list.edges().sender[0] == 1);
    CHECK(list.edges().distance[0] == 0.0);
}

TEST_CASE("no atoms and one atom") {
    Atoms atoms = simple_cubic(9.0);
    atoms.positions.clear();
    NeighborList list(with_cutoff(3.0));
    for (const bool periodic : {true, false}) {
        atoms.periodic = {periodic, periodic, periodic};
        list.update(atoms.view(), team());
        CHECK(list.edges().edge_count == 0);
        REQUIRE(list.edges().first != nullptr);
        CHECK(list.edges().first[0] == 0);
    }
    atoms.positions = {100, -100, 0};
    list.update(atoms.view(), team());
    CHECK(list.edges().atom_count == 1);
    CHECK(list.edges().edge_count == 0);
}

TEST_CASE("stray atoms do not spread the grid over a vacuum") {
    Random random(15);
    Atoms atoms = liquid(random, 7);
    atoms.periodic = {false, false, false};
    const std::array<double, 12> stray = {1e5, -1e5, 2e5, 1e5, -1e5, 2e5 + 1, -3e5, 0, 0, 1e5, 1e5, 1e5};
    atoms.positions.insert(atoms.positions.end(), stray.begin(), stray.end());
    for (const bool periodic : {false, true}) {
        atoms.periodic[1] = periodic;
        NeighborList list(with_cutoff(4.0));
        list.update(atoms.view(), team());
        CHECK(matches_oracle(list, atoms.view()));
    }
}

TEST_CASE("a boundless cutoff finds all pairs of a cluster") {
    Atoms atoms;
    for (int k = 0; k < 30; ++k) atoms.positions.push_back(k % 3 == 0 ? 1e7 * k : k);
    NeighborList list(with_cutoff(1e300));
    list.update(atoms.view(), team());
    CHECK(list.edges().edge_count == 90);
    CHECK(matches_oracle(list, atoms.view()));
}

TEST_CASE("the number of threads changes nothing, not even the order") {
    Random random(6);
    const Atoms atoms = liquid(random, 16);
    NeighborOptions options = with_cutoff(4.5);
    options.want_reverse = true;
    std::vector<Edge> expected;
    std::vector<int64_t> expected_reverse;
    for (const int threads : {1, 2, 3, 7}) {
        ThreadTeam workers(threads);
        NeighborList list(options);
        list.update(atoms.view(), workers);
        const Edges& edges = list.edges();
        const std::vector<Edge> found = list_edges(edges, edges.atom_count);
        const std::vector<int64_t> reverse(edges.reverse, edges.reverse + edges.edge_count);
        if (threads == 1) {
            expected = found;
            expected_reverse = reverse;
        }
        CHECK(found == expected);
        CHECK(reverse == expected_reverse);
    }
}

TEST_CASE("the reverse edge comes from the other end with the opposite shift and vector") {
    Random random(7);
    for (int round = 0; round < 300; ++round) {
        const Atoms atoms = random_atoms(random, 20);
        NeighborOptions options = with_cutoff(random.uniform(1, 7));
        options.want_reverse = true;
        NeighborList list(options);
        list.update(atoms.view(), team());
        const Edges& edges = list.edges();
        bool right = true;
        for (int64_t atom = 0; atom < edges.atom_count; ++atom)
            for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
                const int64_t other = edges.reverse[edge];
                const int32_t from = edges.sender[edge];
                right = right && other >= edges.first[from] && other < edges.first[from + 1] &&
                        edges.sender[other] == atom && edges.reverse[other] == edge &&
                        edges.distance[other] == edges.distance[edge];
                for (int k = 0; k < 3; ++k)
                    right = right && edges.shift[3 * other + k] == -edges.shift[3 * edge + k] &&
                            edges.vector[3 * other + k] == -edges.vector[3 * edge + k];
            }
        REQUIRE(right);
    }
}

TEST_CASE("arrays that are not wanted are null") {
    Random random(8);
    const Atoms atoms = liquid(random, 3);
    NeighborOptions options = with_cutoff(3.0);
    options.want_shifts = options.want_vectors = options.want_distances = false;
    options.want_reverse = true;
    NeighborList list(options);
    list.update(atoms.view(), team());
    CHECK(list.edges().shift == nullptr);
    CHECK(list.edges().vector == nullptr);
    CHECK(list.edges().distance == nullptr);
    REQUIRE(list.edges().reverse != nullptr);
    CHECK(list.edges().reverse[list.edges().reverse[0]] == 0);
}

TEST_CASE("random walks with skin stay exact, and reuse exactly when the criterion allows") {
    Random random(9);
    int64_t reused = 0;
    int64_t searched = 0;
    for (int walk = 0; walk < 60; ++walk) {
        Atoms atoms = random_atoms(random, 25);
        NeighborOptions options = with_cutoff(random.uniform(2, 5));
        options.skin = random.uniform(0.1, 1.5);
        options.half = random.integer(0, 3) == 0;
        NeighborList list(options);
        std::vector<double> start;
        for (int step = 0; step < 25; ++step) {
            list.update(atoms.view(), team());
            std::vector<double> moved = {0, 0};
            for (size_t k = 0; k < start.size(); k += 3)
                moved.push_back(std::sqrt(squared_length(edge_vector(&start[k], &atoms.positions[k], {0, 0, 0}))));
            std::sort(moved.rbegin(), moved.rend());
            REQUIRE(list.was_reused() == (step > 0 && moved[0] + moved[1] <= options.skin));
            REQUIRE(matches_oracle(list, atoms.view()));
            ++(list.was_reused() ? reused : searched);
            if (!list.was_reused()) start = atoms.positions;
            for (double& coordinate : atoms.positions)
                coordinate += random.uniform(-0.1, 0.1) * (random.integer(0, 5) == 0 ? 1 : 0.1);
        }
    }
    CHECK(reused > 200);
    CHECK(searched > 100);
}

TEST_CASE("a changed cell, periodicity or atom count forces a search") {
    Random random(10);
    Atoms atoms = liquid(random, 4);
    NeighborOptions options = with_cutoff(4.0);
    options.skin = 1.0;
    NeighborList list(options);
    list.update(atoms.view(), team());
    list.update(atoms.view(), team());
    CHECK(list.was_reused());
    CHECK(list.build_count() == 1);
    atoms.cell[0][1] += 1e-9;
    list.update(atoms.view(), team());
    CHECK_FALSE(list.was_reused());
    atoms.periodic[2] = false;
    list.update(atoms.view(), team());
    CHECK_FALSE(list.was_reused());
    atoms.positions.resize(atoms.positions.size() - 3);
    list.update(atoms.view(), team());
    CHECK_FALSE(list.was_reused());
    CHECK(list.build_count() == 4);
    CHECK(matches_oracle(list, atoms.view()));
}

TEST_CASE("a pair that crosses the whole skin is found: two atoms may share it unequally") {
    Atoms atoms;
    atoms.positions = {0, 0, 0, 4.0, 0, 0, 0, 50, 0};
    NeighborOptions options = with_cutoff(3.0);
    options.skin = 1.0;
    NeighborList list(options);
    list.update(atoms.view(), team());
    CHECK(list.edges().edge_count == 0);
    atoms.positions[0] = 1.0;
    list.update(atoms.view(), team());
    CHECK(list.was_reused());
    CHECK(list.edges().edge_count == 0);
    atoms.positions[0] = 0.9;
    atoms.positions[3] = std::nextafter(3.9, 0.0);
    list.update(atoms.view(), team());
    CHECK(list.edges().edge_count == 2);
    CHECK(matches_oracle(list, atoms.view()));
}

TEST_CASE("a list recovers after a refusal") {
    Random random(11);
    const Atoms good = liquid(random, 4);
    Atoms bad = good;
    bad.positions[10] = std::numeric_limits<double>::quiet_NaN();
    NeighborOptions options = with_cutoff(4.0);
    options.skin = 0.5;
    NeighborList list(options);
    list.update(good.view(), team());
    CHECK(contains(message_of(Status::system, [&] { list.update(bad.view(), team()); }), "atom 3 "));
    CHECK(list.edges().edge_count == 0);
    CHECK(list.edges().atom_count == 0);
    list.update(good.view(), team());
    CHECK_FALSE(list.was_reused());
    CHECK(matches_oracle(list, good.view()));
}

TEST_CASE("a steady state keeps its memory") {
    Random random(12);
    Atoms atoms = liquid(random, 8);
    NeighborList list(with_cutoff(4.0));
    list.update(atoms.view(), team());
    const Edges before = list.edges();
    for (double& coordinate : atoms.positions) coordinate += 1e-3;
    list.update(atoms.view(), team());
    CHECK(list.edges().first == before.first);
    CHECK(list.edges().sender == before.sender);
    CHECK(list.edges().shift == before.shift);
    CHECK(list.edges().vector == before.vector);
    CHECK(list.edges().distance == before.distance);
}

TEST_CASE("systems that cannot be searched are refused with a reason") {
    const double infinity = std::numeric_limits<double>::infinity();
    Atoms atoms = simple_cubic(4.0);
    atoms.positions = {0, 0, 0, 1, 1, 1};
    Atoms bad = atoms;
    bad.positions[4] = infinity;
    CHECK(contains(refusal(bad, 3), "atom 1 is not finite"));
    bad.periodic = {false, false, false};
    CHECK(contains(refusal(bad, 3), "atom 1 is not finite"));
    bad = atoms;
    bad.positions[3] = 1e12;
    CHECK(contains(refusal(bad, 3), "atom 1 at"));
    bad = atoms;
    bad.cell[0][0] = 1e-3;
    bad.positions[3] = 2e6;
    CHECK(contains(refusal(bad, 0.1), "atom 1 at"));
    bad = atoms;
    bad.cell[2] = {0, 0, 0};
    CHECK(contains(refusal(bad, 3), "lattice vector 2 of the cell is zero"));
    bad.periodic[2] = false;
    CHECK(refusal(bad, 3) == "nothing was thrown");
    bad = atoms;
    bad.cell[2] = {4, 4, 1e-9};
    CHECK(contains(refusal(bad, 3), "flat"));
    bad = atoms;
    bad.cell[1] = {-8, 0, 0};
    bad.periodic[2] = false;
    CHECK(contains(refusal(bad, 3), "parallel"));
    bad = atoms;
    bad.cell[1][2] = infinity;
    CHECK(contains(refusal(bad, 3), "lattice vector 1"));
    bad = atoms;
    bad.cell[1] = {0, 1e200, 0};
    CHECK(contains(refusal(bad, 3), "lattice vector 1"));
    CHECK(contains(refusal(atoms, 2003), "501 images in direction 0 of the cell, the limit is 500"));
    CHECK(contains(refusal(atoms, 1990), "neighbours per atom, the limit is 1e+06"));
    SystemView huge = atoms.view();
    huge.atom_count = int64_t{1} << 31;
    NeighborList list(with_cutoff(3));
    CHECK(contains(message_of(Status::system, [&] { list.update(huge, team()); }), "2147483648 atoms"));
    huge.atom_count = -1;
    CHECK(contains(message_of(Status::argument, [&] { list.update(huge, team()); }), "-1"));
}

TEST_CASE("atoms that are far too close together are refused before their pairs take memory") {
    Atoms crowd;
    crowd.positions.assign(size_t{300'000}, 1.5);  // 10^5 atoms at one point: 10^10 pairs
    for (const bool is_periodic : {false, true}) {
        crowd.cell = simple_cubic(40.0).cell;
        crowd.periodic = {is_periodic, is_periodic, false};
        CHECK(contains(refusal(crowd, 6),
                       "the 100000 atoms have more than 50000 neighbours on average within 6 angstrom"));
    }
    // Pairs are counted while they are found, too: one atom elsewhere, and the box around all says nothing.
    crowd.positions[0] = -30;
    NeighborOptions options = with_cutoff(6);
    options.memory_bytes = 100 << 20;
    for (const double skin : {0.0, 0.5}) {
        options.skin = skin;
        NeighborList list(options);
        CHECK(contains(message_of(Status::memory, [&] { list.update(crowd.view(), team()); }),
                       "whose list does not fit into 100 MiB of memory"));
        CHECK(list.edges().edge_count == 0);
        const Atoms good = simple_cubic(2.0);
        list.update(good.view(), team());
        CHECK(matches_oracle(list, good.view()));
    }
}

TEST_CASE("a list is refused only if it does not fit into the memory that it may take") {
    Random random(31);
    const Atoms atoms = liquid(random, 12);
    for (const bool half : {false, true}) {
        NeighborOptions options = with_cutoff(5);
        options.half = half;
        NeighborList free(options);
        free.update(atoms.view(), team());
        const int64_t needed = free.edges().edge_count * (4 + 4 + 12 + 24 + 8);
        REQUIRE(needed > 1'000'000);
        for (const int threads : {1, 3}) {
            ThreadTeam other(threads);
            options.memory_bytes = needed;
            NeighborList fits(options);
            fits.update(atoms.view(), other);
            CHECK(fits.edges().edge_count == free.edges().edge_count);
            options.memory_bytes = needed - 1;
            NeighborList too_large(options);
            CHECK(contains(message_of(Status::memory, [&] { too_large.update(atoms.view(), other); }), "pairs within"));
        }
    }
}

TEST_CASE("the lower bound on the number of pairs is one") {
    Random random(32);
    int useful = 0;
    for (int round = 0; round < 300; ++round) {
        Atoms atoms = random_atoms(random, 60);
        const double scale = std::pow(10, random.uniform(-2, 0));
        for (double& coordinate : atoms.positions) coordinate *= scale;
        const double cutoff = random_cutoff(random, atoms);
        const Lattice lattice = make_lattice(atoms.view());
        const int64_t count = atoms.view().atom_count;
        AtomSurvey survey;
        for (int64_t atom = 0; atom < count; ++atom)
            survey.add(lattice, &atoms.positions[static_cast<size_t>(3 * atom)], atom);
        const double fewest = choose_grid(lattice, survey, count, cutoff).fewest_pairs;
        NeighborList list(with_cutoff(cutoff));
        list.update(atoms.view(), team());
        CHECK(fewest <= static_cast<double>(list.edges().edge_count));
        useful += fewest > 0 ? 1 : 0;
    }
    CHECK(useful > 50);
}

TEST_CASE("options that make no sense are refused") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double cutoff : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()})
        CHECK(contains(message_of(Status::argument, [&] { NeighborList list(with_cutoff(cutoff)); }), "cutoff"));
    for (const double skin : {-0.1, nan}) {
        NeighborOptions options = with_cutoff(3);
        options.skin = skin;
        CHECK(contains(message_of(Status::argument, [&] { NeighborList list(options); }), "skin"));
    }
    NeighborOptions options = with_cutoff(3);
    options.half = options.want_reverse = true;
    CHECK(contains(message_of(Status::argument, [&] { NeighborList list(options); }), "half"));
}

TEST_CASE("joined edges keep to their systems, and so do their reverse edges") {
    Random random(77);
    BatchEdges joined;
    std::vector<int64_t> first_atom = {0};
    for (int i = 0; i < 6; ++i) {
        const Atoms atoms = random_atoms(random, 20);
        NeighborOptions options = with_cutoff(random_cutoff(random, atoms));
        options.want_shifts = false;
        options.want_reverse = true;
        NeighborList list(options);
        list.update(atoms.view(), team());
        joined.append(list.edges());
        first_atom.push_back(first_atom.back() + list.edges().atom_count);
    }
    const Edges edges = joined.edges();
    REQUIRE(edges.atom_count == first_atom.back());
    REQUIRE(edges.edge_count > 0);
    for (size_t s = 0; s + 1 < first_atom.size(); ++s)
        for (int64_t atom = first_atom[s]; atom < first_atom[s + 1]; ++atom)
            for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
                REQUIRE((edges.sender[edge] >= first_atom[s] && edges.sender[edge] < first_atom[s + 1]));
                const int64_t reverse = edges.reverse[edge];
                REQUIRE((reverse >= edges.first[edges.sender[edge]] && reverse < edges.first[edges.sender[edge] + 1]));
                REQUIRE(edges.reverse[reverse] == edge);
                for (int64_t k = 0; k < 3; ++k) REQUIRE(edges.vector[3 * reverse + k] == -edges.vector[3 * edge + k]);
            }
}

TEST_CASE("systems that threads search each for itself give the edges of one search after the other") {
    Random random(78);
    std::vector<Atoms> atoms;
    for (int i = 0; i < 40; ++i) atoms.push_back(i % 7 == 3 ? Atoms{} : random_atoms(random, 20));
    std::vector<SystemView> systems;
    for (const Atoms& each : atoms) systems.push_back(each.view());
    for (const bool want_reverse : {false, true})
        for (const int threads : {1, 3}) {
            NeighborOptions options = with_cutoff(2.5);
            options.want_shifts = false;
            options.want_reverse = want_reverse;
            BatchEdges joined;
            NeighborList list(options);
            for (const SystemView& system : systems) {
                list.update(system, team());
                joined.append(list.edges());
            }
            ThreadTeam searchers(threads);
            BatchSearch search(options);
            for (int round = 0; round < 2; ++round) {
                std::vector<int> seen(systems.size());
                search.find(
                    systems,
                    [&](size_t system, const Edges& edges) {
                        seen[system] += edges.atom_count == systems[system].atom_count;
                    },
                    searchers);
                CHECK(seen == std::vector<int>(systems.size(), 1));
                const Edges found = search.edges(), expected = joined.edges();
                REQUIRE(found.atom_count == expected.atom_count);
                REQUIRE(found.edge_count == expected.edge_count);
                REQUIRE(found.edge_count > 0);
                CHECK(std::equal(found.first, found.first + found.atom_count + 1, expected.first));
                CHECK(std::equal(found.sender, found.sender + found.edge_count, expected.sender));
                CHECK(std::equal(found.vector, found.vector + 3 * found.edge_count, expected.vector));
                CHECK(std::equal(found.distance, found.distance + found.edge_count, expected.distance));
                REQUIRE((found.reverse != nullptr) == want_reverse);
                if (want_reverse) CHECK(std::equal(found.reverse, found.reverse + found.edge_count, expected.reverse));
            }
            // The first system with an error says so, whichever thread has it; then there are no edges.
            const auto refuse = [](size_t system, const Edges&) {
                if (system >= 5) fail(Status::system, "system ", system);
            };
            CHECK(message_of(Status::system, [&] { search.find(systems, refuse, searchers); }) == "system 5");
            CHECK(search.edges().edge_count == 0);
            search.find({}, refuse, searchers);
            CHECK(search.edges().atom_count == 0);
        }
}

TEST_CASE("a lattice inverts its vectors and knows its heights") {
    Random random(13);
    for (int round = 0; round < 300; ++round) {
        const Atoms atoms = random_atoms(random, 1);
        const Lattice lattice = make_lattice(atoms.view());
        for (size_t k = 0; k < 3; ++k) {
            for (size_t l = 0; l < 3; ++l) {
                double product = 0;
                for (size_t axis = 0; axis < 3; ++axis) product += lattice.vectors[k][axis] * lattice.inverse[axis][l];
                CHECK(product == doctest::Approx(k == l ? 1 : 0).epsilon(1e-12));
            }
            const double column = std::hypot(lattice.inverse[0][k], lattice.inverse[1][k], lattice.inverse[2][k]);
            CHECK(lattice.height[k] * column == doctest::Approx(1));
            if (lattice.periodic[k]) {
                CHECK(lattice.vectors[k] == atoms.cell[k]);
            } else {
                CHECK(lattice.height[k] == doctest::Approx(1));
                CHECK(squared_length(lattice.vectors[k]) == doctest::Approx(1));
            }
        }
        CHECK(lattice.volume == doctest::Approx(std::abs(determinant(lattice.vectors))));
    }
}

TEST_CASE("the volume for stresses") {
    Atoms atoms;
    atoms.positions = {0, 0, 1, 0, 0, 4, 7, 8, 2};
    atoms.cell = {Vec3{10, 0, 0}, Vec3{3, -11, 0}, Vec3{1, 2, 12}};
    atoms.periodic = {true, true, true};
    CHECK(stress_volume(atoms.view(), 5) == doctest::Approx(10 * 11 * 12));
    atoms.periodic[2] = false;  // a row that is given counts, periodic or not
    CHECK(stress_volume(atoms.view(), 5) == doctest::Approx(10 * 11 * 12));
    atoms.cell[2] = {0, 0, 0};
    CHECK(stress_volume(atoms.view(), 5) == doctest::Approx(10 * 11 * (3 + 10 + 1)));
    atoms.cell[1] = {0, 0, 0};
    atoms.periodic[1] = false;
    CHECK(stress_volume(atoms.view(), 5) == doctest::Approx(10 * (8 + 11) * (3 + 11)));
    atoms.positions.clear();
    CHECK(stress_volume(atoms.view(), 5) == doctest::Approx(10 * 11 * 11));
    atoms.cell[1] = {20, 0, 0};
    CHECK(contains(message_of(Status::system, [&] { stress_volume(atoms.view(), 5); }), "parallel"));
}

TEST_CASE("the two largest displacements do not depend on the order, and NaN forbids reuse") {
    Random random(16);
    for (int round = 0; round < 200; ++round) {
        std::vector<double> squared(static_cast<size_t>(random.integer(2, 12)));
        for (double& value : squared) value = random.integer(0, 3) == 0 ? 0.25 : random.uniform(0, 1);
        LargestDisplacements one;
        LargestDisplacements parts[2];
        for (const double value : squared) {
            one.add(value);
            parts[random.integer(0, 1)].add(value);
        }
        parts[0].merge(parts[1]);
        std::sort(squared.rbegin(), squared.rend());
        CHECK(one.largest == squared[0]);
        CHECK(one.second == squared[1]);
        CHECK(parts[0].largest == squared[0]);
        CHECK(parts[0].second == squared[1]);
        CHECK(one.allow_reuse(std::sqrt(squared[0]) + std::sqrt(squared[1])));
        CHECK_FALSE(one.allow_reuse(0.999 * (std::sqrt(squared[0]) + std::sqrt(squared[1]))));
        parts[1].add(std::numeric_limits<double>::quiet_NaN());
        parts[0].merge(parts[1]);
        CHECK_FALSE(parts[0].allow_reuse(1e300));
    }
}

TEST_CASE("the grid does not depend on the order in which the atoms were surveyed") {
    Random random(17);
    int clipped = 0;
    for (int round = 0; round < 200; ++round) {
        Atoms atoms = liquid(random, 5);
        atoms.periodic = {round % 2 == 0, false, false};
        for (const double stray : {300.0, -200.0, 1000.0}) atoms.positions.push_back(stray);
        for (double& coordinate : atoms.positions) coordinate += 0.1 * random.uniform(0, 1);
        const Lattice lattice = make_lattice(atoms.view());
        const int64_t count = atoms.view().atom_count;
        AtomSurvey forward, halves, part;
        for (int64_t atom = 0; atom < count; ++atom) {
            forward.add(lattice, &atoms.positions[static_cast<size_t>(3 * atom)], atom);
            const int64_t other = count - 1 - atom;
            (atom % 2 == 0 ? halves : part).add(lattice, &atoms.positions[static_cast<size_t>(3 * other)], other);
        }
        halves.merge(part);
        const CellGrid one = choose_grid(lattice, forward, count, 4.0);
        const CellGrid other = choose_grid(lattice, halves, count, 4.0);
        CHECK(one.bin_count == other.bin_count);
        CHECK(one.origin == other.origin);
        CHECK(one.length == other.length);
        CHECK(one.middle == other.middle);
        clipped += forward.sum != halves.sum && one.origin[1] > forward.lowest[1] ? 1 : 0;
    }
    CHECK(clipped > 100);  // the sums did differ, and the grid did come from them
}
