// SPDX-License-Identifier: MIT
// Options of backends that are made without a session.
#pragma once

#include "potential/backend_options.h"

namespace mlff::test {

// Mixed precision or fp64, on whatever device the backend is for.
inline BackendOptions backend(bool is_mixed = false, int head = 0, bool exact_radial = false) {
    BackendOptions options;
    options.precision = is_mixed ? Precision::mixed : Precision::fp64;
    options.head = head;
    options.exact_radial = exact_radial;
    return options;
}

}  // namespace mlff::test
