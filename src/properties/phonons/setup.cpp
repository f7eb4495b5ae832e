// SPDX-License-Identifier: MIT
#include "properties/phonons/setup.h"

#include <algorithm>
#include <cmath>

namespace mlff::phonons {
namespace {

std::vector<FractionalOperation> operations_that_keep(const CellMap& map, const Crystal& primitive,
                                                      const SetupOptions& options, Alike alike) {
    if (!options.uses_symmetry) return only_identity();
    std::vector<FractionalOperation> operations = find_operations(primitive, options.tolerance, alike);
    std::erase_if(operations,
                  [&](const FractionalOperation& operation) { return !map.is_kept_by(operation.rotation); });
    return operations;
}

}  // namespace

Setup make_setup(const Crystal& unit_cell, const Crystal& supercell, const SetupOptions& options) {
    const double nearby = 10 * options.tolerance;  // atoms may be moved by the tolerance more than once
    std::optional<SpaceGroup> space_group;
    if (options.uses_symmetry) space_group = find_space_group(unit_cell, options.tolerance);
    Crystal primitive = unit_cell;
    if (options.primitive_lattice)
        primitive = cell_of_lattice(unit_cell, *options.primitive_lattice, nearby);
    else if (options.finds_primitive_cell && space_group)
        primitive = cell_of_lattice(unit_cell, space_group->primitive_lattice, nearby);
    CellMap map(primitive, supercell, nearby);
    std::vector<FractionalOperation> operations = operations_that_keep(map, primitive, options, Alike::isotopes);
    SymmetryGroup group(
        supercell.atom_count(),
        operations_of_supercell(primitive, map, operations_that_keep(map, primitive, options, Alike::elements),
                                options.tolerance));
    return {unit_cell,      std::move(primitive), supercell, std::move(space_group), std::move(operations),
            std::move(map), std::move(group)};
}

bool Setup::has_mirrors() const {
    return std::any_of(group.operations().begin(), group.operations().end(),
                       [](const SymmetryOperation& operation) { return determinant(operation.rotation) < 0; });
}

std::vector<DisplacedForces> forces_of(Session& session, const Crystal& supercell,
                                       std::span<const Displacement> displacements,
                                       const std::function<bool(size_t)>& goes_on) {
    // On a GPU many at once, on a CPU few, so that progress can be seen.
    const int64_t atoms_at_once = session.device().is_gpu() ? 65'536 : 1'024,
                  at_once = std::max<int64_t>(1, atoms_at_once / static_cast<int64_t>(supercell.atom_count()));
    std::vector<DisplacedForces> displaced;
    std::vector<Crystal> moved;
    std::vector<SystemView> systems;
    std::vector<Results> results;
    while (displaced.size() < displacements.size() && goes_on(displaced.size())) {
        const size_t begin = displaced.size(),
                     end = std::min(displacements.size(), begin + static_cast<size_t>(at_once));
        moved.assign(end - begin, supercell);
        systems.clear();
        results.clear();
        for (size_t index = begin; index < end; ++index) {
            const Displacement& displacement = displacements[index];
            Crystal& crystal = moved[index - begin];
            for (size_t i = 0; i < 3; ++i)
                crystal.positions[3 * static_cast<size_t>(displacement.atom) + i] += displacement.vector[i];
            displaced.push_back({displacement, std::vector<double>(3 * supercell.atom_count())});
            systems.push_back(crystal.view());
        }
        for (size_t index = begin; index < end; ++index) {
            Results wanted;
            wanted.outputs.forces = displaced[index].forces.data();
            results.push_back(wanted);
        }
        session.evaluate(systems, results);
    }
    return displaced;
}

RestState rest_state(Session& session, const Crystal& cell) {
    std::vector<double> forces(3 * cell.atom_count());
    Mat3 virial{};
    const SystemView system = cell.view();
    const bool has_virial = session.model().gives_virial(system);
    Results results;
    results.outputs.forces = forces.data();
    if (has_virial) results.outputs.virial = virial[0].data();
    session.evaluate({&system, 1}, {&results, 1});
    RestState state;
    for (size_t i = 0; i < forces.size(); i += 3)
        state.largest_force = std::max(state.largest_force, std::hypot(forces[i], forces[i + 1], forces[i + 2]));
    if (has_virial) state.pressure = (virial[0][0] + virial[1][1] + virial[2][2]) / (3 * cell.volume());
    return state;
}

}  // namespace mlff::phonons
