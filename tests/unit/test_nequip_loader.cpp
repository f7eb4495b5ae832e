// SPDX-License-Identifier: MIT
// Files of SevenNet and Nequix: what is loaded is what the packages compute with, what is not implemented is refused by
// name, and no file does more than throw an Error.
#include <doctest/doctest.h>

#include <functional>
#include <random>
#include <set>

#include "close.h"
#include "core/error.h"
#include "equivariant/wigner.h"
#include "formats/module_container.h"
#include "formats/nqx.h"
#include "model_files.h"
#include "nequip/weights/loaders.h"
#include "test_nequip_support.h"

using namespace nequip_test;
using mlff::Error;
using mlff::Irrep;
using mlff::IrrepBlock;
using mlff::Irreps;
using mlff::JsonValue;
using mlff::Module;
using mlff::ModuleFile;
using mlff::Status;
using mlff::nequip::Layer;
using mlff::nequip::Weights;

namespace {

const Golden& golden(const std::string& name) { return goldens().at(name); }

std::string text_of(const Irrep& irrep) { return std::to_string(irrep.degree) + (irrep.parity > 0 ? "e" : "o"); }

// "x1(1) Y2 -> 1o columns 36:42", as the goldens write a path
std::string path_text(const mlff::Convolution& convolution, const mlff::Convolution::Path& path) {
    const IrrepBlock& in = convolution.in[path.in_block];
    return mlff::concat("x", path.in_block, "(", in.irrep.degree, ") Y", path.degree, " -> ",
                        text_of(convolution.out[path.out_block].irrep), " columns ", path.weight_offset, ":",
                        path.weight_offset + in.multiplicity);
}

Irreps parsed(const nlohmann::json& text) { return Irreps::parse(text.get<std::string>()); }

// The paths of a golden whose messages are read, and the largest column of all.
std::pair<std::vector<std::string>, int> derived_paths(const nlohmann::json& derived) {
    const Irreps gate = parsed(derived["irreps_gate_in"]);
    std::vector<std::string> kept;
    int columns = 0;
    for (const auto& item : derived["paths"]) {
        const auto text = item.get<std::string>();
        const size_t arrow = text.find("-> ") + 3;
        columns = std::max(columns, std::stoi(text.substr(text.rfind(':') + 1)));
        const Irrep irrep = Irreps::parse(text.substr(arrow, text.find(' ', arrow) - arrow))[0].irrep;
        if (gate.copies_of(irrep) > 0) kept.push_back(text);
    }
    return {kept, columns};
}

std::string refusal(const Module& root) {
    try {
        mlff::nequip::load_weights(root, 0);
        return {};
    } catch (const Error& error) {
        CHECK((error.status() == Status::format || error.status() == Status::unsupported));
        return error.what();
    }
}

Module& part(Module& root, const std::string& dotted) { return const_cast<Module&>(root.at(dotted)); }

// A tensor with other numbers, which live in `memory`.
void replace_tensor(Module& owner, const std::string& name, std::vector<double> numbers,
                    const std::vector<int64_t>& shape, std::vector<std::unique_ptr<std::vector<double>>>& memory) {
    memory.push_back(std::make_unique<std::vector<double>>(std::move(numbers)));
    const mlff::Tensor tensor = mlff::make_tensor(mlff::DType::float64, shape, mlff::row_major_strides(shape), 0,
                                                  std::as_bytes(std::span(*memory.back())), "test");
    for (auto& [known, old] : owner.tensors)
        if (known == name) old = tensor;
}

std::vector<double> all_numbers(const Weights& weights) {
    std::vector<double> all = weights.first_features;
    const auto add = [&](const std::vector<double>& more) { all.insert(all.end(), more.begin(), more.end()); };
    const auto add_linear = [&](const mlff::Linear& linear) {
        for (const auto& path : linear.paths) add(path.weight);
        add(linear.bias);
    };
    for (const Layer& layer : weights.layers) {
        add_linear(layer.up);
        add_linear(layer.message);
        add_linear(layer.self_connection);
        for (const auto& dense : layer.radial_network.layers) add(dense.weight);
        for (const auto& path : layer.convolution.paths)
            for (const auto& coupling : path.couplings) all.push_back(coupling.value);
        if (layer.norm) add(layer.norm->scale);
    }
    for (const auto& dense : weights.readout.layers) add(dense.weight);
    add(weights.scale);
    add(weights.shift);
    add(weights.radial.parameters);
    return all;
}

}  // namespace

