// SPDX-License-Identifier: MIT
// What is read of forces that are watched, which steps are kept, and when frames are near duplicates.
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "core/error.h"
#include "dynamics/surroundings.h"
#include "dynamics/watcher.h"

using namespace mlff;

namespace {

WatchReading reading_of(double sigma_max, int64_t atoms_outside = 0) { return {sigma_max, 0, atoms_outside}; }

// Ethanol-like: an atom with neighbours of two elements.
struct Molecule {
    std::vector<int32_t> numbers = {6, 1, 1, 8, 1};
    std::vector<double> positions = {0, 0, 0, 1.1, 0, 0, -0.4, 1.0, 0, -0.5, -0.6, 1.2, 3.0, 3.0, 1.0};
    double box = 0;

    SystemView view() const {
        SystemView system;
        system.atom_count = static_cast<int64_t>(numbers.size());
        system.atomic_numbers = numbers.data();
        system.positions = positions.data();
        for (size_t k = 0; k < 3; ++k) {
            system.cell[k][k] = box;
            system.periodic[k] = box > 0;
        }
        return system;
    }
    Surroundings around(int64_t atom) const { return Surroundings(view(), atom); }
    void move(size_t atom, double x, double y, double z) {
        const std::array<double, 3> by = {x, y, z};
        for (size_t k = 0; k < 3; ++k) positions[3 * atom + k] += by[k];
    }
    // Turns about an axis, moves, and puts the atoms into the reverse order.
    Molecule elsewhere() const {
        Molecule other;
        other.numbers.assign(numbers.rbegin(), numbers.rend());
        for (size_t atom = numbers.size(); atom-- > 0;) {
            const double *x = &positions[3 * atom], c = std::cos(0.7), s = std::sin(0.7);
            const std::array<double, 3> turned = {c * x[0] - s * x[1] + 4, s * x[0] + c * x[1] - 7, x[2] + 11};
            std::copy(turned.begin(), turned.end(), &other.positions[3 * (numbers.size() - 1 - atom)]);
        }
        return other;
    }
};

}  // namespace

TEST_CASE("the spread of a committee becomes a reading") {
    const std::vector<double> sigmas = {0.1, 0.5, 0.2, 0.3};
    const WatchReading reading = read_spread(sigmas, 0.2);
    CHECK(reading.sigma_max == 0.5);
    CHECK(reading.worst_atom == 1);
    CHECK(reading.atoms_outside == 2);
    CHECK(read_spread({}, 0.2).worst_atom == -1);
    CHECK(read_spread({}, 0.2).atoms_outside == 0);
    const std::vector<double> agreeing = {0, 0};
    CHECK(read_spread(agreeing, 0.2).worst_atom == 0);
    CHECK(read_spread(agreeing, 0.2).atoms_outside == 0);
}

TEST_CASE("what is not a number is worse than every number") {
    const std::vector<double> sigmas = {0.1, std::nan(""), 0.3};
    const WatchReading reading = read_spread(sigmas, 0.2);
    CHECK(reading.atoms_outside == 2);
    CHECK(std::isnan(reading.sigma_max));
    CHECK(reading.worst_atom == 1);
    Watcher watcher({0.2, 5.0, 10});
    CHECK(watcher.must_stop(reading_of(std::nan(""))));
    CHECK(watcher.is_candidate(reading_of(std::nan("")), 0));
}

TEST_CASE("a step is kept if an atom is outside and the last one is long enough ago") {
    Watcher watcher({0.2, {}, 10});
    CHECK_FALSE(watcher.is_candidate(reading_of(0.2), 0));
    CHECK(watcher.is_candidate(reading_of(0.21), 0));
    CHECK(watcher.is_candidate(reading_of(0.1, 1), 0));  // outside for another reason than the error
    watcher.note_candidate(7);
    CHECK_FALSE(watcher.is_candidate(reading_of(9), 16));
    CHECK(watcher.is_candidate(reading_of(9), 17));
    CHECK_FALSE(Watcher({0.2, {}, 10}, 7).is_candidate(reading_of(9), 16));  // of an earlier part of the run
    CHECK(Watcher({0.2, 0.1, 10}).is_candidate(reading_of(0.15), 0));        // it ends the run
}

TEST_CASE("a run stops only if that was asked for") {
    CHECK_FALSE(Watcher({0.2, {}, 10}).must_stop(reading_of(1e9)));
    CHECK_FALSE(Watcher({0.2, 0.5, 10}).must_stop(reading_of(0.5)));
    CHECK(Watcher({0.2, 0.5, 10}).must_stop(reading_of(0.51)));
}

TEST_CASE("rules that make no sense are refused") {
    CHECK_THROWS_AS(Watcher({0, {}, 10}), Error);
    CHECK_THROWS_AS(Watcher({0.2, -1.0, 10}), Error);
    CHECK_THROWS_AS(Watcher({0.2, std::nan(""), 10}), Error);
    CHECK_THROWS_AS(Watcher({0.2, {}, 0}), Error);
}

TEST_CASE("surroundings do not depend on place, direction and order") {
    const Molecule molecule;
    const Molecule other = molecule.elsewhere();
    for (int64_t atom = 0; atom < 5; ++atom) CHECK(molecule.around(atom).are_like(other.around(4 - atom)));
}

TEST_CASE("surroundings differ by elements and by distances beyond the tolerance") {
    const Molecule molecule;
    CHECK_FALSE(molecule.around(0).are_like(molecule.around(3)));
    Molecule changed = molecule;
    changed.numbers[3] = 7;
    CHECK_FALSE(molecule.around(0).are_like(changed.around(0)));
    CHECK_FALSE(changed.around(0).are_like(molecule.around(0)));
    changed = molecule;
    changed.move(1, 0.09, 0, 0);
    CHECK(molecule.around(0).are_like(changed.around(0)));
    changed.move(1, 0.03, 0, 0);
    CHECK_FALSE(molecule.around(0).are_like(changed.around(0)));
    CHECK_FALSE(changed.around(0).are_like(molecule.around(0)));
}

TEST_CASE("a neighbour that leaves changes surroundings as little as it moves") {
    Molecule near, far;
    for (Molecule* one : {&near, &far}) std::fill_n(&one->positions[12], 3, 0.0);
    near.move(4, 0, 4.95, 0);
    far.move(4, 0, 5.02, 0);
    CHECK(near.around(0).are_like(far.around(0)));
    CHECK(far.around(0).are_like(near.around(0)));
    near.move(4, 0, -0.1, 0);
    CHECK_FALSE(near.around(0).are_like(far.around(0)));
    CHECK_FALSE(far.around(0).are_like(near.around(0)));
}

TEST_CASE("surroundings count images, and do not depend on the cell an atom is in") {
    Molecule box, wrapped;
    box.box = wrapped.box = 6;
    wrapped.move(1, 6, -12, 0);
    CHECK(box.around(0).are_like(wrapped.around(0)));
    Molecule open;
    CHECK_FALSE(box.around(0).are_like(open.around(0)));
}
