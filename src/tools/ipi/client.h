// SPDX-License-Identifier: MIT
// An i-PI client: answers the requests of one server until it sends EXIT or closes the connection.
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

enum class End {
    exit,
    closed,
    stopped
};  // server sent EXIT; server closed the connection; the connection's Stop returned true

// Errors from `evaluate` and from invalid messages are thrown as Error.
End answer_server(Connection& connection, int64_t atom_count, const Evaluate& evaluate);

}  // namespace mlff::ipi
