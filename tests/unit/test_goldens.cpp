// SPDX-License-Identifier: MIT
// Every golden of every family in every way to evaluate it: the reference, the CPU with the kernels of each instruction
// set, the GPU where there is one; each in all its precisions, against the numbers of the packages they come from.
#include <doctest/doctest.h>

#include <array>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "../sanitized.h"
#include "core/error.h"
#include "engine/load_model.h"
#include "kernel_tables.h"
#include "test_gpu_support.h"
#include "test_mace_backends.h"

using namespace mlff;
using mace_test::flat;
using mace_test::largest_difference;
using mace_test::largest_size;
using mace_test::Result;
using mace_test::System;
using mace_test::Tolerance;

namespace {

enum Family { kMace, kPainn, kNequip };
constexpr std::array<const char*, 3> kFamilyNames = {"MACE", "PaiNN", "NequIP"};
constexpr std::array<int, 3> kFewestModels = {10, 2, 7};
using Tolerances = std::array<std::optional<Tolerance>, 3>;  // [family]; nothing: not evaluated in this way

// ---- ways ----

constexpr Tolerance kPainnExact = {1e-11, 1e-11, 1e-11};
constexpr Tolerance kPainnDouble = {1e-8, 1e-7, 1e-7};  // with tabulated filters
constexpr Tolerance kPainnMixed = {5e-6, 2e-5, 2e-5};
constexpr Tolerance kPainnGpuDouble = {1e-6, 1e-7, 1e-7}, kPainnGpuMixed = {1e-4, 2e-5, 2e-4};
constexpr Tolerance kPainnGpuFast = {5e-3, 5e-3, 5e-2};
constexpr Tolerance kNequipExact = {1e-11, 1e-11, 1e-11};
constexpr Tolerance kNequipDouble = {1e-8, 1e-7, 1e-7};
// The packages give one half of the virial, which rounded couplings of files in single precision make asymmetric.
constexpr double kNequipAsymmetry = 5e-8;
constexpr Tolerance kFast = {INFINITY, 2e-3, INFINITY};  // the documentation states an error of forces only

struct Way {
    Device::Kind device;
    Precision precision;
    bool exact_radial;
    std::string kernels;  // the name of a table
    Tolerances tolerances;

