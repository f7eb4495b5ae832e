// SPDX-License-Identifier: MIT
// Loading weights: what is refused is refused by name, and no tree, however wrong, does more than throw an Error.
#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "core/error.h"
#include "equivariant/weights/module_reader.h"
#include "test_mace_numerics.h"
#include "test_mace_support.h"

using namespace mace_test;
using mlff::JsonValue;
using mlff::Module;
using mlff::Tensor;

namespace {

Module* find_mutable(Module& root, const std::string& dotted) { return const_cast<Module*>(root.find(dotted)); }

std::string refusal(const Module& root) { return mlff::mace::why_not_runnable(root); }

// A walk over all modules of a tree, in order.
void collect(Module& module, std::vector<Module*>& all) {
    all.push_back(&module);
    for (auto& [name, child] : module.children) collect(child, all);
}

// Wrong values of every kind that JSON has.
JsonValue odd_value(Random& random) {
    static const std::vector<JsonValue> values = {JsonValue(),
                                                  true,
                                                  false,
                                                  -1,
                                                  0,
                                                  1,
                                                  2,
                                                  7,
                                                  1e300,
                                                  -1e300,
                                                  1u << 31,
                                                  "",
                                                  "abc",
                                                  "8x0e",
                                                  "8x0e+8x1o",
                                                  "100000000x0e",
                                                  "3x11o",
                                                  "1x0e+1x1o+1x2e",
                                                  "4x0e+",
                                                  JsonValue::Array(),
                                                  JsonValue::Object(),
                                                  JsonValue::Array{1, 2, 3},
                                                  JsonValue::Array(1, JsonValue::Array{8, JsonValue::Array{0, 1}}),
                                                  JsonValue::Array(1, JsonValue::Array{8, JsonValue::Array{0, 7}}),
                                                  JsonValue::Object{{"real", "nan"}},
                                                  JsonValue::Object{{"function", "torch.nn.functional.relu"}},
                                                  JsonValue::Object{{"state", JsonValue::Object()}}};
    return values[static_cast<size_t>((random.number() + 1) / 2 * static_cast<double>(values.size()))];
}

size_t pick(Random& random, size_t count) {
    return static_cast<size_t>((random.number() + 1) / 2 * static_cast<double>(count));
}

// Changes that keep the promise of Tensor: offset and strides stay inside of the storage.
void spoil_tensor(Tensor& tensor, Random& random) {
    static const std::vector<double> not_finite = {NAN, INFINITY, 1, 1};
    switch (pick(random, 6)) {
        case 0:  // shorter
            if (!tensor.shape.empty()) {
                int64_t& length = tensor.shape[pick(random, tensor.shape.size())];
                length = length > 0 ? length - 1 : 0;
            }
            break;
        case 1:  // transposed
            std::reverse(tensor.shape.begin(), tensor.shape.end());
            std::reverse(tensor.strides.begin(), tensor.strides.end());
            break;
        case 2:  // repeated without end
            if (!tensor.shape.empty() && tensor.element_count() > 0) {
                const size_t axis = pick(random, tensor.shape.size());
                tensor.shape[axis] = int64_t{1} << 50;
                tensor.strides[axis] = 0;
            }
            break;
        case 3:  // an axis more
            tensor.shape.insert(tensor.shape.begin(), 1);
            tensor.strides.insert(tensor.strides.begin(), 1);
            break;
        case 4:  // numbers that are none
            tensor = mlff::make_tensor(mlff::DType::float64, {static_cast<int64_t>(1 + pick(random, 4))}, {1}, 0,
                                       std::as_bytes(std::span(not_finite)), "test");
            break;
        default:  // of another type
            if (mlff::dtype_size(tensor.dtype) == 8) tensor.dtype = mlff::DType::int64;
            if (mlff::dtype_size(tensor.dtype) == 4) tensor.dtype = mlff::DType::int32;
            break;
    }
}

void spoil(Module& root, Random& random) {
    std::vector<Module*> all;
    collect(root, all);
    static const std::vector<std::string> classes = {"",
                                                     "a.Linear",
                                                     "a.MACE",
                                                     "a.Sequential",
                                                     "a.SiLU",
                                                     "a.LayerNorm",
                                                     "a.Gate",
                                                     "a.LAMMPS_MACE",
                                                     "a.SymmetricContraction",
                                                     "a.Contraction"};
    for (int attempt = 0; attempt < 50; ++attempt) {
        Module& module = *all[pick(random, all.size())];
        switch (pick(random, 6)) {
            case 0:
                if (module.children.empty()) continue;
                module.children.erase(module.children.begin() +
                                      static_cast<std::ptrdiff_t>(pick(random, module.children.size())));
                return;
            case 1:
                if (module.children.size() < 2) continue;
                std::swap(module.children[pick(random, module.children.size())].second,
                          module.children[pick(random, module.children.size())].second);
                return;
            case 2:
                if (module.tensors.empty()) continue;
                module.tensors.erase(module.tensors.begin() +
                                     static_cast<std::ptrdiff_t>(pick(random, module.tensors.size())));
                return;
            case 3:
                if (module.tensors.empty()) continue;
                spoil_tensor(module.tensors[pick(random, module.tensors.size())].second, random);
                return;
            case 4: {
                if (module.attributes.empty()) continue;
                auto item = module.attributes.object().begin();
                std::advance(item, static_cast<std::ptrdiff_t>(pick(random, module.attributes.size())));
                module.attributes[item->first] = odd_value(random);
                return;
            }
            default: module.class_path = classes[pick(random, classes.size())]; return;
        }
    }
}

}  // namespace