TEST_CASE("nequip loader: the goldens of the repository are here") {
    for (const char* name :
         {"p08_bias_fcn_readout", "p10_three_modals_all_flags", "p11_v093_old_signs_f32", "p12_v093_names_of_22may_f32",
          "p14_cueq_flag_f32", "p15_other_activations", "n02_indexed_skip_no_norm", "n03_lmax1_two_layers"})
        CHECK(goldens().contains(name));
}

TEST_CASE("nequip loader: descriptions say what the packages say") {
    for (const auto& [name, golden] : goldens()) {
        if (!golden.is_readable()) continue;
        CAPTURE(name);
        const ModuleFile file = mlff::open_module_file(golden.model_path);
        CHECK(file.container == (golden.is_nequix() ? "Nequix file" : "SevenNet checkpoint"));
        REQUIRE(mlff::nequip::is_nequip_module(file.root));
        const mlff::nequip::Description found = mlff::nequip::describe(file.root);
        const nlohmann::json& facts = golden.facts["architecture"];
        auto elements = facts["atomic_numbers"].get<std::vector<int>>();
        std::erase(elements, 0);  // stands for no element
        CHECK(found.elements == elements);
        CHECK(found.cutoff == facts["cutoff"].get<double>());
        CHECK(found.dtype == (facts["dtype"] == "float64" ? mlff::DType::float64 : mlff::DType::float32));
        CHECK(found.class_name == (golden.is_nequix() ? "Nequix" : "SevenNet"));
        auto heads = facts["heads"].get<std::vector<std::string>>();
        if (heads.empty()) heads = {"Default"};
        CHECK(found.heads == heads);
        CHECK(found.parameter_count > 0);
        if (golden.is_nequix()) {
            CHECK(found.cutoff_function == mlff::concat("polynomial ", facts["radial_polynomial_p"].get<double>()));
            CHECK(found.layer_irreps.size() == facts["n_layers"].get<size_t>() + 1);
            CHECK(found.basis_count == facts["radial_basis_size"].get<int>());
            continue;
        }
        CHECK(found.version == facts["version"].get<std::string>());
        CHECK(found.is_parity == facts["is_parity"].get<bool>());
        CHECK(found.hidden_widths == facts["weight_nn_hidden_neurons"].get<std::vector<int>>());
        CHECK(found.basis_count == facts["radial_basis"]["bessel_basis_num"].get<int>());
        const nlohmann::json& cutoff = facts["cutoff_function"];
        CHECK(found.cutoff_function == (cutoff["cutoff_function_name"] == "XPLOR"
                                            ? mlff::concat("XPLOR from ", cutoff["cutoff_on"].get<double>())
                                            : mlff::concat("polynomial ", cutoff["poly_cut_p_value"].get<double>())));
        const nlohmann::json& connection = facts["self_connection_type"];
        const auto layer_count = facts["num_convolution_layer"].get<size_t>();
        CHECK(found.self_connections == (connection.is_array()
                                             ? connection.get<std::vector<std::string>>()
                                             : std::vector(layer_count, connection.get<std::string>())));
        REQUIRE(found.layer_irreps.size() == layer_count + 1);
        CHECK(found.layer_irreps[0] == golden.facts["derived_layers"][0]["irreps_x"].get<std::string>());
        for (size_t t = 0; t < layer_count; ++t)
            CHECK(found.layer_irreps[t + 1] == golden.facts["derived_layers"][t]["irreps_out"].get<std::string>());
    }
}

