// SPDX-License-Identifier: MIT
// mlff md --all and --replicas: many structures that step together.
#pragma once

#include "md_options.h"

namespace mlff::app {

int run_many_md(const MdOptions& options);  // the exit code

}  // namespace mlff::app