TEST_CASE("mace loader: what is not implemented is refused by name") {
    const auto path = golden_model("p03_mace_plain_l1");
    if (path.empty()) return;
    const mlff::ModuleFile file = mlff::open_module_file(path.string());
    const auto refused = [&](const std::string& module, const std::string& class_name) {
        Module root = file.root;
        (module.empty() ? &root : find_mutable(root, module))->class_path = "some.package." + class_name;
        const std::string message = refusal(root);
        CAPTURE(message);
        CHECK(message.find(class_name) != std::string::npos);
        CHECK_THROWS_AS(mlff::mace::load_weights(root), mlff::Error);
    };
    CHECK(refusal(file.root).empty());
    refused("", "AtomicDipolesMACE");
    refused("", "EnergyDipolesMACE");
    refused("interactions.0", "NewInteractionBlock");
    refused("interactions.1.conv_tp_weights", "NewNetwork");
    refused("interactions.1.conv_tp", "NewProduct");
    refused("products.0", "NewProductBlock");
    refused("products.0.symmetric_contractions", "NewContraction");
    refused("readouts.1", "NewReadoutBlock");
    refused("radial_embedding.bessel_fn", "NewBasis");
    refused("radial_embedding.cutoff_fn", "NewCutoff");
    refused("spherical_harmonics", "NewHarmonics");

    Module root = file.root;
    root.children.emplace_back("long_range", Module());
    CHECK(refusal(root).find("long_range") != std::string::npos);

    root = file.root;
    find_mutable(root, "readouts.1.non_linearity.acts.0")->attributes["f"] =
        JsonValue::Object{{"function", "torch.nn.functional.relu"}};
    CHECK(refusal(root).find("relu") != std::string::npos);

    root = file.root;
    find_mutable(root, "products.1.linear")->attributes["irreps_in"] = "7x0e";
    CHECK(refusal(root).find("products.1.linear") != std::string::npos);
}

TEST_CASE("mace loader: a tensor that is not finite or too large is named") {
    const auto path = golden_model("p03_mace_plain_l1");
    if (path.empty()) return;
    const mlff::ModuleFile file = mlff::open_module_file(path.string());
    for (const double wrong : {double{NAN}, double{INFINITY}, -double{INFINITY}, 1e31}) {
        Module root = file.root;
        static std::vector<double> numbers;
        for (auto& [name, tensor] : find_mutable(root, "interactions.1.linear_up")->tensors) {
            if (name != "weight") continue;
            numbers = tensor.to_doubles();
            numbers[3] = wrong;
            tensor = mlff::make_tensor(mlff::DType::float64, tensor.shape, tensor.strides, 0,
                                       std::as_bytes(std::span(numbers)), "test");
        }
        const std::string message = refusal(root);
        CAPTURE(message);
        CHECK(message.find("interactions.1.linear_up: tensor 'weight' holds") == 0);
        CHECK(message.find("at index 3") != std::string::npos);
    }
}

