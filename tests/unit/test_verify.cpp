// SPDX-License-Identifier: MIT
// mlff verify: right models pass, and every kind of wrong number is caught by the check that is made for it.
#include <doctest/doctest.h>

#include <functional>

#include "../tags.h"
#include "core/elements.h"
#include "dynamics/stability.h"
#include "model_files.h"
#include "tools/verify/known_answers.h"
#include "tools/verify/probe_systems.h"
#include "tools/verify/verification.h"

#include <nlohmann/json.hpp>

using namespace mlff;

namespace {

SessionOptions cpu_session(Precision precision) {
    SessionOptions options;
    options.device = "cpu";
    options.precision = precision;
    options.thread_count = 2;
    return options;
}

std::string failures(const verify::Verification& found) {
    std::string text;
    for (const verify::Check& check : found.checks)
        if (!check.is_passed()) text += concat(check.name, " ", check.value, " > ", check.upper, "; ");
    return text;
}

using Fault = std::function<void(const SystemView&, const Edges&, const Outputs&, ThreadTeam&)>;

// A backend with a fault.
class FaultyEvaluator : public Evaluator {
public:
    FaultyEvaluator(std::unique_ptr<Evaluator> right, Fault fault)
        : right_(std::move(right)), fault_(std::move(fault)) {}
    void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override {
        right_->evaluate(system, edges, outputs, team);
        fault_(system, edges, outputs, team);
    }

private:
    std::unique_ptr<Evaluator> right_;
    Fault fault_;
};

// The embedded student whose CPU backend has the fault; its reference is right.
class FaultyModel : public Model {
public:
    explicit FaultyModel(Fault fault) : fault_(std::move(fault)) {}
    const ModelSummary& summary() const override { return right_->summary(); }
    JsonValue description() const override { return right_->description(); }
    Precision choose_precision(const Device& device, Precision wanted) const override {
        return right_->choose_precision(device, wanted);
    }
    bool runs_on_gpu() const override { return false; }
    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const override {
        auto evaluator = right_->make_evaluator(options);
        return options.device.kind == Device::Kind::reference
                   ? std::move(evaluator)
                   : std::make_unique<FaultyEvaluator>(std::move(evaluator), fault_);
    }

private:
    std::shared_ptr<const Model> right_ = load_model("builtin");
    Fault fault_;
};

void check_caught(const char* by, const Fault& fault) {
    CAPTURE(by);
    const verify::Verification found =
        verify::verify_model(std::make_shared<FaultyModel>(fault), cpu_session(Precision::fp64), "");
    CHECK(!found.is_passed());
    bool is_caught = false;
    for (const verify::Check& check : found.checks)
        is_caught |= !check.is_passed() && check.name.find(by) != std::string::npos;
    CAPTURE(failures(found));
    CHECK(is_caught);
}

}  // namespace

TEST_CASE("right models are verified: the embedded student and MACE" * test::kSlowUnderSanitizers) {
    for (const Precision precision : {Precision::mixed, Precision::fp64}) {
        const verify::Verification found = verify::verify_model(load_model("builtin"), cpu_session(precision), "");
        CHECK(failures(found) == "");
        CHECK(found.checks.size() >= 20);
        CHECK(found.published.empty());
    }
    for (const char* name : {"p02_mp0like_l1_c3_f32", "p04_density_agnesi_zbl", "p08_omol_like_f32"}) {
        CAPTURE(name);
        const test::Golden* golden = test::find_golden(name);
        REQUIRE(golden);
        CHECK(failures(verify::verify_model(load_model(golden->model_path), cpu_session(Precision::fp64),
                                            golden->facts.at("model_sha256").get<std::string>())) == "");
    }
}

