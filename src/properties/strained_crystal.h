// SPDX-License-Identifier: MIT
// Crystals whose cell is strained, and their relaxation: what equations of state and elastic constants share.
#pragma once

#include <vector>

#include "dynamics/relaxation.h"
#include "engine/session.h"

namespace mlff {

// Throws Error{system} unless the crystal has atoms and is periodic in three directions, with a volume. `property`
// begins the sentence: "an equation of state".
void require_crystal(const Particles& crystal, const char* property);

double cell_volume(const Particles& crystal);  // angstrom^3

// Every position and lattice vector x becomes deformation . x.
Particles deformed(Particles crystal, const Mat3& deformation);

// Relaxes copies of a crystal as one batch. With a step limit of 0 they are evaluated and do not move.
std::vector<Relaxation> relaxed(Session& session, const std::vector<Particles>& crystals,
                                const RelaxationOptions& options);

}  // namespace mlff
