// SPDX-License-Identifier: MIT
#include "equivariant/edge_messages.h"

#include <algorithm>

namespace mlff {

int EdgeModel::element_of(int atomic_number) const {
    const auto found = std::find(atomic_numbers.begin(), atomic_numbers.end(), atomic_number);
    return found == atomic_numbers.end() ? -1 : static_cast<int>(found - atomic_numbers.begin());
}

}  // namespace mlff
