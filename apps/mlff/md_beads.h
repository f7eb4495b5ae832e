// SPDX-License-Identifier: MIT
// mlff md --beads: path-integral dynamics of one structure.
#pragma once

#include "md_options.h"

namespace mlff::app {

int run_beads_md(const MdOptions& options);  // the exit code

}  // namespace mlff::app