TEST_CASE("mace loader: a model that unfolds to much more than its file is refused") {
    const auto path = golden_model("p03_mace_plain_l1");
    if (path.empty()) return;
    const mlff::ModuleFile file = mlff::open_module_file(path.string());

    // Many contractions that share one dense tensor: 2^21 terms from 16 MB, four times.
    const int rows = 16, paths = 8192;
    static const std::vector<double> dense(static_cast<size_t>(rows * rows * paths), 1.0);
    Module root = file.root;
    Module* contraction = find_mutable(root, "products.0.symmetric_contractions");
    const int channels = static_cast<int>(mlff::mace::load_weights(root).layers[0].contraction.channel_count);
    const std::string multiplicity = std::to_string(channels) + "x";
    contraction->attributes["irreps_in"] =
        multiplicity + "0e+" + multiplicity + "1o+" + multiplicity + "2e+" + multiplicity + "3o";
    contraction->attributes["irreps_out"] =
        multiplicity + "0e+" + multiplicity + "0e+" + multiplicity + "0e+" + multiplicity + "0e";
    Module part = *contraction->find("contractions.0");
    for (auto& [name, tensor] : part.tensors) {
        if (name == "weights_max")
            tensor = mlff::make_tensor(mlff::DType::float64, {1, paths, channels}, {0, 0, 0}, 0,
                                       std::as_bytes(std::span(dense)), "test");
        if (name == "U_matrix_1")
            tensor =
                mlff::make_tensor(mlff::DType::float64, {rows, 1}, {0, 0}, 0, std::as_bytes(std::span(dense)), "test");
        if (name == "U_matrix_2")
            tensor = mlff::make_tensor(mlff::DType::float64, {rows, rows, paths}, {rows * paths, paths, 1}, 0,
                                       std::as_bytes(std::span(dense)), "test");
    }
    for (auto& [name, child] : part.children)
        for (auto& [key, tensor] : child.tensors)
            tensor = mlff::make_tensor(mlff::DType::float64, {1, 1, channels}, {0, 0, 0}, 0,
                                       std::as_bytes(std::span(dense)), "test");
    Module* parts = find_mutable(*contraction, "contractions");
    parts->children = {{"0", part}, {"1", part}, {"2", part}, {"3", part}};
    const std::string message = refusal(root);
    CAPTURE(message);
    CHECK(message.find("expand to far more terms") != std::string::npos);

    // Layers, more than anybody has.
    root = file.root;
    for (const char* list : {"interactions", "products"}) {
        Module* layers = find_mutable(root, list);
        for (int i = 0; i < 100; ++i) layers->children.emplace_back(std::to_string(i + 2), layers->children[1].second);
    }
    CHECK(refusal(root).find("interactions, the limit is 100") != std::string::npos);

    // Numbers that are decoded over and over.
    static const double one = 1;
    Module module;
    module.tensors.emplace_back(
        "t", mlff::make_tensor(mlff::DType::float64, {1 << 20}, {0}, 0, std::as_bytes(std::span(&one, 1)), "test"));
    mlff::LoadBudget budget(module);
    const mlff::ModuleReader reader(module, "part", budget);
    for (int i = 0; i < 4; ++i) CHECK(reader.values("t").size() == 1 << 20);
    CHECK_THROWS_WITH_AS(reader.values("t"), "part: the model expands to far more numbers than the file stores",
                         mlff::Error);
    CHECK_THROWS_AS(reader.take_numbers(1), mlff::Error);
}

