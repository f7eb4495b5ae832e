// SPDX-License-Identifier: MIT
// Selects the candidates that are within the cutoff now.
#pragma once

#include "core/threads.h"
#include "neighbors/cell_list.h"
#include "neighbors/pair_search.h"

namespace mlff {

// Keeps the order of the pairs.
void select_pairs(const CellList& cells, const PairList& candidates, const Mat3& cell, double cutoff_squared,
                  ThreadTeam& team, PairList& selected);

}  // namespace mlff