TEST_CASE("nequip loader: irreps, paths and columns are those that the packages derive") {
    for (const auto& [name, golden] : goldens()) {
        if (!golden.is_readable() || golden.is_nequix()) continue;
        CAPTURE(name);
        const Weights weights = load(golden);
        const nlohmann::json& derived = golden.facts["derived_layers"];
        REQUIRE(weights.layers.size() == derived.size());
        int descriptor_count = 0;
        for (size_t t = 0; t < derived.size(); ++t) {
            CAPTURE(t);
            const Layer& layer = weights.layers[t];
            CHECK(layer.up.in.text() == derived[t]["irreps_x"].get<std::string>());
            CHECK(layer.convolution.in.text() == layer.up.out.text());
            CHECK(layer.gate.out.text() == derived[t]["irreps_out"].get<std::string>());
            CHECK(mlff::nequip::sorted_gate_input(layer.gate).text() ==
                  derived[t]["irreps_gate_in"].get<std::string>());
            CHECK(layer.message.in.same_layout(layer.convolution.out));
            CHECK(layer.message.out.text() == layer.gate.in.text());
            CHECK(layer.self_connection.out.text() == layer.gate.in.text());
            const auto [paths, columns] = derived_paths(derived[t]);
            CHECK(layer.convolution.weight_count == columns);
            CHECK(layer.radial_network.out_width() == columns);
            REQUIRE(layer.convolution.paths.size() == paths.size());
            for (size_t k = 0; k < paths.size(); ++k)
                CHECK(path_text(layer.convolution, layer.convolution.paths[k]) == paths[k]);
            descriptor_count += parsed(derived[t]["irreps_out"]).copies_of({0, 1});
        }
        CHECK(weights.descriptor_count() == descriptor_count);
    }
}

TEST_CASE("nequip loader: energies from the weights are those of the packages") {
    size_t compared = 0;
    for (const auto& [name, golden] : goldens()) {
        if (!golden.is_readable()) continue;
        CAPTURE(name);
        std::map<int, Weights> by_head;
        for (const auto& record : golden.facts["systems"]) {
            if (!record["outputs"].contains("float64")) continue;
            const int head =
                record.contains("head_index") && record["head_index"].is_number() ? record["head_index"].get<int>() : 0;
            if (!by_head.contains(head)) by_head[head] = load(golden, head);
            const auto expected = record["outputs"]["float64"]["node_energies"].get<std::vector<double>>();
            CAPTURE(record["name"].get<std::string>());
            CHECK_ALL_CLOSE(atom_energies(by_head[head], mace_test::read_system(record)), expected,
                            1e-12 * std::max(1.0, mace_test::largest_size(expected)));
            ++compared;
        }
    }
    CHECK(compared >= 40);
}

TEST_CASE("nequip loader: stored 3j symbols are used with their signs and their rounding") {
    const auto first_coupling = [](const Weights& weights, int l1, int l2, int l3) {
        for (const Layer& layer : weights.layers)
            for (const auto& path : layer.convolution.paths)
                if (layer.convolution.in[path.in_block].irrep.degree == l1 && path.degree == l2 &&
                    layer.convolution.out[path.out_block].irrep.degree == l3)
                    return path.couplings.front().value;
        return 0.0;
    };
    const auto exact = [](int l1, int l2, int l3) {
        for (const double value : mlff::wigner_3j(l1, l2, l3))
            if (value != 0) return value * std::sqrt(2.0 * l3 + 1) * (l2 % 2 == 0 ? 1 : -1);
        return 0.0;
    };
    const Weights old_signs = load(golden("p11_v093_old_signs_f32")), none = load(golden("p15_other_activations"));
    const double stored = first_coupling(old_signs, 1, 2, 2), known = exact(1, 2, 2);
    CHECK(std::abs(stored - known) < 1e-7);
    CHECK(stored != known);
    CHECK(first_coupling(none, 1, 1, 1) == doctest::Approx(exact(1, 1, 1)));
    const std::vector<double> old_tensor = mlff::wigner_3j(2, 1, 2), new_tensor = mlff::nequip::new_wigner_3j(2, 1, 2);
    for (size_t i = 0; i < old_tensor.size(); ++i) CHECK(new_tensor[i] == -old_tensor[i]);
    CHECK(mlff::nequip::new_wigner_3j(2, 2, 2) == mlff::wigner_3j(2, 2, 2));
}

TEST_CASE("nequip loader: files without normalised harmonics have powers of the distance") {
    const Weights weights = load(golden("p12_v093_names_of_22may_f32"));
    for (const Layer& layer : weights.layers)
        for (const auto& path : layer.convolution.paths) CHECK(path.distance_power == path.degree);
    for (const Layer& layer : load(golden("p11_v093_old_signs_f32")).layers)
        for (const auto& path : layer.convolution.paths) CHECK(path.distance_power == 0);
}

