// SPDX-License-Identifier: MIT
#include "moving_atoms.h"

#include <charconv>
#include <cmath>
#include <sstream>

#include "core/error.h"
#include "dynamics/units.h"

namespace mlff::app {
namespace {

// The numbers of a column, which must be `width` wide and finite; nullptr if there is no such column.
const std::vector<double>* column_numbers(const Frame& frame, const char* name, int64_t width) {
    const AtomColumn* column = frame.find_column(name);
    if (!column) return nullptr;
    const auto* numbers = std::get_if<std::vector<double>>(&column->values);
    if (!numbers || column->width != width)
        fail(Status::format, "the column ", name, " must have ", width, " real number", width > 1 ? "s" : "",
             " for each atom");
    for (size_t i = 0; i < numbers->size(); ++i)
        if (!std::isfinite((*numbers)[i]))
            fail(Status::format, "the column ", name, " of atom ", i / static_cast<size_t>(width), " is not finite");
    return numbers;
}

void set_velocities(Particles& particles, const Frame& frame) {
    if (const auto* velocities = column_numbers(frame, "velocities", 3)) {
        particles.velocities = *velocities;
    } else if (const auto* momenta = column_numbers(frame, "momenta", 3)) {
        // ASE's unit of time is angstrom (u/eV)^(1/2).
        for (size_t i = 0; i < momenta->size(); ++i)
            particles.velocities[i] = (*momenta)[i] / particles.masses[i / 3] * std::sqrt(kAccelerationUnit);
    }
}

void set_fixed_atoms(Particles& particles, const Frame& frame) {
    const AtomColumn* column = frame.find_column("move_mask");
    if (!column) return;
    if (column->width != 1)
        fail(Status::format, "the column move_mask has ", column->width,
             " values for each atom, expected 1: an atom is fixed in all directions or in none");
    particles.is_fixed.assign(particles.atom_count(), 0);
    for (size_t atom = 0; atom < particles.atom_count(); ++atom) {
        if (const auto* flags = std::get_if<std::vector<bool>>(&column->values))
            particles.is_fixed[atom] = !(*flags)[atom];
        else if (const auto* numbers = std::get_if<std::vector<int64_t>>(&column->values);
                 numbers && ((*numbers)[atom] == 0 || (*numbers)[atom] == 1))
            particles.is_fixed[atom] = (*numbers)[atom] == 0;
        else
            fail(Status::format, "the column move_mask of atom ", atom, " must be T, F, 1 or 0");
    }
}

size_t atom_index(const std::string& text, size_t atom_count) {
    size_t index = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, index);
    if (parsed.ec != std::errc() || parsed.ptr != end)
        fail(Status::argument, "--fix: '", text, "' is not an atom index; expected for example 0,3,10-15");
    if (index >= atom_count)
        fail(Status::argument, "--fix: there is no atom ", index, "; the last of the ", atom_count, " atoms is ",
             static_cast<int64_t>(atom_count) - 1);
    return index;
}

void fix_atoms(Particles& particles, const std::string& fixed) {
    if (fixed.empty()) return;
    particles.is_fixed.resize(particles.atom_count(), 0);
    std::istringstream parts(fixed);
    for (std::string part; std::getline(parts, part, ',');) {
        const size_t dash = part.find('-');
        const size_t first = atom_index(part.substr(0, dash), particles.atom_count());
        const size_t last =
            dash == std::string::npos ? first : atom_index(part.substr(dash + 1), particles.atom_count());
        if (first > last) fail(Status::argument, "--fix: the range ", part, " ends before it begins");
        for (size_t atom = first; atom <= last; ++atom) particles.is_fixed[atom] = 1;
    }
}

}  // namespace

bool has_velocities(const Frame& frame) { return frame.find_column("velocities") || frame.find_column("momenta"); }

Particles moving_atoms(const Frame& frame, const std::string& fixed) {
    Particles particles(frame.view());
    if (const auto* masses = column_numbers(frame, "masses", 1)) {
        for (size_t atom = 0; atom < masses->size(); ++atom)
            if (!((*masses)[atom] > 0))
                fail(Status::format, "the mass of atom ", atom, " is ", (*masses)[atom], " u, expected more than 0");
        particles.masses = *masses;
    }
    set_velocities(particles, frame);
    set_fixed_atoms(particles, frame);
    fix_atoms(particles, fixed);
    for (size_t i = 0; i < particles.velocities.size(); ++i)
        if (!particles.moves(i / 3)) particles.velocities[i] = 0;
    return particles;
}

}  // namespace mlff::app
