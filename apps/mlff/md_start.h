// SPDX-License-Identifier: MIT
// What dynamics of one and of many structures share: where they begin, what a restart file must agree with, the log.
#pragma once

#include <string>

#include "dynamics/molecular_dynamics.h"
#include "dynamics/restart.h"
#include "formats/extxyz.h"
#include "md_options.h"

namespace mlff::app {

// Names the file, unless it is an option that is wrong.
Error in_file(const std::string& path, const Error& error);

// The frame of --frame.
Frame read_start(const MdOptions& options);

// `name` of the frame is for errors.
Particles start_particles(const MdOptions& options, const DynamicsOptions& dynamics, const Frame& frame,
                          const std::string& name);

// Throws Error{argument} unless the state belongs to this structure and these options.
void check_restart(const Restart& restart, const MdOptions& options, const Particles& start, const std::string& name);

inline constexpr const char* kMdLogHeader =
    "step,time_fs,temperature_K,potential_eV,kinetic_eV,total_eV,conserved_eV,pressure_bar,volume_A3";
std::string md_log_numbers(const MolecularDynamics& dynamics);  // for these columns

}  // namespace mlff::app
