// SPDX-License-Identifier: MIT
#include "properties/strained_crystal.h"

#include "dynamics/relaxation_batch.h"

#include <cmath>

#include "core/error.h"
#include "core/matrix3.h"

namespace mlff {

void require_crystal(const Particles& crystal, const char* property) {
    if (crystal.has_fixed_atoms())
        fail(Status::unsupported, property, " beside fixed atoms is not there yet; remove the column move_mask");
    for (size_t k = 0; k < 3; ++k)
        if (!crystal.environment.periodic[k])
            fail(Status::system, property, " needs a crystal that is periodic in all directions; direction ", k + 1,
                 " is not");
    if (crystal.atom_count() == 0) fail(Status::system, property, " needs at least one atom");
    if (const double volume = cell_volume(crystal); !(volume > 0 && std::isfinite(volume)))
        fail(Status::system, property, " needs a cell with a volume; this one has ", volume, " A^3");
}

double cell_volume(const Particles& crystal) { return std::abs(determinant(crystal.environment.cell)); }

Particles deformed(Particles crystal, const Mat3& deformation) {
    transform_vectors(deformation, crystal.positions.data(), crystal.atom_count());
    transform_vectors(deformation, crystal.environment.cell[0].data(), 3);
    return crystal;
}

std::vector<Relaxation> relaxed(Session& session, const std::vector<Particles>& crystals,
                                const RelaxationOptions& options) {
    std::vector<Relaxation> relaxations;
    for (const Particles& crystal : crystals) relaxations.emplace_back(crystal, options);
    relax_together(session, relaxations);
    return relaxations;
}

}  // namespace mlff
