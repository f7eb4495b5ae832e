// SPDX-License-Identifier: MIT
// Reads arbitrary bytes as phonopy's files: the displacements in YAML, and the forces. Accepted ones have arrays of the
// right sizes, and are the same after writing and reading.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "properties/phonons/phonopy_files.h"

namespace {

using namespace mlff::phonons;

void require(bool condition) {
    if (!condition) std::abort();
}

void check_task(const PhonopyTask& task) {
    for (const Crystal* crystal : {&task.unit_cell, &task.supercell}) {
        require(crystal->atom_count() > 0 && crystal->positions.size() == 3 * crystal->atom_count());
        require(crystal->masses.size() == crystal->atom_count());
        for (const double value : crystal->positions) require(std::isfinite(value));
    }
    for (const mlff::Displacement& displacement : task.displacements)
        require(displacement.atom >= 0 && static_cast<size_t>(displacement.atom) < task.supercell.atom_count());
    try {  // the cells may be of different crystals, but then it says so
        CellMap(task.unit_cell, task.supercell, 1e-4);
    } catch (const mlff::Error&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        check_task(parse_phonopy_task(text, "fuzz"));
    } catch (const mlff::Error&) {}
    try {
        const auto displaced = parse_force_sets(text, 2, "fuzz");
        require(!displaced.empty());
        for (const mlff::DisplacedForces& entry : displaced) require(entry.forces.size() == 6);
        parse_force_sets(force_sets_text(displaced, 2), 2, "fuzz");
    } catch (const mlff::Error&) {}
    return 0;
}
