// SPDX-License-Identifier: MIT
#include "properties/phonons/crystal.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace mlff::phonons {
namespace {

constexpr int64_t kMostAtoms = 100'000;  // of a supercell

// The distance of two places that differ by about a lattice vector.
double distance_between_images(const Mat3& lattice, const Vec3& a, const Vec3& b) {
    Vec3 offset = to_fractional(lattice, {a[0] - b[0], a[1] - b[1], a[2] - b[2]});
    for (double& part : offset) part -= std::round(part);
    const Vec3 vector = to_cartesian(lattice, offset);
    return std::hypot(vector[0], vector[1], vector[2]);
}

}  // namespace

double Crystal::volume() const { return std::abs(determinant(lattice)); }

SystemView Crystal::view() const {
    SystemView system;
    system.atom_count = static_cast<int64_t>(atom_count());
    system.atomic_numbers = atomic_numbers.data();
    system.positions = positions.data();
    system.cell = lattice;
    system.periodic = {true, true, true};
    return system;
}

bool Crystal::has_same_kind(size_t atom, const Crystal& other, size_t other_atom) const {
    return atomic_numbers[atom] == other.atomic_numbers[other_atom] &&
           is_same_mass(masses[atom], other.masses[other_atom]);
}

void Crystal::add_atom(int32_t atomic_number, const Vec3& position, double mass) {
    atomic_numbers.push_back(atomic_number);
    positions.insert(positions.end(), position.begin(), position.end());
    masses.push_back(mass);
}

Vec3 to_fractional(const Mat3& lattice, const Vec3& position) { return to_cartesian(inverse(lattice), position); }

Vec3 to_cartesian(const Mat3& lattice, const Vec3& fractional) {
    Vec3 result{};
    for (size_t k = 0; k < 3; ++k)
        for (size_t i = 0; i < 3; ++i) result[i] += fractional[k] * lattice[k][i];
    return result;
}

bool is_same_mass(double a, double b) {
    constexpr double kRounding = 1e-5;  // isotopes of one element differ by 0.4 % or more
    return std::abs(a - b) <= kRounding * std::max(a, b);
}

Crystal make_crystal(const Particles& particles) {
    const SystemView& environment = particles.environment;
    for (size_t k = 0; k < 3; ++k)
        if (!environment.periodic[k])
            fail(Status::system, "phonons need a crystal that is periodic in all directions; direction ", k + 1,
                 " is not");
    if (particles.atom_count() == 0) fail(Status::system, "phonons need at least one atom");
    if (environment.total_charge != 0 || environment.spin_multiplicity != 1)
        fail(Status::system, "phonons need a cell without charge and spin");
    Crystal crystal;
    crystal.lattice = environment.cell;
    crystal.atomic_numbers = particles.atomic_numbers;
    crystal.positions = particles.positions;
    crystal.masses = particles.masses;
    if (!(crystal.volume() > 1e-3)) fail(Status::system, "the lattice vectors of the cell do not span a volume");
    return crystal;
}

Crystal make_supercell(const Crystal& cell, const std::array<int64_t, 3>& counts) {
    int64_t cell_count = 1;
    for (const int64_t count : counts) {
        if (count < 1) fail(Status::argument, "the supercell has ", count, " cells along a vector, expected 1 or more");
        if (count > kMostAtoms || cell_count > kMostAtoms / count)
            fail(Status::argument, "the supercell is too large, expected at most ", kMostAtoms, " atoms");
        cell_count *= count;
    }
    if (static_cast<int64_t>(cell.atom_count()) > kMostAtoms / cell_count)
        fail(Status::argument, "the supercell is too large, expected at most ", kMostAtoms, " atoms");
    Crystal result;
    for (size_t k = 0; k < 3; ++k)
        for (size_t i = 0; i < 3; ++i) result.lattice[k][i] = static_cast<double>(counts[k]) * cell.lattice[k][i];
    for (size_t atom = 0; atom < cell.atom_count(); ++atom)
        for (int64_t c = 0; c < counts[2]; ++c)
            for (int64_t b = 0; b < counts[1]; ++b)
                for (int64_t a = 0; a < counts[0]; ++a) {
                    Vec3 place = cell.position(atom);
                    const Vec3 shift = to_cartesian(
                        cell.lattice, {static_cast<double>(a), static_cast<double>(b), static_cast<double>(c)});
                    for (size_t i = 0; i < 3; ++i) place[i] += shift[i];
                    result.add_atom(cell.atomic_numbers[atom], place, cell.masses[atom]);
                }
    return result;
}

Crystal cell_of_lattice(const Crystal& crystal, const Mat3& lattice, double tolerance) {
    Crystal result;
    result.lattice = lattice;
    for (size_t atom = 0; atom < crystal.atom_count(); ++atom) {
        bool is_new = true;
        for (size_t other = 0; other < result.atom_count() && is_new; ++other) {
            is_new = distance_between_images(lattice, crystal.position(atom), result.position(other)) > tolerance ||
                     result.atomic_numbers[other] != crystal.atomic_numbers[atom];
            if (!is_new && !result.has_same_kind(other, crystal, atom))
                fail(Status::system, "the primitive lattice takes an atom of ", result.masses[other], " u to atom ",
                     atom, " of the cell, which has ", crystal.masses[atom], " u: expected equal masses");
        }
        if (is_new) result.add_atom(crystal.atomic_numbers[atom], crystal.position(atom), crystal.masses[atom]);
    }
    const double ratio = crystal.volume() / result.volume(),
                 expected = static_cast<double>(crystal.atom_count()) / static_cast<double>(result.atom_count());
    if (!(std::abs(ratio - expected) < 1e-3 * expected))
        fail(Status::system, "the primitive lattice does not divide the cell: ", crystal.atom_count(), " atoms become ",
             result.atom_count(), " in 1/", ratio, " of the volume");
    return result;
}

}  // namespace mlff::phonons
