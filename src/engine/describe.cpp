// SPDX-License-Identifier: MIT
#include "engine/describe.h"

#include "trust/meter.h"

namespace mlff {

JsonValue describe(const Model& model) {
    JsonValue description = model.description(), said;
    if (const TrustMeter* meter = model.trust_meter().get())
        said = JsonValue::Object{{"alarm_error", meter->alarm_error},
                                 {"elements", meter->elements},
                                 {"descriptors", meter->descriptor_count},
                                 {"components", meter->component_count},
                                 {"radius", meter->radius},
                                 {"card", meter->card}};
    description["trust_meter"] = std::move(said);
    return description;
}

}  // namespace mlff