TEST_CASE("mace loader: a wrapper for LAMMPS fixes the head") {
    const auto path = golden_model("p07_nonlinear_mh");
    if (path.empty()) return;
    const mlff::ModuleFile file = mlff::open_module_file(path.string());
    CHECK(mlff::mace::load_weights(file.root).fixed_head == -1);
    Module wrapper;
    wrapper.class_path = "mace.calculators.lammps_mace.LAMMPS_MACE";
    wrapper.children.emplace_back("model", file.root);
    static const int64_t head = 1;
    wrapper.tensors.emplace_back(
        "head", mlff::make_tensor(mlff::DType::int64, {1}, {1}, 0, std::as_bytes(std::span(&head, 1)), "head"));
    CHECK(mlff::mace::load_weights(wrapper).fixed_head == 1);
    CHECK(mlff::mace::load_weights(wrapper).heads.size() == 2);
}

TEST_CASE("mace loader: terms of a contraction are sorted, unique and inside of their arrays") {
    for (const auto& directory : golden_directories())
        for (const std::string name :
             {"p03_mace_plain_l1", "p07_nonlinear_mh", "p18_cueq_ir_mul", "p11_3layers_corrlist"}) {
            const auto path = directory / (name + ".model");
            if (!std::filesystem::exists(path)) continue;
            const mlff::mace::Weights weights = mlff::mace::load_weights(mlff::open_module_file(path.string()).root);
            for (const auto& layer : weights.layers) {
                const auto& c = layer.contraction;
                REQUIRE(c.first_term.size() == static_cast<size_t>(c.out_row_count) + 1);
                CHECK(c.first_term.back() == static_cast<int>(c.terms.size()));
                CHECK(c.weights.size() == static_cast<size_t>(c.element_count * c.path_count * c.channel_count));
                for (size_t row = 0; row + 1 < c.first_term.size(); ++row) {
                    std::set<std::pair<std::vector<int>, int>> seen;
                    for (int t = c.first_term[row]; t < c.first_term[row + 1]; ++t) {
                        const auto& term = c.terms[static_cast<size_t>(t)];
                        const std::vector<int> rows(term.rows.begin(), term.rows.begin() + term.order);
                        REQUIRE(std::is_sorted(rows.begin(), rows.end()));
                        REQUIRE(rows.front() >= 0);
                        REQUIRE(rows.back() < c.in_row_count);
                        REQUIRE(term.path < c.path_count);
                        REQUIRE(seen.insert({rows, term.path}).second);
                    }
                }
            }
        }
}

TEST_CASE("mace loader: spoiled trees throw an Error or still evaluate") {
    int runnable = 0, refused = 0;
    const char* repeats = std::getenv("MLFF_SPOILED_TREES");
    const int count = repeats ? std::atoi(repeats) : 60;
    for (const std::string name :
         {"p01_ss_l0_c3", "p04_density_agnesi_zbl", "p06_att_residual_f32", "p08_omol_like_f32", "p18_cueq_ir_mul",
          "p19_lammps_torchscript", "p23_v0314_nonlinear"}) {
        if (golden_model(name).empty()) continue;
        CAPTURE(name);
        const mlff::ModuleFile file = mlff::open_module_file(golden_model(name).string());
        Random random;
        for (int sample = 0; sample < count; ++sample) {
            Module root = file.root;
            const size_t changes = 1 + pick(random, 3);
            for (size_t i = 0; i < changes; ++i) spoil(root, random);
            try {
                Model model(mlff::mace::load_weights(root));
                System system;
                system.numbers.assign(3, model.weights->atomic_numbers[0]);
                system.positions = {0, 0, 0, 1, 0, 0, 0, 1.1, 0};
                if (model.weights->cutoff < 10) model.evaluate(system);
                ++runnable;
            } catch (const mlff::Error& error) {
                CHECK(std::string(error.what()).size() > 5);
                CHECK(error.status() != mlff::Status::internal);
                ++refused;
            }
        }
    }
    MESSAGE(refused, " spoiled trees refused, ", runnable, " evaluated");
    CHECK((refused > 0 || refused + runnable == 0));
}
