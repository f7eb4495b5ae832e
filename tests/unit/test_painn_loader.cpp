// SPDX-License-Identifier: MIT
// PaiNN files: what they hold comes out as it went in, and every broken one gets a sentence that says what is wrong.
#include <doctest/doctest.h>

#include <cstdio>

#include "capture_binding.h"
#include "core/error.h"
#include "core/output_file.h"
#include "engine/load_model.h"
#include "engine/session.h"
#include "painn/model.h"
#include "painn/weights/weights.h"
#include "test_painn_support.h"

using namespace mlff;
using namespace painn_test;

namespace {

std::string error_of(const std::string& bytes, Status expected) {
    try {
        load_bytes(bytes);
    } catch (const Error& error) {
        CHECK(error.status() == expected);
        return error.what();
    }
    return "no error";
}

bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("a file gives the weights that were written") {
    for (const bool has_repulsion : {true, false}) {
        Shape shape;
        shape.has_repulsion = has_repulsion;
        shape.closest = has_repulsion ? 0.8 : 0;
        const painn::Weights written = random_weights(shape), found = load_bytes(file_of(written).bytes());
        CHECK(found.hidden == 32);
        CHECK(found.radial_count == 8);
        CHECK(found.cutoff == written.cutoff);
        CHECK(found.atomic_numbers == written.atomic_numbers);
        CHECK(found.atomic_energies == written.atomic_energies);
        CHECK(found.scales == written.scales);
        CHECK(found.repulsion_radii == written.repulsion_radii);
        CHECK(found.closest == written.closest);
        CHECK(found.closest_of(0, 2) == (has_repulsion ? written.closest[6] : 0));
        CHECK(found.embedding == written.embedding);
        REQUIRE(found.blocks.size() == written.blocks.size());
        CHECK(found.blocks[1].filter.weight == written.blocks[1].filter.weight);
        CHECK(found.blocks[1].filter.bias == written.blocks[1].filter.bias);
        CHECK(found.blocks[0].mix.weight == written.blocks[0].mix.weight);
        CHECK(found.blocks[0].update_output.bias == written.blocks[0].update_output.bias);
        CHECK(found.readout_output.weight == written.readout_output.weight);
        CHECK(found.card == written.card);
        CHECK(found.parameter_count ==
              3 * 32 + 2 * (96 * 9 + 32 * 33 + 96 * 33 + 64 * 32 + 32 * 65 + 96 * 33) + 16 * 33 + 17);
        CHECK(found.element_of(8) == 2);
        CHECK(found.element_of(7) == -1);
        CHECK(found.element_of(92) == -1);
    }
}

TEST_CASE("metadata that make no sense") {
    const FileParts good = file_of(random_weights({}));
    const auto with = [&](const char* key, const char* text) {
        FileParts file = good;
        file.metadata[key] = text;
        return file.bytes();
    };
    CHECK(contains(error_of(with("format", "pt"), Status::format), "student: metadata 'format'"));
    CHECK(contains(error_of(with("painn_layout", "2"), Status::unsupported), "layout '2'"));
    struct Case {
        const char *config, *words;
    };
    for (const auto& [config, words] :
         {Case{"", "config"},
          Case{"[]", "not a JSON object"},
          Case{"{\"hidden\": 32", "config"},
          Case{R"({"hidden":33,"blocks":2,"radial":8,"cutoff":4.5})",
               "'hidden' is 33, expected a multiple of 32 from 32 to 256"},
          Case{R"({"hidden":0,"blocks":2,"radial":8,"cutoff":4.5})", "'hidden' is 0"},
          Case{R"({"hidden":288,"blocks":2,"radial":8,"cutoff":4.5})", "'hidden' is 288"},
          Case{R"({"hidden":18446744073709551584,"blocks":2,"radial":8,"cutoff":4.5})",
               "'hidden' is 18446744073709551584"},
          Case{R"({"hidden":32.0,"blocks":2,"radial":8,"cutoff":4.5})", "'hidden' is 32.0"},
          Case{R"({"hidden":"32","blocks":2,"radial":8,"cutoff":4.5})", "'hidden'"},
          Case{R"({"hidden":32,"blocks":0,"radial":8,"cutoff":4.5})", "'blocks' is 0, expected from 1 to 8"},
          Case{R"({"hidden":32,"blocks":9,"radial":8,"cutoff":4.5})", "'blocks' is 9"},
          Case{R"({"hidden":32,"blocks":2,"radial":65,"cutoff":4.5})", "'radial' is 65, expected from 1 to 64"},
          Case{R"({"hidden":32,"blocks":2,"radial":-1,"cutoff":4.5})", "'radial' is -1"},
          Case{R"({"hidden":32,"blocks":2,"radial":8})", "no number 'cutoff'"},
          Case{R"({"hidden":32,"blocks":2,"radial":8,"cutoff":0})", "'cutoff' is 0"},
          Case{R"({"hidden":32,"blocks":2,"radial":8,"cutoff":-5})", "'cutoff' is -5"},
          Case{R"({"hidden":32,"blocks":2,"radial":8,"cutoff":1e300})", "'cutoff' is 1e+300"},
          Case{R"({"blocks":2,"radial":8,"cutoff":4.5})", "no 'hidden'"},
          Case{R"({"hidden":32,"blocks":2,"radial":8,"cutoff":4.5,"twist":1})", "'twist' is unknown"},
          Case{R"({"hidden":32,"hidden":64,"blocks":2,"radial":8,"cutoff":4.5})", "config"}}) {
        CAPTURE_BINDING(config);
        const std::string error = error_of(with("config", config), Status::format);
        CHECK_MESSAGE(contains(error, words), error);
        CHECK(contains(error, "student"));
    }
    CHECK(contains(error_of(with("card", "[1]"), Status::format), "card"));
    CHECK(contains(error_of(with("card", "{"), Status::format), "card"));
    FileParts cardless = good;
    cardless.metadata.erase("card");
    CHECK(load_bytes(cardless.bytes()).card == JsonValue::Object());
}

TEST_CASE("every tensor that is missing, misshapen, of the wrong type or not finite is named") {
    Shape shape;
    shape.closest = 0.8;
    const FileParts good = file_of(random_weights(shape));
    for (const auto& [name, entry] : good.tensors) {
        CAPTURE_BINDING(name);
        FileParts file = good;
        if (name != "repulsion_radii" && name != "closest") {
            file.tensors.erase(name);
            CHECK(contains(error_of(file.bytes(), Status::format), "student: tensor '" + name + "' is missing"));
            file = good;
        }
        file.tensors[name].shape.insert(file.tensors[name].shape.begin(), 1);
        CHECK(contains(error_of(file.bytes(), Status::format), "tensor '" + name + "' has shape"));
        file = good;
        file.tensors[name].shape.back() *= 2;
        file.tensors[name].bytes += entry.bytes;
        CHECK(contains(error_of(file.bytes(), Status::format),
                       name == "atomic_numbers" ? "is not ascending" : "has shape"));
        file = good;
        file.tensors[name].dtype = name == "atomic_numbers" ? "F64" : "I64";
        CHECK(contains(error_of(file.bytes(), Status::format), "tensor '" + name + "' has type"));
        if (name == "atomic_numbers") continue;
        for (const double bad : {static_cast<double>(NAN), -static_cast<double>(INFINITY), 1e31}) {
            file = good;
            const std::string last = raw_bytes(std::vector<double>{bad});
            file.tensors[name].bytes.replace(file.tensors[name].bytes.size() - last.size(), last.size(), last);
            CHECK(contains(error_of(file.bytes(), Status::format), "tensor '" + name + "' holds"));
        }
    }
    FileParts file = good;
    file.tensors["blocks.2.filter.bias"] = file.tensors["blocks.1.filter.bias"];
    CHECK(contains(error_of(file.bytes(), Status::format), "tensor 'blocks.2.filter.bias' is unknown"));
}

TEST_CASE("atomic numbers and radii that make no sense") {
    const FileParts good = file_of(random_weights({}));
    for (const auto& [numbers, words] : std::vector<std::pair<std::vector<int64_t>, std::string>>{
             {{1, 8, 6}, "is not ascending"},
             {{1, 6, 6}, "is not ascending"},
             {{0, 6, 8}, "holds 0"},
             {{1, 6, 119}, "holds 119"},
             {{-1, 6, 8}, "holds -1"},
             {{1, 6, int64_t{1} << 40}, "not an atomic number"}}) {
        FileParts file = good;
        file.tensors["atomic_numbers"].bytes = raw_bytes(numbers);
        CHECK(contains(error_of(file.bytes(), Status::format), words));
    }
    FileParts file = good;
    file.tensors["atomic_numbers"] = {"I64", {0}, ""};
    CHECK(contains(error_of(file.bytes(), Status::format), "'atomic_numbers' has shape [0]"));
    file = good;
    file.tensors["repulsion_radii"].bytes = raw_bytes(std::vector<double>{0.3, -0.1, 0.3});
    CHECK(contains(error_of(file.bytes(), Status::format), "'repulsion_radii' holds -0.1"));
}

TEST_CASE("shortest distances that make no sense") {
    Shape shape;
    shape.closest = 0.8;
    const FileParts good = file_of(random_weights(shape));
    const auto error_with = [&](const std::vector<double>& closest) {
        FileParts file = good;
        file.tensors["closest"].bytes = raw_bytes(closest);
        return error_of(file.bytes(), Status::format);
    };
    CHECK(error_with({0.6, 0.7, 0.7, 0.7, 1.0, 1.1, 0.7, 1.1, 1.2}) == "no error");
    for (const double bad : {0.0, -0.7, 4.5, 7.0}) {  // the cutoff is 4.5
        const std::string error = error_with({0.6, 0.7, bad, 0.7, 1.0, 1.1, bad, 1.1, 1.2});
        CHECK_MESSAGE(
            contains(error, "'closest' holds " + concat(bad) + ", expected more than 0 and less than the cutoff"),
            error);
    }
    const std::string error = error_with({0.6, 0.7, 0.7, 0.7, 1.0, 1.1, 0.7, 1.11, 1.2});
    CHECK_MESSAGE(contains(error, "'closest' is not symmetric: 1.1 and 1.11 for atomic numbers 6 and 8"), error);
}

TEST_CASE("float32 and float64 files of the same numbers are the same model") {
    Shape shape;
    painn::Weights weights = random_weights(shape);
    for (double& value : weights.embedding) value = static_cast<float>(value);
    FileParts file = file_of(weights);
    file.tensors["embedding"] = {
        "F32", {3, 32}, raw_bytes(std::vector<float>(weights.embedding.begin(), weights.embedding.end()))};
    const painn::Weights found = load_bytes(file.bytes());
    CHECK(found.embedding == weights.embedding);
    CHECK(found.dtype == DType::float32);
}

TEST_CASE("a PaiNN file is a model like any other") {
    for_each_painn_golden([&](const std::string& path, const std::shared_ptr<const painn::Weights>& weights,
                              const nlohmann::json& golden) {
        const auto model = load_model(path);
        CHECK(model->summary().class_name == "PaiNN");
        CHECK(model->summary().descriptor_count == 32);
        CHECK(model->summary().elements == weights->atomic_numbers);
        const nlohmann::json description = model->description();
        CHECK(description["card"]["licence"] == "MIT");
        CHECK(description["parameters"] == weights->parameter_count);
        SessionOptions options;
        options.device = "reference";
        Session session(model, options);
        CHECK(session.precision() == Precision::fp64);
        for (const auto& record : golden["systems"]) {
            const System system = mace_test::read_system(record);
            const SystemView view = system.view();
            double energy = NAN;
            Results results;
            results.outputs.energy = &energy;
            session.evaluate({&view, 1}, {&results, 1});
            CHECK_ALL_CLOSE(std::vector<double>{energy}, std::vector<double>{record["outputs"]["energy"].get<double>()},
                            1e-9);
        }
    });
    CHECK_THROWS_AS(load_model(std::string(MLFF_PAINN_GOLDEN_DIR) + "/two_blocks_f32.json"), Error);
    CHECK(load_model("analytic")->summary().class_name == "AnalyticPairPotential");
    CHECK(load_model("builtin")->summary().why_not_runnable.empty());
}

TEST_CASE("weights that are finite, but make numbers that are not, are an error of the evaluation") {
    painn::Weights weights = random_weights({});
    for (double& number : weights.blocks[1].message_output.weight) number = 1e25;
    const std::string bytes = file_of(weights).bytes();
    const auto model = make_painn_model(read_safetensors(test::as_bytes(bytes), "student"), "student");
    const int32_t numbers[] = {8, 1, 1};
    const double positions[] = {0, 0, 0, 0.96, 0, 0, -0.24, 0.93, 0};
    SystemView water;
    water.atom_count = 3;
    water.atomic_numbers = numbers;
    water.positions = positions;
    double energy = 0;
    Results results;
    results.outputs.energy = &energy;
    for (const char* device : {"cpu", "reference"}) {
        CAPTURE(device);
        SessionOptions options;
        options.device = device;
        options.thread_count = 1;
        Session session(model, options);
        std::string message;
        try {
            session.evaluate({&water, 1}, {&results, 1});
        } catch (const Error& error) {
            message = error.what();
            CHECK(error.status() == Status::system);
        }
        CHECK(message.empty() == std::isfinite(energy));
        CHECK((std::string(device) == "reference" || contains(message, "the energy is not finite")));
    }
}
