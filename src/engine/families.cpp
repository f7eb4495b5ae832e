// SPDX-License-Identifier: MIT
#include "engine/families.h"

#include "analytic/model.h"
#include "core/mapped_file.h"
#include "dispersion/model.h"
#include "engine/embedded_models.h"
#include "formats/module_container.h"
#include "formats/module_tree.h"
#include "formats/safetensors.h"
#include "mace/model.h"
#include "nequip/model.h"
#include "painn/model.h"
#include "python_models/model.h"
#include "python_models/model_name.h"
#include "trust/meter.h"
#include "zbl/model.h"

namespace mlff {
namespace {

bool has_analytic_name(const std::string& name) { return name == "analytic"; }
std::shared_ptr<Model> make_analytic(const std::string&) { return make_analytic_model(); }

bool has_zbl_name(const std::string& name) { return name == "zbl"; }
std::shared_ptr<Model> make_zbl(const std::string&) { return make_zbl_model(); }

bool has_painn_name(const std::string& name) { return name == "builtin"; }
std::shared_ptr<Model> make_embedded_student(const std::string& name) {
    auto model = make_painn_model(read_safetensors(embedded_student(), name), name);
    const std::string meter = name + " (trust meter)";
    model->set_trust_meter(
        std::make_shared<const TrustMeter>(read_trust_meter(read_safetensors(embedded_student_trust(), meter), meter)));
    return model;
}
std::shared_ptr<Model> open_painn(const std::string& path) {
    const auto mapped = MappedFile::open(path);
    if (!looks_like_safetensors(mapped->bytes())) return nullptr;
    const Safetensors file = read_safetensors(mapped->bytes(), path);
    return is_painn_file(file) ? make_painn_model(file, path) : nullptr;
}

bool has_mace_name(const std::string& name) { return name == "self-test"; }
std::shared_ptr<Model> make_self_test_model(const std::string& name) {
    const auto bytes = embedded_self_test_model();
    return make_mace_model({name, "mlff safetensors", unpack_module(read_safetensors(*bytes, name), name), {bytes}});
}
// MACE reads what is left, and says what is wrong with it.
std::shared_ptr<Model> open_network(const std::string& path) {
    ModuleFile file = open_module_file(path);
    return is_nequip_file(file) ? make_nequip_model(std::move(file)) : make_mace_model(std::move(file));
}

// clang-format off
constexpr ModelFamily kFamilies[] = {
    {has_analytic_name,      make_analytic,         nullptr},
    {has_zbl_name,           make_zbl,              nullptr},
    {is_dispersion_name,     make_dispersion_model, nullptr},
    {python::is_python_name, make_python_model,     nullptr},
    {has_painn_name,         make_embedded_student, open_painn},
    {has_mace_name,          make_self_test_model,  open_network},
};
// clang-format on

}  // namespace

std::span<const ModelFamily> model_families() { return kFamilies; }

}  // namespace mlff
