// SPDX-License-Identifier: MIT
#include "analytic/model.h"
#include "core/error.h"
#include "engine/embedded_models.h"
#include "engine/model_cache.h"
#include "formats/module_container.h"
#include "formats/module_tree.h"
#include "formats/safetensors.h"
#include "gpu/runtime/gpu.h"
#include "mace/model.h"
#include "painn/model.h"
#include "painn/weights/weights.h"
#include "potential/model.h"
#include "python_models/model.h"
#include "python_models/model_name.h"

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

UsableGpus Model::usable_gpus() const { return {gpu_inventory().gpus.size(), gpu_inventory().why_none}; }

namespace {

// nullptr if the file is not one of PaiNN.
std::shared_ptr<const Model> load_painn(const std::string& path) {
    const auto mapped = MappedFile::open(path);
    if (!looks_like_safetensors(mapped->bytes())) return nullptr;
    const Safetensors file = read_safetensors(mapped->bytes(), path);
    return painn::looks_like_painn(file) ? make_painn_model(file, path) : nullptr;
}

std::shared_ptr<const Model> load_self_test_model(const std::string& name) {
    const auto bytes = embedded_self_test_model();
    return make_mace_model({name, "mlff safetensors", unpack_module(read_safetensors(*bytes, name), name), {bytes}});
}

}  // namespace

std::shared_ptr<const Model> load_model(const std::string& name) {
    if (name == "analytic") return make_analytic_model();
    if (name == "builtin") return make_painn_model(read_safetensors(embedded_student(), name), name);
    if (name == "self-test") return load_self_test_model(name);
    if (python::is_python_name(name)) return make_python_model(name);
    const std::string path = find_model_file(name);
    if (auto painn = load_painn(path)) return painn;
    return make_mace_model(open_module_file(path));
}

}  // namespace mlff