    std::string name() const {
        std::string text = Device{device}.name() + ", " + std::string(precision_name(precision));
        if (exact_radial) text += ", exact radial functions";
        return device == Device::Kind::cpu ? text + ", kernels for " + kernels : text;
    }
    BackendOptions options(int head) const {
        BackendOptions result;
        result.device.kind = device;
        result.precision = precision;
        result.head = head;
        result.exact_radial = exact_radial;
        return result;
    }
};

std::vector<Way> all_ways() {
    using Kind = Device::Kind;
    const auto only_if = [](bool condition, const Tolerance& tolerance) {
        return condition ? std::optional(tolerance) : std::nullopt;
    };
    const std::vector<std::string> tables = test::tested_kernel_tables();
    const std::string& best = tables.front();
    std::vector<Way> ways = {
        {Kind::reference, Precision::fp64, false, best, {mace_test::kExact, kPainnExact, kNequipExact}}};
    for (const std::string& table : tables) {
        const auto exact = only_if(table == best, mace_test::kExact);             // other tables: the same kernels
        const auto tabulated = only_if(!test::kIsSanitized, mace_test::kDouble);  // each half is in another way
        ways.push_back(
            {Kind::cpu, Precision::fp64, true, table, {exact, kPainnExact, only_if(exact.has_value(), kNequipExact)}});
        ways.push_back({Kind::cpu,
                        Precision::fp64,
                        false,
                        table,
                        {tabulated, kPainnDouble, only_if(tabulated.has_value(), kNequipDouble)}});
        ways.push_back(
            {Kind::cpu, Precision::mixed, false, table, {mace_test::kMixed, kPainnMixed, mace_test::kMixed}});
        ways.push_back({Kind::cpu, Precision::mixed, true, table, {std::nullopt, kPainnMixed, mace_test::kMixed}});
    }
    if (has_gpu()) {
        ways.push_back({Kind::gpu, Precision::fp64, false, best, {mace_test::kDouble, kPainnGpuDouble, kNequipDouble}});
        ways.push_back(
            {Kind::gpu, Precision::mixed, false, best, {mace_test::kMixed, kPainnGpuMixed, mace_test::kMixed}});
        ways.push_back({Kind::gpu, Precision::fast, false, best, {kFast, kPainnGpuFast, kFast}});
    }
    return ways;
}

// ---- goldens ----

struct GoldenSystem {
    std::string name;
    System system;
    int head;
    Result expected;             // no virials of atoms, no virial from Nequix, and descriptors of few systems only
    std::vector<double> stress;  // empty without a cell
};

struct Golden {
    std::shared_ptr<const Model> model;
    Family family;
    std::vector<GoldenSystem> systems;
};

// The families call their numbers by different names, and MACE has them in two precisions.
GoldenSystem read_golden_system(const nlohmann::json& record, int fixed_head) {
    const nlohmann::json& outputs = record["outputs"];
    const nlohmann::json& numbers = outputs.contains("float64") ? outputs["float64"] : outputs;
    const auto read = [&](std::initializer_list<const char*> names) {
        for (const char* name : names)
            if (numbers.contains(name)) return flat(numbers[name]);
        return std::vector<double>();
    };
    GoldenSystem result = {record["name"],
                           mace_test::read_system(record),
                           fixed_head >= 0 ? fixed_head : record.value("head_index", 0),
                           {},
                           read({"stress"})};
    result.expected.energy = numbers["energy"];
    result.expected.forces = read({"forces"});
    result.expected.virial = read({"virial", "virials"});
    result.expected.atom_energies = read({"atom_energies", "node_energies"});
    result.expected.descriptors = read({"descriptors"});
    result.expected.edge_count = record["n_edges"];
    return result;
}

// "" if the model can be run, else why not.
std::string why_refused(const std::string& model_path) {
    try {
        return load_model(model_path)->summary().why_not_runnable;
    } catch (const Error& error) {
        return error.what();
    }
}

// visit(golden) for all that can be run; those that cannot must be refused with a reason.
template <class Visit>
void for_each_golden(const Visit& visit) {
    std::vector<std::pair<std::filesystem::path, Family>> directories = {{MLFF_PAINN_GOLDEN_DIR, kPainn}};
    for (const auto& directory : mace_test::golden_directories()) {
        directories.emplace_back(directory, kMace);
        for (const char* beside : {"nequip", "sevennet", "sevennet/nequix"})
            if (std::filesystem::is_directory(directory.parent_path() / beside))
                directories.emplace_back(directory.parent_path() / beside, kNequip);
    }
    std::set<std::string> seen;  // the larger set holds the cases of the repository too
    for (const auto& [directory, family] : directories) {
        MESSAGE("goldens from " << directory.string());
        for (const auto& path : mace_test::golden_cases(directory)) {
            if (!seen.insert(path.filename().string()).second) continue;
            CAPTURE(path.string());
            std::ifstream file(path);
            const nlohmann::json json = nlohmann::json::parse(file);
            const std::string model_path = (directory / json["model_file"].get<std::string>()).string();
            const bool is_refused = family == kMace ? json["container"] == "state_dict" ||
                                                          json["architecture"]["cls"] == "EnergyDipolesMACE"
                                                    : json.value("container", "") == "deployed_serial";
            if (is_refused) {
                CHECK(why_refused(model_path).size() > 10);
                continue;
            }
            Golden golden = {load_model(model_path), family, {}};
            for (const nlohmann::json& record : json["systems"])
                golden.systems.push_back(read_golden_system(record, golden.model->summary().fixed_head));
            visit(golden);
        }
    }
}

// ---- comparison ----

double determinant(const Mat3& m) {
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

void compare(const Result& found, const GoldenSystem& golden, const Tolerance& tolerance) {
    const Result& expected = golden.expected;
    const double atoms = static_cast<double>(std::max<size_t>(1, expected.atom_energies.size()));
    CHECK(found.edge_count == expected.edge_count);
    CHECK(std::abs(found.energy - expected.energy) <= tolerance.energy_per_atom * atoms);
    mace_test::check_close(found.atom_energies, expected.atom_energies, tolerance.energy_per_atom);
    mace_test::check_close(found.forces, expected.forces, tolerance.forces);
    // A virial adds over all edges, so its rounding grows with their number.
    const double virial_error = tolerance.virial * std::max({1.0, largest_size(expected.virial),
                                                             0.01 * static_cast<double>(expected.edge_count)});
    if (!expected.virial.empty()) CHECK(largest_difference(found.virial, expected.virial) <= virial_error);
    std::vector<double> sum(9, 0.0), stress = found.virial;
    for (size_t i = 0; i < found.atom_virials.size(); ++i) sum[i % 9] += found.atom_virials[i];
    mace_test::check_close(sum, found.virial, 1e-11);
    if (!golden.stress.empty()) {
        const double volume = std::abs(determinant(golden.system.cell));
        for (double& value : stress) value /= -volume;
        CHECK(largest_difference(stress, golden.stress) <= virial_error / volume);
    }
    mace_test::check_close(found.descriptors, expected.descriptors, tolerance.forces);
}

// What was compared in one way.
struct Tally {
    std::array<int, 3> models{};  // [family]
    int systems = 0;
    std::array<double, 3> worst_force{};  // [family], largest error relative to the largest force, at least 1 eV/A
};

void run_golden(const Golden& golden, const Way& way, Tally& tally) {
    std::optional<Tolerance> tolerance = way.tolerances[golden.family];
    if (!tolerance) return;
    if (golden.family == kNequip && golden.model->summary().dtype == DType::float32)
        tolerance->virial = std::max(tolerance->virial, kNequipAsymmetry);
    if (way.device == Device::Kind::gpu && !golden.model->runs_on_gpu()) return;
    // Models that the fast CPU backend lacks would run on the reference, which has fp64 only.
    if (way.device == Device::Kind::cpu)
        REQUIRE(golden.model->choose_precision({way.device}, Precision::mixed) == Precision::mixed);
    ++tally.models[golden.family];
    const kernels::ForcedKernels forced(way.kernels);
    std::map<int, std::unique_ptr<Evaluator>> evaluators;  // by head: tables take time
    for (const GoldenSystem& each : golden.systems) {
        CAPTURE(each.name);
        const bool is_slow = golden.family != kPainn && way.device == Device::Kind::cpu;
        if (test::kIsSanitized && is_slow && each.system.numbers.size() > 8) continue;  // the code of small ones
        auto& evaluator = evaluators[each.head];
        if (!evaluator) evaluator = golden.model->make_evaluator(way.options(each.head));
        const size_t descriptors = each.expected.descriptors.size();
        const Result found = mace_test::evaluate(*evaluator, golden.model->summary(), each.system, 2, descriptors);
        compare(found, each, *tolerance);
        const std::vector<double>& forces = each.expected.forces;
        double& worst = tally.worst_force[golden.family];
        worst = std::max(worst, largest_difference(found.forces, forces) / std::max(1.0, largest_size(forces)));
        ++tally.systems;
    }
}

}  // namespace

TEST_CASE("goldens of every family, on every device, in every precision, with the kernels of every instruction set") {
    const std::vector<Way> ways = all_ways();
    std::vector<Tally> tallies(ways.size());
    for_each_golden([&](const Golden& golden) {
        for (size_t i = 0; i < ways.size(); ++i) {
            CAPTURE(ways[i].name());
            run_golden(golden, ways[i], tallies[i]);
        }
    });
    int compared = 0;
    for (size_t i = 0; i < ways.size(); ++i) {
        const Tally& tally = tallies[i];
        std::ostringstream counts;
        int models = 0;
        for (const Family family : {kMace, kPainn, kNequip}) {
            counts << tally.models[family] << " " << kFamilyNames[family] << " models (largest error of a force "
                   << tally.worst_force[family] << "), ";
            models += tally.models[family];
            if (!ways[i].tolerances[family]) continue;
            CHECK(tally.models[family] >= kFewestModels[family]);
            CHECK(tally.worst_force[family] > 0);  // other programs round otherwise
        }
        MESSAGE(ways[i].name() << ": " << counts.str() << tally.systems << " systems");
        CHECK(tally.systems >= 5 * models);
        compared += tally.systems;
    }
    MESSAGE(compared << " comparisons with goldens");
}
