// SPDX-License-Identifier: MIT
// Native MACE against real mace-torch on the same files, through the same call. Needs an environment with mace-torch:
// its path in MLFF_TEST_PYTHON_MACE.
#include "close.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "core/error.h"
#include "engine/session.h"
#include "test_mace_support.h"

namespace {

using namespace mlff;

// "" where there is none.
std::string mace_environment() {
    const char* path = std::getenv("MLFF_TEST_PYTHON_MACE");
    if (!path || !*path) {
        MESSAGE("skipped: MLFF_TEST_PYTHON_MACE names no environment with mace-torch");
        return "";
    }
    setenv("MLFF_PYTHON_LIBRARY", MLFF_TEST_PYTHON_LIBRARY, 1);
    return path;
}

std::string mace_name(const std::string& path, const std::string& options = "&host=inprocess") {
    return "python:mace:" + path + "?env=" + mace_environment() + options;
}

struct MaceNumbers {
    double energy = 0;
    std::vector<double> forces, atom_energies;
    std::array<double, 9> virial{};
};

MaceNumbers numbers_of(Session& session, const mace_test::System& system) {
    MaceNumbers found;
    found.forces.resize(system.positions.size());
    found.atom_energies.resize(system.numbers.size());
    const SystemView view = system.view();
    Results results;
    results.outputs.energy = &found.energy;
    results.outputs.forces = found.forces.data();
    results.outputs.atom_energies = found.atom_energies.data();
    if (view.periodic == std::array<bool, 3>{true, true, true}) results.outputs.virial = found.virial.data();
    session.evaluate({&view, 1}, {&results, 1});
    return found;
}

std::string load_error_of(const std::string& name, const SessionOptions& options = {}) {
    try {
        Session(load_model(name), options);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error at all";
}

#define CHECK_HAS(text, word) \
    CHECK_MESSAGE(std::string(text).find(word) != std::string::npos, "'", std::string(word), "' expected in: ", text)

}  // namespace

TEST_CASE("native MACE gives the forces of mace-torch to 1e-8 eV/angstrom") {
    if (mace_environment().empty()) return;
    int compared = 0;
    for (const auto& file : mace_test::golden_cases(MLFF_GOLDEN_DIR)) {
        std::ifstream stream(file);
        const nlohmann::json golden = nlohmann::json::parse(stream);
        const std::filesystem::path model =
            std::filesystem::path(MLFF_GOLDEN_DIR) / golden["model_file"].get<std::string>();
        if (model.extension() != ".model" || golden["container"] != "module") continue;
        CAPTURE(model.filename().string());
        const auto native_model = load_model(model.string());
        if (!native_model->summary().why_not_runnable.empty()) continue;
        const auto python_model = load_model(mace_name(model.string()));
        CHECK_EQ(python_model->summary().elements, native_model->summary().elements);
        CHECK_EQ(python_model->summary().heads, native_model->summary().heads);
        CHECK(mlff::test::is_close(python_model->summary().cutoff, native_model->summary().cutoff, 1e-6));
        // torch has no derivative of Chebyshev polynomials and leaves it out, so that forces of mace-torch are not
        // those of its energy there.
        const bool has_gradient = golden["case"] != "p13_chebyshev_agnesi";
        SessionOptions options;
        options.device = "reference";
        options.precision = Precision::fp64;
        options.head = native_model->summary().heads.back();
        Session native(native_model, options), python(python_model, options);
        for (const nlohmann::json& record : golden["systems"]) {
            const mace_test::System system = mace_test::read_system(record);
            if (system.numbers.size() > 64 || system.numbers.empty()) continue;
            const MaceNumbers found = numbers_of(native, system), expected = numbers_of(python, system);
            CHECK(mlff::test::is_close(found.energy, expected.energy, 1e-8));
            CHECK_ALL_CLOSE(found.atom_energies, expected.atom_energies, 1e-8);
            if (!has_gradient) continue;
            CHECK_ALL_CLOSE(found.forces, expected.forces, 1e-8);
            CHECK_ALL_CLOSE(found.virial, expected.virial, 1e-7);
            ++compared;
        }
    }
    CHECK_GT(compared, 20);
    MESSAGE(compared, " systems compared");
}

TEST_CASE("mace-torch in a process of its own, in fp32 and with its errors") {
    if (mace_environment().empty()) return;
    const std::string model = MLFF_GOLDEN_DIR "/p03_mace_plain_l1.model";
    mace_test::System water;
    water.numbers = {8, 1, 1};
    water.positions = {0, 0, 0, 0.9572, 0, 0, -0.239987, 0.926627, 0};
    Session inside(load_model(mace_name(model)), {}),
        outside(load_model(mace_name(model, "&host=process&dtype=float64")), {});
    CHECK_EQ(static_cast<int>(outside.precision()), static_cast<int>(Precision::fp64));
    const MaceNumbers expected = numbers_of(inside, water), found = numbers_of(outside, water);
    CHECK(mlff::test::is_close(found.energy, expected.energy, 1e-12));
    CHECK_ALL_CLOSE(found.forces, expected.forces, 1e-12);
    SessionOptions single;
    single.precision = Precision::fp32;
    Session rough(load_model(mace_name(model)), single);
    const double difference = std::abs(numbers_of(rough, water).energy - expected.energy);
    CHECK_GT(difference, 0);  // it is fp32
    CHECK_LT(difference, 1e-4);

    CHECK_HAS(load_error_of(mace_name(MLFF_GOLDEN_DIR "/p20_state_dict.pt")), "expected a MACE model of mace-torch");
    CHECK_HAS(load_error_of(mace_name(MLFF_GOLDEN_DIR "/README.md")), "torch cannot read it as a model");
    CHECK_HAS(load_error_of(mace_name("/there/is/no.model")), "/there/is/no.model: there is no such file");
    CHECK_HAS(load_error_of(mace_name(model, "&host=inprocess&head=Moon")), "no head 'Moon'");
    CHECK_HAS(load_error_of(mace_name(model, "&host=inprocess&cueq=1")),
              "needs the Python module 'cuequivariance_torch'");
    SessionOptions options;
    options.precision = Precision::mixed;
    CHECK_HAS(load_error_of(mace_name(model), options), "precision mixed is not available in mace-torch");
    if (load_model(mace_name(model))->usable_gpus().count == 0) {
        options = {};
        options.device = "cuda";
        CHECK_HAS(load_error_of(mace_name(model), options), "finds no CUDA device");
    }
}
