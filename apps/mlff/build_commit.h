// SPDX-License-Identifier: MIT
// What this program was built from.
#pragma once

#include <string>

namespace mlff::app {

std::string
build_commit();  // of git, with "+" after it if files were changed; "" if it was not known when this was built

}  // namespace mlff::app