TEST_CASE("every kind of wrong number is caught by the check that is made for it" * test::kSlowUnderSanitizers) {
    const auto each_force = [](const SystemView& system, const Outputs& to, const auto& change) {
        if (to.forces)
            for (int64_t i = 0; i < 3 * system.atom_count; ++i) change(i, to.forces[i]);
    };
    check_caught("forces against the fp64 reference",
                 [](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam&) {
                     if (to.forces && system.atom_count > 3) to.forces[7] *= 1.0001;
                 });
    check_caught("forces against finite differences",
                 [&](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam&) {
                     each_force(system, to, [](int64_t, double& f) { f *= 0.99; });
                 });
    check_caught("virial against strained cells", [](const SystemView&, const Edges&, const Outputs& to, ThreadTeam&) {
        for (int k = 0; k < 9 && to.virial; ++k) to.virial[k] = -to.virial[k];
    });
    check_caught("energies against the fp64 reference",
                 [](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam&) {
                     *to.energy += 1e-6 * static_cast<double>(system.atom_count);
                 });
    check_caught("forces under a rotation",
                 [&](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam&) {
                     each_force(system, to, [](int64_t i, double& f) { f += i % 3 == 0 ? 1e-4 : 0; });
                 });
    check_caught("forces under a translation",
                 [&](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam&) {
                     each_force(system, to, [&](int64_t i, double& f) { f += 1e-6 * system.positions[i]; });
                 });
    check_caught("forces under inversion", [&](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam&) {
        each_force(system, to, [](int64_t, double& f) { f += 1e-5; });
    });
    check_caught("another order of the atoms",
                 [&](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam&) {
                     each_force(system, to, [](int64_t i, double& f) { f *= 1 + 1e-6 * static_cast<double>(i); });
                 });
    check_caught("doubled cell", [](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam&) {
        *to.energy += system.atom_count > 10 ? 1e-3 : 0;
    });
    check_caught("one thread against 2",
                 [&](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam& team) {
                     each_force(system, to, [&](int64_t, double& f) { f *= team.size() == 1 ? 1 + 3e-16 : 1; });
                 });
    int calls = 0;
    check_caught("the same call again", [&](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam&) {
        each_force(system, to, [&](int64_t, double& f) { f *= 1 + 1e-15 * (calls % 7); });
        ++calls;
    });
    check_caught("crosses the cutoff",
                 [](const SystemView& system, const Edges& edges, const Outputs& to, ThreadTeam&) {
                     *to.energy += system.atom_count == 2 && edges.edge_count > 0 ? 1e-3 : 0;
                 });
    check_caught("isolated atom", [](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam&) {
        if (to.forces && system.atom_count == 1) to.forces[0] = 1e-12;
    });
    check_caught("forces against the fp64 reference",
                 [](const SystemView& system, const Edges&, const Outputs& to, ThreadTeam&) {  // NaN is never good
                     if (to.forces && system.atom_count > 3) to.forces[4] = NAN;
                 });
}

TEST_CASE("published figures are found by the file's SHA-256, and another model does not have them") {
    const std::vector<verify::KnownModel>& models = verify::known_models();
    CHECK(models.size() == 9);
    for (const verify::KnownModel& model : models) {
        CAPTURE(model.name);
        CHECK(model.sha256.size() == 64);
        CHECK(verify::find_known_model(model.sha256, model.head) == &model);
        CHECK(verify::find_known_model(model.sha256, "no such head")->sha256 == model.sha256);
        CHECK(model.structures.size() >= 3);
        for (const verify::KnownStructure& structure : model.structures) {
            double sum = 0;
            for (double e : structure.atom_energies) sum += e;
            CHECK(std::abs(sum - structure.energy) <= 1e-9 * std::max(1.0, std::abs(structure.energy)));
            CHECK(structure.forces.size() == 3 * structure.frame.atomic_numbers.size());
            CHECK(structure.stress.empty() == (structure.frame.periodic == std::array{false, false, false}));
        }
    }
    CHECK(!verify::find_known_model(std::string(64, '0'), ""));
    const verify::Verification found =
        verify::verify_model(load_model("builtin"), cpu_session(Precision::fp64), models.front().sha256);
    CHECK(found.published == models.front().name);
    CHECK(failures(found).find("published forces of water_cluster") != std::string::npos);
    const nlohmann::json json = verify::verification_json(found);
    CHECK(json.at("passed") == false);
    CHECK(json.at("checks").size() == found.checks.size());
}

TEST_CASE("probes are of elements that the model knows, and no atoms are on top of each other") {
    CHECK(verify::probe_elements({1, 6, 7, 8, 9, 16, 17}, 4) == std::vector<int>{1, 8, 6, 7});
    CHECK(verify::probe_elements({79, 92}, 4) == std::vector<int>{79, 92});
    for (const std::vector<int>& known : {std::vector<int>{1, 6, 7, 8}, {1, 8}, {6}, {14, 29}, {18}, {11, 17, 92}}) {
        for (const Frame& probe : {verify::probe_cluster(known), verify::probe_crystal(known)}) {
            CHECK(probe.atom_count() >= 6);
            for (int32_t z : probe.atomic_numbers) CHECK(std::find(known.begin(), known.end(), z) != known.end());
            const std::optional<AtomPair> closest = closest_pair(probe.view());
            REQUIRE(closest);
            const auto radius = [&](int64_t atom) {
                return covalent_radius(probe.atomic_numbers[static_cast<size_t>(atom)]);
            };
            CHECK(closest->distance > 0.75 * (radius(closest->first) + radius(closest->second)));
        }
        CHECK(verify::probe_crystal(known).periodic == std::array{true, true, true});
        CHECK(verify::probe_crystal(known).positions == verify::probe_crystal(known).positions);
    }
}
