// SPDX-License-Identifier: MIT
// All that is known about a model, for `mlff model info --json -` and the API.
#pragma once

#include "potential/model.h"

namespace mlff {

// Model::description() with the member "trust_meter": null, or what its trust meter is.
JsonValue describe(const Model& model);

}  // namespace mlff
