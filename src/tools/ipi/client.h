// SPDX-License-Identifier: MIT
// A client of i-PI: answers the questions of one server until it says EXIT or goes.
#pragma once

#include <functional>

#include "tools/ipi/protocol.h"

namespace mlff::ipi {

struct Answer {
    double energy = 0;           // eV
    std::vector<double> forces;  // [atom][3], eV/angstrom
    Mat3 virial{};               // eV
};
using Evaluate = std::function<void(const Positions&, Answer&)>;

enum class End { exit, closed, stopped };  // the server said EXIT; it has gone without; Stop of the connection said so

// Errors of `evaluate` and of what the server sends are thrown as Error.
End answer_server(Connection& connection, int64_t atom_count, const Evaluate& evaluate);

}  // namespace mlff::ipi
