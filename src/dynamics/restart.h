// SPDX-License-Identifier: MIT
// Restart files: the state of a dynamics run as a safetensors file, with metadata that identify the run.
//
//   __metadata__  format = "mlff-dynamics", version = "1", step, and the caller's entries, whose names begin with
//   "run." tensors       atomic_numbers I32 [n], is_fixed U8 [n], periodic U8 [3];
//                 F64: masses [n], positions, velocities, searched_positions [n, 3], cell, searched_cell [3, 3],
//                 thermostat [any], scalars [4] = potential energy, heat, total charge, spin multiplicity
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dynamics/molecular_dynamics.h"
#include "formats/safetensors.h"

namespace mlff {

struct Restart {
    DynamicsState state;
    std::map<std::string, std::string> run;  // the caller's entries, without "run."
};

// The file appears under its name only when it is complete. Throws Error{file}.
void write_restart(const std::string& path, const Restart& restart);

// Throws Error{file | format} that names the file and the fault.
Restart read_restart(const std::string& path);
Restart parse_restart(const Safetensors& contents, const std::string& name_for_errors);

// Of many systems that step together: one file, so that all are at the same step.
//
//   __metadata__  format = "mlff-many-dynamics", version = "1", count, the caller's entries, whose names begin with
//   "run.", and I/KEY for each KEY of the restart file of system I, or I/ended. tensors  I/NAME likewise
struct ManyRestart {
    std::vector<Restart> members;
    std::vector<std::string> ended;          // [member]: why it left, and it has no state then; "" = it goes on
    std::map<std::string, std::string> run;  // the caller's entries, without "run."
};

// Each system has 11 tensors, and a safetensors file at most 100,000.
constexpr size_t kMostSystemsOfRestart = 9090;

// Throws Error{argument} for more systems than kMostSystemsOfRestart, and as write_restart.
void write_many_restart(const std::string& path, const ManyRestart& restart);
ManyRestart read_many_restart(const std::string& path);
ManyRestart parse_many_restart(const Safetensors& contents, const std::string& name_for_errors);

}  // namespace mlff