TEST_CASE("nequip loader: heads differ, and one that is not there is an error") {
    const ModuleFile file = mlff::open_module_file(golden("p10_three_modals_all_flags").model_path);
    const std::vector<double> first = all_numbers(mlff::nequip::load_weights(file.root, 0));
    CHECK(all_numbers(mlff::nequip::load_weights(file.root, 2)) != first);
    for (int head : {-1, 3, 1000}) CHECK_THROWS_AS(mlff::nequip::load_weights(file.root, head), Error);
    const ModuleFile nequix = mlff::open_module_file(golden("n03_lmax1_two_layers").model_path);
    CHECK_THROWS_AS(mlff::nequip::load_weights(nequix.root, 1), Error);
}

TEST_CASE("nequip loader: files survive the container of this library") {
    const mlff::test::TemporaryDirectory directory;
    for (const auto& [name, golden] : goldens()) {
        if (!golden.is_readable()) continue;
        CAPTURE(name);
        const ModuleFile file = mlff::open_module_file(golden.model_path);
        const std::string path = directory.file(name + ".safetensors");
        mlff::write_safetensors(path, mlff::pack_module(file.root));
        const ModuleFile again = mlff::open_module_file(path);
        CHECK(again.container == "mlff safetensors");
        CHECK(again.root.class_path == file.root.class_path);
        CHECK(again.root.attributes == file.root.attributes);
        CHECK(all_numbers(mlff::nequip::load_weights(again.root, 0)) ==
              all_numbers(mlff::nequip::load_weights(file.root, 0)));
    }
}

TEST_CASE("nequip loader: frequencies that are trained according to the config must be there") {
    const ModuleFile file = mlff::open_module_file(golden("p15_other_activations").model_path);
    Module root = file.root;
    Module& basis = part(root, "edge_embedding.basis_function");
    std::erase_if(basis.tensors, [](const auto& named) { return named.first == "coeffs"; });
    CHECK(refusal(root).find("'edge_embedding.basis_function.coeffs', which is trained") != std::string::npos);
    root.attributes["config"]["radial_basis"]["trainable_coeff"] = false;
    const Weights weights = mlff::nequip::load_weights(root, 0);
    for (size_t n = 0; n < weights.radial.parameters.size(); ++n)
        CHECK(weights.radial.parameters[n] ==
              doctest::Approx(static_cast<double>(n + 1) * M_PI / weights.cutoff).epsilon(1e-6));
}

// The configurations of Nequix have them.
TEST_CASE("nequip loader: irreps may have blanks between their terms") {
    std::ifstream file(golden("n03_lmax1_two_layers").model_path, std::ios::binary);
    const std::string original(std::istreambuf_iterator<char>(file), {});
    const size_t end = original.find('\n');
    nlohmann::json config = nlohmann::json::parse(original.substr(0, end));
    std::string irreps = config["hidden_irreps"];
    REQUIRE(irreps.find('+') != std::string::npos);
    irreps.replace(irreps.find('+'), 1, " + ");
    config["hidden_irreps"] = irreps;
    const mlff::test::TemporaryDirectory folder;
    const std::string path = folder.file("blanks.nqx");
    std::ofstream(path, std::ios::binary) << config.dump() << original.substr(end);
    const ModuleFile changed = mlff::open_module_file(path);
    const Weights found = mlff::nequip::load_weights(changed.root, 0);
    CHECK(all_numbers(found) == all_numbers(load(golden("n03_lmax1_two_layers"))));
}

