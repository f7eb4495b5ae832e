// SPDX-License-Identifier: MIT
// Whether the caller's halo names only atoms and rows that exist: what is packed and unpacked relies on it.
#pragma once

#include <array>

#include "engine/domain.h"

namespace mlff {

class HaloCheck {
public:
    // Throws Error{argument}. A halo that has passed is not gone through again while Domain::list_version says that it is the same.
    void check(const Domain& domain);

private:
    std::array<int64_t, 6> passed_{};  // the version and the counts of what passed last; version 0: none has
};

}  // namespace mlff
