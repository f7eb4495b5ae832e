// SPDX-License-Identifier: MIT
// Atoms that are to move, from a frame of a file and the command line.
#pragma once

#include <string>

#include "dynamics/particles.h"
#include "formats/extxyz.h"

namespace mlff::app {

// With what the frame has of these columns: masses (u), move_mask (F: the atom is fixed), and velocities (angstrom/fs)
// or, as ASE writes them, momenta. `fixed` are more atoms that do not move: "0,3,10-15". Throws Error{format} for
// columns that make no sense, Error{argument} for indices.
Particles moving_atoms(const Frame& frame, const std::string& fixed);
bool has_velocities(const Frame& frame);

}  // namespace mlff::app
