// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "dynamics/resident_motion.h"

namespace mlff {

std::unique_ptr<ResidentMotion> make_resident_motion(DeviceStepper&, ThreadTeam&, const DynamicsOptions&,
                                                     const DynamicsNow&, std::span<const double>) {
    fail(Status::unsupported, "this build has no CUDA");
}

}  // namespace mlff
