// SPDX-License-Identifier: MIT
// Checks the caller's list of neighbours and halo: all atoms and rows must exist, and pairs of own atoms must be listed
// from both ends. The code that computes, packs and unpacks relies on it.
#pragma once

#include <array>

#include "potential/domain.h"

namespace mlff {

class DomainCheck {
public:
    // Throws Error{argument}. Lists are not checked again while Domain::list_version stays the same.
    void check(const Domain& domain);

private:
    std::array<int64_t, 6> passed_{};  // version and counts of the last domain that passed; version 0: none
};

}  // namespace mlff
