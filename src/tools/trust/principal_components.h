// SPDX-License-Identifier: MIT
// The directions in which numbers vary most.
#pragma once

#include <vector>

namespace mlff::trust {

struct PrincipalComponents {
    std::vector<double> directions;  // [component][width], of length 1 and orthogonal
    std::vector<double> variances;   // [component], descending
    double rest_variance = 0;        // mean of the squared length of what the components leave out
};

// Of rows [row][width] whose mean is 0. At most `most` components; fewer where rows do not vary in so many directions.
PrincipalComponents principal_components(const std::vector<float>& rows, int width, int most);

}  // namespace mlff::trust
