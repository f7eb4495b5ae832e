// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "engine/analytic_model.h"
#include "engine/mace_model.h"
#include "engine/model.h"
#include "formats/module_tree.h"

namespace mlff {

std::string_view precision_name(Precision precision) {
    switch (precision) {
        case Precision::automatic: return "auto";
        case Precision::mixed: return "mixed";
        case Precision::fp64: return "fp64";
        case Precision::fp32: return "fp32";
        case Precision::fast: return "fast";
    }
    return "unknown";
}

std::shared_ptr<const Model> load_model(const std::string& name) {
    if (name == "builtin") return make_analytic_model();
    if (name.substr(0, 7) == "python:")
        fail(Status::unsupported, "model '", name, "': Python calculators are not part of this version of mlff");
    return make_mace_model(open_module_file(name));
}

}  // namespace mlff