TEST_CASE("nequip loader: what is not implemented is refused by name") {
    const ModuleFile file = mlff::open_module_file(golden("p15_other_activations").model_path);
    const ModuleFile modal = mlff::open_module_file(golden("p10_three_modals_all_flags").model_path);
    const auto check = [](const Module& original, const std::function<void(JsonValue&)>& change,
                          const std::string& words) {
        Module root = original;
        change(root.attributes["config"]);
        const std::string message = refusal(root);
        CAPTURE(message);
        CAPTURE(words);
        CHECK(message.find(words) != std::string::npos);
    };
    const auto setting = [&](const std::string& key, const JsonValue& value, const std::string& words) {
        check(
            file.root, [&](JsonValue& config) { config[key] = value; }, words);
    };
    setting("version", JsonValue(), "without a version");
    setting("version", "eleven", "version 'eleven'");
    setting("_model_type", "MACE", "_model_type 'MACE'");
    setting("interaction_type", "mace", "interaction_type 'mace'");
    setting("self_connection_type", "none", "self_connection_type 'none'");
    setting("self_connection_type", JsonValue::Array{"nequip"}, "list of 4 names");
    setting("optimize_by_reduce", false, "optimize_by_reduce");
    setting("act_radial", "sigmoid", "vanish at the cutoff");
    setting("act_radial", "gelu", "activation 'gelu'");
    setting("act_gate", JsonValue::Object{{"e", "mish"}}, "activation 'mish'");
    setting("lmax_edge", 4, "lmax_edge = 4");
    setting("lmax_node", 4, "lmax_node = 4");
    setting("radial_basis", JsonValue::Object{{"radial_basis_name", "gaussian"}}, "radial_basis_name 'gaussian'");
    setting("cutoff_function", JsonValue::Object{{"cutoff_function_name", "cosine"}}, "cutoff function 'cosine'");
    setting("radial_basis", JsonValue::Object{{"radial_basis_name", "bessel"}, {"trainable_coeff", 1}},
            "'trainable_coeff'");
    setting("cutoff", -1, "'cutoff' is -1");
    setting("num_convolution_layer", 1000, "'num_convolution_layer'");
    setting("channel", 1 << 20, "'channel'");
    setting("lmax_node", 2, "the radial weights");
    setting("_type_map", JsonValue::Object{{"6", 0}, {"1", 0}, {"8", 2}, {"16", 3}}, "'_type_map'");
    setting("_type_map", JsonValue::Object{{"6", 0}, {"1", 1}, {"8", 2}, {"500", 3}}, "not an atomic number");
    setting("_type_map", JsonValue::Object{{"6", 0}}, "'_number_of_species'");
    setting("irreps_manual", JsonValue::Array{"5x0e", "8x1o+8x0e", "8x0e", "8x0e", "8x0e"},
            "a scalar behind another irrep");
    setting("irreps_manual", JsonValue::Array{"5x0e", "8x0o+8x1o", "8x0e", "8x0e", "8x0e"}, "gates are odd");
    setting("irreps_manual", JsonValue::Array{"8x0e", "8x0e+8x4e", "8x0e", "8x0e", "8x0e"}, "above l = 3");
    setting("irreps_manual", JsonValue::Array{"8x0e"}, "list of 5 irreps");
    setting("irreps_manual", JsonValue::Array{"8x1o", "8x0e", "8x0e", "8x0e", "8x0e"}, "first features");
    check(
        modal.root,
        [](JsonValue& config) {
            config["_modal_map"] = JsonValue::Object{{"a_pbe", 0}};
        },
        "fewer than two modalities");
    check(
        modal.root, [](JsonValue& config) { config["use_modality"] = false; }, "'weight' has shape");

    const ModuleFile nequix = mlff::open_module_file(golden("n03_lmax1_two_layers").model_path);
    check(
        nequix.root, [](JsonValue& config) { config["lmax"] = 4; }, "lmax = 4");
    check(
        nequix.root, [](JsonValue& config) { config["hidden_irreps"] = "7x0e+6x1e"; }, "hidden_irreps");
    check(
        nequix.root, [](JsonValue& config) { config["add_repulsion"] = true; }, "add_repulsion");
    check(
        nequix.root, [](JsonValue& config) { config["radial_polynomial_p"] = 2.5; }, "'radial_polynomial_p'");
    check(
        nequix.root, [](JsonValue& config) { config["avg_n_neighbors"] = 0; }, "'avg_n_neighbors'");

    Module root = file.root;
    root.children.emplace_back("zbl", Module());
    CHECK(refusal(root).find("'zbl' is not implemented") != std::string::npos);
    root.class_path = "a.Model";
    CHECK(!mlff::nequip::is_nequip_module(root));
    CHECK(refusal(root).find("a.Model") != std::string::npos);
}

