// SPDX-License-Identifier: MIT
// Whether the caller's list of neighbours and halo name only atoms and rows that exist, and pairs from both ends: what
// computes, packs and unpacks relies on it.
#pragma once

#include <array>

#include "potential/domain.h"

namespace mlff {

class DomainCheck {
public:
    // Throws Error{argument}. What has passed is not gone through again while Domain::list_version says that it is the
    // same.
    void check(const Domain& domain);

private:
    std::array<int64_t, 6> passed_{};  // the version and the counts of what passed last; version 0: none has
};

}  // namespace mlff
