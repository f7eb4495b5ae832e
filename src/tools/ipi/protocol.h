// SPDX-License-Identifier: MIT
// The messages of the i-PI protocol, and their units and orders of numbers. Each begins with a header of 12 characters;
// integers are of 32 bits, numbers of 64, both as the machine has them: server and client are of the same kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/system_view.h"
#include "tools/ipi/connection.h"

namespace mlff::ipi {

// From the server: STATUS, INIT, POSDATA, GETFORCE, EXIT. From the client: NEEDINIT, READY, HAVEDATA, FORCEREADY.
std::string read_header(Connection& connection);  // without the blanks at its end
void write_header(Connection& connection, const std::string& name);

// After INIT: which bead, and what the input of i-PI has for the client.
struct Init {
    int32_t bead = 0;
    std::string text;
};
Init read_init(Connection& connection);

// After POSDATA, in angstrom. `expected_count` atoms are read; Error{system} if the server has another number of them.
struct Positions {
    Mat3 cell{};  // lattice vectors in rows; i-PI has them in columns
    std::vector<double> positions;
};
void read_positions(Connection& connection, int64_t expected_count, Positions& positions);

// FORCEREADY: eV, eV/angstrom, eV. i-PI's virial is -dE/dstrain, as ours.
void write_forces(Connection& connection, double energy, const std::vector<double>& forces, const Mat3& virial);

}  // namespace mlff::ipi