TEST_CASE("nequip loader: tensors that are wrong are named") {
    std::vector<std::unique_ptr<std::vector<double>>> memory;
    const ModuleFile file = mlff::open_module_file(golden("p11_v093_old_signs_f32").model_path);
    const auto check = [&](const std::string& owner, const std::string& name, std::vector<double> numbers,
                           const std::vector<int64_t>& shape, const std::string& words) {
        Module root = file.root;
        replace_tensor(part(root, owner), name, std::move(numbers), shape, memory);
        const std::string message = refusal(root);
        CAPTURE(message);
        CHECK(message.find(words) != std::string::npos);
    };
    check("0_convolution", "denominator", {0}, {1}, "'denominator' is 0");
    check("0_convolution", "denominator", {NAN}, {1}, "not finite");
    check("1_self_interaction_1.linear", "weight", {1, 2}, {2}, "'weight' has shape [2]");
    check("1_convolution.weight_nn.layer0", "weight", std::vector<double>(6), {2, 3}, "there are 16 hidden neurons");
    check("1_convolution.weight_nn.layer2", "weight", std::vector<double>(16), {16, 1}, "are not those of the 90");
    check("1_convolution.convolution._compiled_main_left_right", "_w3j_1_1_1", std::vector<double>(27), {3, 3, 3},
          "is not the 3j symbol");
    check("edge_embedding.basis_function", "coeffs", {1, 2}, {2}, "'coeffs' has shape [2]");
    check("rescale_atomic_energy", "shift", {1, 2}, {2}, "'shift' has shape [2]");
}

TEST_CASE("nequip loader: changed trees give an Error or a model, and nothing else") {
    static const std::vector<JsonValue> values = {JsonValue(),
                                                  true,
                                                  false,
                                                  -1,
                                                  0,
                                                  1,
                                                  2,
                                                  3,
                                                  99,
                                                  1e300,
                                                  2.5,
                                                  "",
                                                  "silu",
                                                  "8x0e+8x1o",
                                                  "65536x0e",
                                                  "0.9.0",
                                                  JsonValue::Array(),
                                                  JsonValue::Array{1, 2, 3},
                                                  JsonValue::Array{"65536x0e", "8x0e+65536x3e", "8x0e", "8x0e"},
                                                  JsonValue::Object(),
                                                  JsonValue::Object{{"1", 0}, {"2", 1}}};
    std::mt19937_64 random(8);
    int loaded = 0, refused = 0;
    for (const char* name : {"p08_bias_fcn_readout", "p10_three_modals_all_flags", "p12_v093_names_of_22may_f32",
                             "n02_indexed_skip_no_norm"}) {
        const ModuleFile file = mlff::open_module_file(golden(name).model_path);
        for (int i = 0; i < (mlff::test::kIsSanitized ? 100 : 400); ++i) {
            Module root = file.root;
            for (int changes = 0; changes < 1 + i % 3; ++changes) {
                Module* owner = &root;
                while (!owner->children.empty() && (owner == &root || random() % 4 > 0))
                    owner = &owner->children[random() % owner->children.size()].second;
                if (random() % 2 == 0) {
                    JsonValue& config = root.attributes["config"];
                    auto item = config.object().begin();
                    std::advance(item, static_cast<std::ptrdiff_t>(random() % config.size()));
                    config[item->first] = values[random() % values.size()];
                } else if (!owner->tensors.empty()) {
                    const size_t index = random() % owner->tensors.size();
                    mlff::Tensor& tensor = owner->tensors[index].second;
                    if (random() % 3 == 0) {
                        owner->tensors.erase(owner->tensors.begin() + static_cast<std::ptrdiff_t>(index));
                    } else if (!tensor.shape.empty() && tensor.element_count() > 0) {
                        const size_t axis = random() % tensor.shape.size();
                        const bool repeats = random() % 2 == 0;
                        tensor.shape[axis] = repeats ? int64_t{1} << 40 : tensor.shape[axis] - 1;
                        if (repeats) tensor.strides[axis] = 0;
                    }
                }
            }
            try {
                mlff::nequip::describe(root);
                const Weights weights = mlff::nequip::load_weights(root, 0);
                bool all_finite = true;
                for (double number : all_numbers(weights)) all_finite &= std::isfinite(number);
                CHECK(all_finite);
                ++loaded;
            } catch (const Error& error) {
                CHECK((error.status() == Status::format || error.status() == Status::unsupported));
                ++refused;
            }
        }
    }
    MESSAGE(loaded << " of " << loaded + refused << " changed trees could be loaded");
    CHECK(refused > loaded);
}
