// SPDX-License-Identifier: MIT
// The messages of the i-PI protocol, and the conversion of units and array orders. Each message begins with a header of
// 12 characters. Integers have 32 bits and numbers 64, in native byte order: server and client must have the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/system_view.h"
#include "tools/ipi/connection.h"

namespace mlff::ipi {

// From the server: STATUS, INIT, POSDATA, GETFORCE, EXIT. From the client: NEEDINIT, READY, HAVEDATA, FORCEREADY.
std::string read_header(Connection& connection);  // without trailing blanks
void write_header(Connection& connection, const std::string& name);

// After INIT: the bead index, and the text for the client from i-PI's input.
struct Init {
    int32_t bead = 0;
    std::string text;
};
Init read_init(Connection& connection);

// After POSDATA, in angstrom. Reads `expected_count` atoms; Error{system} if the server sends another number.
struct Positions {
    Mat3 cell{};  // lattice vectors in rows; i-PI sends columns
    std::vector<double> positions;
};
void read_positions(Connection& connection, int64_t expected_count, Positions& positions);

// FORCEREADY: eV, eV/angstrom, eV. i-PI's virial is -dE/dstrain, like ours.
void write_forces(Connection& connection, double energy, const std::vector<double>& forces, const Mat3& virial);

}  // namespace mlff::ipi
