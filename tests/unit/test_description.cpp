// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "byte_writer.h"
#include "capture_binding.h"
#include "close.h"
#include "core/error.h"
#include "mace/weights/description.h"
#include "model_files.h"

using namespace mlff;
using namespace mlff::test;
using Json = nlohmann::json;
using mace::Description;

namespace {

std::string scalars_of(const std::string& irreps) { return irreps.substr(0, irreps.find('+')); }

void check_architecture(const Golden& golden, const Description& found) {
    const Json& expected = golden.facts["architecture"];
    const auto text = [&](const char* key) { return expected.at(key).get<std::string>(); };
    const auto layers = expected["num_interactions"].get<size_t>();
    CHECK(found.class_name == text("cls"));
    CHECK(found.is_mace);
    CHECK(found.elements == expected["atomic_numbers"].get<std::vector<int>>());
    CHECK(is_close(found.cutoff, golden.facts["r_max_as_stored"].get<double>(), 0));
    CHECK(is_close(found.cutoff, expected["r_max"].get<double>(), 1e-6));
    CHECK(found.max_degree == expected["max_ell"].get<int>());
    CHECK(found.heads.size() == expected["heads"].size());
    if (golden.facts["reference"].dump().find("0.3.6") == std::string::npos)
        CHECK(Json(found.heads) == expected["heads"]);
    CHECK(dtype_name(found.dtype) == text("dtype"));
    CHECK(found.has_pair_repulsion == expected["pair_repulsion"].get<bool>());
    const std::string readout = found.layers.empty() ? "" : found.layers.back().readout;
    const bool has_gate = readout == "NonLinearReadoutBlock" || readout == "NonLinearBiasReadoutBlock";
    CHECK(found.gate == (expected["gate"].is_null() || !has_gate ? "" : text("gate")));

    // mace-torch 0.3.16 keeps only the scalars of the last layer, hence of the only one.
    CHECK(found.hidden_irreps == (layers == 1 ? scalars_of(text("hidden")) : text("hidden")));
    REQUIRE(found.layers.size() == layers);
    for (size_t i = 0; i < layers; ++i) {
        CAPTURE(i);
        CHECK(found.layers[i].interaction == text(i == 0 ? "interaction_first" : "interaction"));
        const Json& correlation = expected["correlation"];
        CHECK(found.layers[i].correlation == (correlation.is_array() ? correlation[i] : correlation).get<int>());
        REQUIRE(found.layers[i].average_neighbor_count.has_value());
        CHECK(is_close(*found.layers[i].average_neighbor_count, expected["avg_num_neighbors"].get<double>(), 1e-6));
        CHECK(!found.layers[i].message_irreps.empty());
        const bool is_read = !expected.value("use_last_readout_only", false) || i + 1 == layers;
        CHECK(found.layers[i].readout.empty() == !is_read);
    }
    if (layers > 1 && !expected.value("keep_last_layer_irreps", false) && text("cls") != "EnergyDipolesMACE")
        CHECK(found.layers.back().output_irreps == scalars_of(text("hidden")));

    const std::string radial = text("radial_type");
    CHECK(found.radial.basis == (radial == "bessel"     ? "BesselBasis"
                                 : radial == "gaussian" ? "GaussianBasis"
                                                        : "ChebychevBasis"));
    CHECK(found.radial.basis_count == expected["num_bessel"].get<int>());
    const std::string transform = text("distance_transform");
    CHECK(found.radial.transform == (transform == "None" ? "" : transform + "Transform"));
    REQUIRE(found.radial.cutoff_exponent.has_value());
    CHECK(is_close(*found.radial.cutoff_exponent, expected["p"].get<double>(), 0));
    CHECK(found.radial.applies_cutoff_to_basis == expected["apply_cutoff"].get<bool>());
    CHECK(found.radial.hidden_widths == expected["radial_MLP"].get<std::vector<int>>());

    std::vector<std::string> extra_inputs;
    const Json specs = expected.value("embedding_specs", Json::object());
    for (const auto& [name, spec] : specs.items()) extra_inputs.push_back(name);
    CHECK(found.extra_inputs == extra_inputs);
}

}  // namespace

TEST_CASE("description: every golden is described as it was built") {
    REQUIRE(!goldens().empty());
    MESSAGE("goldens: " << names_of_goldens());
    for (const auto& [name, golden] : goldens()) {
        if (golden.container() == "state_dict") continue;
        CAPTURE_BINDING(name);
        const ModuleFile file = open_module_file(golden.model_path);
        const Description found = mace::describe(file.root);
        check_architecture(golden, found);
        CHECK(found.tensor_layout == (golden.container().substr(0, 4) == "cueq" ? "cuequivariance" : "e3nn"));
        CHECK(found.wrapper.empty() == (golden.container().substr(0, 6) != "lammps"));
        CHECK(found.fixed_head.has_value() == !found.wrapper.empty());
        CHECK(found.parameter_count > 100);
        CHECK(found.atomic_energies.size() == found.heads.size());
        for (const auto& row : found.atomic_energies) CHECK(row.size() == found.elements.size());
        CHECK(found.scale.empty() == (found.class_name != "ScaleShiftMACE"));
        CHECK(found.shift.size() == found.scale.size());
    }
}

TEST_CASE("description: modules that are no MACE, or not quite") {
    Module other;
    other.class_path = "torch.nn.Linear";
    const Description nothing = mace::describe(other);
    CHECK(!nothing.is_mace);
    CHECK(nothing.elements.empty());
    CHECK(nothing.layers.empty());
    CHECK(nothing.heads == std::vector<std::string>{"Default"});

    Module odd;
    odd.class_path = "mace.modules.models.MACE";
    odd.attributes =
        JsonValue::Object{{"atomic_numbers", JsonValue::Array{1, INT64_MIN, UINT64_MAX, 1.5, "H", nullptr, 8}},
                          {"r_max", "five"},
                          {"heads", JsonValue::Array{1, nullptr, "a"}}};
    Module embedding;
    embedding.attributes = JsonValue::Object{{"out_dim", 1e300}, {"apply_cutoff", 3}};
    odd.children.emplace_back("radial_embedding", embedding);
    odd.children.emplace_back("interactions", Module{});
    odd.children.emplace_back("readouts", Module{});
    const Description found = mace::describe(odd);
    CHECK(found.is_mace);
    CHECK(found.elements == std::vector<int>{1, 8});
    CHECK(found.cutoff == 0);
    CHECK(found.heads == std::vector<std::string>{"a"});
    CHECK(found.radial.basis_count == 0);
    CHECK(found.radial.applies_cutoff_to_basis);

    const std::string storage = little_endian(119, 8) + little_endian(1, 8);
    Module wrong = odd;
    wrong.tensors.emplace_back("atomic_numbers", make_tensor(DType::int64, {2}, {1}, 0, as_bytes(storage), "z"));
    CHECK_THROWS_AS(mace::describe(wrong), Error);
    wrong = odd;
    wrong.attributes["atomic_numbers"] = JsonValue::Array{0};
    CHECK_THROWS_AS(mace::describe(wrong), Error);
}

TEST_CASE("description: a wrapper without a model") {
    Module wrapper;
    wrapper.class_path = "mace.calculators.lammps_mace.LAMMPS_MACE";
    CHECK(&mace::unwrap(wrapper) == &wrapper);
    CHECK(!mace::describe(wrapper).is_mace);
}
