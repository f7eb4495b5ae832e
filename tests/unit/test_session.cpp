// SPDX-License-Identifier: MIT
// Sessions: choices, refusals, batches, reuse of neighbours.
#include "capture_binding.h"
#include "close.h"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "engine/session.h"

using namespace mlff;

namespace {

const int32_t kWaterNumbers[] = {8, 1, 1};
const double kWater[] = {0, 0, 0, 0.96, 0, 0, -0.24, 0.93, 0};

SystemView water() {
    SystemView system;
    system.atom_count = 3;
    system.atomic_numbers = kWaterNumbers;
    system.positions = kWater;
    return system;
}

// The status and message that evaluating gives; Status::ok if it works.
std::pair<Status, std::string> try_evaluate(Session& session, const SystemView& system, double* stress = nullptr) {
    double energy = 12345;
    Results results{{&energy}, stress};
    try {
        session.evaluate({&system, 1}, {&results, 1});
    } catch (const Error& error) {
        CHECK(energy == 12345);  // nothing is written on failure
        return {error.status(), error.what()};
    }
    CHECK(std::isfinite(energy));
    return {Status::ok, ""};
}

Status try_create(const SessionOptions& options) {
    try {
        Session session(load_model("analytic"), options);
    } catch (const Error& error) {
        return error.status();
    }
    return Status::ok;
}

}  // namespace

namespace {

using Spoil = std::function<void(const Outputs&)>;

// The analytic model, whose results are spoiled.
class SpoiledModel : public Model {
public:
    explicit SpoiledModel(Spoil spoil, int member_count = 0) : spoil_(std::move(spoil)), summary_(right_->summary()) {
        summary_.member_count = member_count;
    }
    const ModelSummary& summary() const override { return summary_; }
    JsonValue description() const override { return right_->description(); }
    Precision choose_precision(const Device& device, Precision wanted) const override {
        return right_->choose_precision(device, wanted);
    }
    bool runs_on_gpu() const override { return false; }
    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const override {
        return std::make_unique<Spoiled>(right_->make_evaluator(options), spoil_);
    }

private:
    struct Spoiled : Evaluator, DomainEvaluation {
        Spoiled(std::unique_ptr<Evaluator> right_in, Spoil spoil_in)
            : right(std::move(right_in)), spoil(std::move(spoil_in)) {}
        void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override {
            right->evaluate(system, edges, outputs, team);
            if (system.atom_count == 3) spoil(outputs);
        }
        void evaluate_domain(const Domain& domain, const Edges& edges, const Outputs& outputs,
                             ThreadTeam& team) override {
            evaluate(domain.atoms, edges, outputs, team);
        }
        DomainEvaluation* domains() override { return this; }
        std::unique_ptr<Evaluator> right;
        Spoil spoil;
    };
    std::shared_ptr<const Model> right_ = load_model("analytic");
    Spoil spoil_;
    ModelSummary summary_;
};

// Three atoms, none of which are listed as neighbours.
struct WaterDomain : HaloExchange {
    WaterDomain() {
        domain.atoms = water();
        domain.owned_count = 3;
        domain.first = first;
        domain.halo.exchange = this;
    }
    void exchange(const void*, void*, size_t) override {}

    const int64_t first[4] = {0, 0, 0, 0};
    Domain domain;
};

// A box of argon: enough atoms for all threads.
struct ArgonBox {
    std::vector<int32_t> numbers = std::vector<int32_t>(1000, 18);
    std::vector<double> positions;
    ArgonBox() {
        for (int i = 0; i < 1000; ++i)
            for (const int step : {i % 10, i / 10 % 10, i / 100}) positions.push_back(3.7 * step);
    }
    SystemView view() const {
        SystemView system;
        system.atom_count = 1000;
        system.atomic_numbers = numbers.data();
        system.positions = positions.data();
        return system;
    }
};

}  // namespace

TEST_CASE("results that are not finite are an error that names the first") {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                     kInfinity = std::numeric_limits<double>::infinity();
    double energy = 0, forces[9], virial[9], stress[6], atom_energies[3], atom_virials[27];
    SystemView system = water();
    system.cell = {{{9, 0, 0}, {0, 9, 0}, {0, 0, 9}}};
    system.periodic = {true, true, true};
    const Results results = {{&energy, forces, virial, atom_energies, atom_virials}, stress};
    const std::pair<const char*, Spoil> cases[] = {
        {"the energy is not finite", [&](const Outputs& to) { *to.energy = kNan; }},
        {"the force on atom 1 is not finite", [&](const Outputs& to) { to.forces[5] = kInfinity; }},
        {"the virial is not finite", [&](const Outputs& to) { to.virial[8] = -kInfinity; }},
        {"the energy of atom 2 is not finite", [&](const Outputs& to) { to.atom_energies[2] = kNan; }},
        {"the virial of atom 2 is not finite", [&](const Outputs& to) { to.atom_virials[18] = kNan; }},
    };
    for (const auto& [words, spoil] : cases) {
        CAPTURE_BINDING(words);
        SessionOptions options;
        options.thread_count = 1;
        Session session(std::make_shared<SpoiledModel>(spoil), options);
        const auto message_of = [&](const auto& evaluate) {
            try {
                evaluate();
            } catch (const Error& error) {
                CHECK(error.status() == Status::system);
                return std::string(error.what());
            }
            return std::string("no error");
        };
        CHECK(message_of([&] { session.evaluate({&system, 1}, {&results, 1}); }).find(words) == 0);
        const SystemView systems[] = {{}, system};
        const Results both[] = {{}, results};
        CHECK(message_of([&] { session.evaluate(systems, both); }).find("system 1: " + std::string(words)) == 0);
        CHECK_NOTHROW(session.evaluate_unchecked({&system, 1}, {&results, 1}));

        const WaterDomain part;
        CHECK(message_of([&] { session.evaluate_domain(part.domain, results.outputs); }).find(words) == 0);
    }
}

TEST_CASE("deviations that are not finite are an error") {
    double energies[2], forces[18];
    Outputs outputs;
    outputs.energy_deviations = energies;
    outputs.force_deviations = forces;
    const WaterDomain part;
    for (const int spoiled : {-1, 0, 1}) {
        const auto spoil = [&](const Outputs& to) {
            std::fill_n(to.energy_deviations, 2, 0.0);
            std::fill_n(to.force_deviations, 18, 0.0);
            if (spoiled == 0) to.energy_deviations[1] = std::numeric_limits<double>::quiet_NaN();
            if (spoiled == 1) to.force_deviations[9 + 5] = std::numeric_limits<double>::infinity();
        };
        Session session(std::make_shared<SpoiledModel>(spoil, 3), {});
        if (spoiled == -1) CHECK_NOTHROW(session.evaluate_domain(part.domain, outputs));
        if (spoiled == 0)
            CHECK_THROWS_WITH_AS(session.evaluate_domain(part.domain, outputs),
                                 doctest::Contains("a deviation of the energy is not finite"), Error);
        if (spoiled == 1)
            CHECK_THROWS_WITH_AS(session.evaluate_domain(part.domain, outputs),
                                 doctest::Contains("a deviation of the force on atom 1 is not finite"), Error);
    }
}

TEST_CASE("what fails while a batch is computed names the system") {
    Session session(load_model("analytic"), {});
    const double same[9] = {0, 0, 0, 1, 1, 1, 0, 0, 0};
    std::vector<SystemView> systems = {water(), water(), water()};
    systems[1].positions = same;
    std::vector<double> energies(3, 77.0);
    std::vector<Results> results(3);
    for (size_t i = 0; i < 3; ++i) results[i].outputs.energy = &energies[i];
    CHECK_THROWS_WITH_AS(session.evaluate(systems, results), "system 1: atoms 0 and 2 are at the same place", Error);
    CHECK(energies[1] == 77.0);
    CHECK(energies[2] == 77.0);
}

TEST_CASE("a stress that has no volume leaves all results unwritten") {
    Session session(load_model("analytic"), {});
    SystemView system = water();
    system.cell = {{{9, 0, 0}, {0, 9, 0}, {0, 9, 1e-8}}};
    system.periodic = {true, false, false};
    double stress[6];
    CHECK(try_evaluate(session, system, stress).first == Status::system);
}

TEST_CASE("a session with threads is refused in a forked process, and freed there without waiting") {
    const ArgonBox box;
    const SystemView system = box.view();
    SessionOptions options;
    options.thread_count = 2;
    const auto energy_of = [&](Session& session) {
        double energy = 0;
        const Results results{{&energy}, nullptr};
        session.evaluate({&system, 1}, {&results, 1});
        return energy;
    };
    auto session = std::make_unique<Session>(load_model("analytic"), options);
    const double energy = energy_of(*session);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        alarm(20);
        int code = 1;
        try {
            energy_of(*session);
        } catch (const Error& error) {
            code = error.status() == Status::argument && std::string(error.what()).find("forked") != std::string::npos
                       ? 0
                       : 2;
        }
        session.reset();
        Session own(load_model("analytic"), options);
        _exit(energy_of(own) == energy ? code : 3);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
    CHECK(energy_of(*session) == energy);
}

TEST_CASE("bad systems are refused with a sentence and the session still works") {
    Session session(load_model("analytic"), {});
    const int32_t unknown[] = {8, 1, 110}, none[] = {8, 0, 1};
    double broken[9];
    std::copy_n(kWater, 9, broken);
    broken[7] = std::numeric_limits<double>::quiet_NaN();

    SystemView system = water();
    system.atomic_numbers = unknown;
    auto [status, message] = try_evaluate(session, system);
    CHECK(status == Status::system);
    CHECK(message.find("atom 2 is Ds") != std::string::npos);

    system.atomic_numbers = none;
    CHECK(try_evaluate(session, system).first == Status::system);

    system = water();
    system.positions = broken;
    CHECK(try_evaluate(session, system).second.find("atom 2 is not finite") != std::string::npos);

    system = water();
    system.periodic = {true, false, false};  // with a zero row
    CHECK(try_evaluate(session, system).first == Status::system);

    system = water();
    system.cell = {{{4, 0, 0}, {8, 0, 0}, {0, 0, 4}}};
    system.periodic = {true, true, true};
    CHECK(try_evaluate(session, system).first == Status::system);

    double same[9] = {0, 0, 0, 1, 1, 1, 0, 0, 0};
    system = water();
    system.positions = same;
    CHECK(try_evaluate(session, system).second.find("atoms 0 and 2 are at the same place") != std::string::npos);

    const std::vector<int32_t> many_numbers(100'000, 8);
    const std::vector<double> one_place(3 * many_numbers.size(), 0.0);  // 10^10 pairs
    system.atom_count = static_cast<int64_t>(many_numbers.size());
    system.atomic_numbers = many_numbers.data();
    system.positions = one_place.data();
    const auto [crowd_status, crowd_message] = try_evaluate(session, system);
    CHECK((crowd_status == Status::system || crowd_status == Status::memory));  // by the memory of the machine
    CHECK(crowd_message.find("the 100000 atoms have more than") != std::string::npos);

    system = water();
    system.total_charge = std::numeric_limits<double>::infinity();
    CHECK(try_evaluate(session, system).first == Status::system);

    double stress[6];
    CHECK(try_evaluate(session, water(), stress).first == Status::system);
    CHECK(try_evaluate(session, water()).first == Status::ok);
}

TEST_CASE("a charge or a spin that the model does not use is one warning, however many systems and sessions") {
    struct Listener {
        std::vector<std::string> warnings;
        Listener() { set_log_callback(&take, LogLevel::warning, this); }
        ~Listener() { set_log_callback(nullptr, LogLevel::warning, nullptr); }
        static void take(int, const char* line, void* self) { static_cast<Listener*>(self)->warnings.push_back(line); }
    };
    const auto model = load_model("analytic");
    SystemView ion = water(), radical = water();
    ion.total_charge = -1;
    radical.spin_multiplicity = 2;
    Session quiet(model, {});
    CHECK(try_evaluate(quiet, ion).first == Status::ok);  // nobody listens: this one does not count

    const Listener listener;
    const std::vector<std::string>& warnings = listener.warnings;
    Session one(model, {}), other(model, {});
    SystemView not_given = water();
    not_given.spin_multiplicity = 0;
    CHECK(try_evaluate(one, water()).first == Status::ok);
    CHECK(try_evaluate(one, not_given).first == Status::ok);
    CHECK(warnings.empty());
    for (Session* session : {&one, &one, &other}) CHECK(try_evaluate(*session, ion).first == Status::ok);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("total charge is given, but the model (AnalyticPairPotential) does not") !=
          std::string::npos);
    for (Session* session : {&one, &one, &other}) CHECK(try_evaluate(*session, radical).first == Status::ok);
    REQUIRE(warnings.size() == 2);
    CHECK(warnings[1].find("spin multiplicity is given") != std::string::npos);
    Session sum(load_model("analytic+zbl"), {});
    CHECK(try_evaluate(sum, ion).first == Status::ok);
    CHECK(warnings.size() == 3);
}

TEST_CASE("no atoms, one atom, one atom in a tiny cell") {
    Session session(load_model("analytic"), {});
    SystemView system;
    double energy = 1;
    Results results{{&energy}, nullptr};
    session.evaluate({&system, 1}, {&results, 1});
    CHECK(energy == 0);

    const int32_t hydrogen = 1;
    const double origin[3] = {0, 0, 0};
    double forces[3] = {1, 1, 1};
    system.atom_count = 1;
    system.atomic_numbers = &hydrogen;
    system.positions = origin;
    results.outputs.forces = forces;
    session.evaluate({&system, 1}, {&results, 1});
    CHECK(energy == 0);
    CHECK(forces[1] == 0);

    system.cell = {{{0.9, 0, 0}, {0, 0.9, 0}, {0, 0, 0.9}}};
    system.periodic = {true, true, true};
    double stress[6];
    results.stress = stress;
    session.evaluate({&system, 1}, {&results, 1});
    CHECK(std::isfinite(energy));
    CHECK(energy != 0);
    CHECK_ALL_CLOSE(std::span<const double>(forces, 3), std::vector<double>(3, 0.0), 1e-9);
    CHECK_ALL_CLOSE(std::span<const double>(stress + 3, 3), std::vector<double>(3, 0.0), 1e-9);
}

TEST_CASE("a ragged batch gives what single calls give, and is checked before it runs") {
    Session session(load_model("analytic"), {});
    const double two[] = {0, 0, 0, 0, 0, 1.1};
    const int32_t pair[] = {6, 8};
    SystemView other;
    other.atom_count = 2;
    other.atomic_numbers = pair;
    other.positions = two;
    std::vector<SystemView> systems = {water(), other, {}, water()};
    std::vector<double> energies(4, 77.0), single(4);
    std::vector<Results> results(4);
    for (size_t i = 0; i < 4; ++i) results[i].outputs.energy = &energies[i];
    session.evaluate(systems, results);
    for (size_t i = 0; i < 4; ++i) {
        Results one{{&single[i]}, nullptr};
        session.evaluate({&systems[i], 1}, {&one, 1});
    }
    CHECK(energies == single);

    energies.assign(4, 77.0);
    systems[3].atom_count = -1;
    CHECK_THROWS_WITH_AS(session.evaluate(systems, results), "system 3: the atom count is -1", Error);
    CHECK(energies == std::vector<double>(4, 77.0));
}

TEST_CASE("a batch of MACE systems gives what single calls give, whatever the model joins") {
    SessionOptions mixed;
    mixed.thread_count = 2;
    Session session(load_model(MLFF_GOLDEN_DIR "/p03_mace_plain_l1.model"), mixed);
    const int32_t oxygen = session.model().summary().elements.back(),
                  hydrogen = session.model().summary().elements.front();
    const int32_t numbers[] = {oxygen, hydrogen, hydrogen};
    std::mt19937 random(17);
    std::normal_distribution<double> noise(0.0, 0.05);
    constexpr size_t kSystems = 200;  // more atoms than are joined
    std::vector<std::vector<double>> positions(kSystems, std::vector<double>(kWater, kWater + 9));
    std::vector<SystemView> systems(kSystems, water());
    std::vector<double> energies(kSystems, 77.0);
    std::vector<std::vector<double>> forces(kSystems, std::vector<double>(9, 77.0));
    std::vector<std::array<double, 6>> stress(kSystems);
    std::vector<Results> results(kSystems);
    for (size_t i = 0; i < kSystems; ++i) {
        for (double& x : positions[i]) x += noise(random);
        systems[i].positions = positions[i].data();
        systems[i].atomic_numbers = numbers;
        systems[i].atom_count = static_cast<int64_t>(i % 4);
        if (i % 3 == 0) {
            systems[i].cell = {{{4, 0, 0}, {0, 4, 0}, {0, 0, 4}}};
            systems[i].periodic = {true, true, true};
            results[i].stress = stress[i].data();
        }
        results[i].outputs.energy = &energies[i];
        results[i].outputs.forces = forces[i].data();
    }
    session.evaluate(systems, results);
    for (size_t i = 0; i < kSystems; ++i) {
        double energy = 0;
        std::vector<double> single(9, 77.0);
        std::array<double, 6> single_stress{};
        const Results one{{&energy, single.data()}, results[i].stress ? single_stress.data() : nullptr};
        session.evaluate({&systems[i], 1}, {&one, 1});
        CHECK(test::is_close(energies[i], energy, 1e-4));  // mixed precision, and not to the bit (test_mace_cpu.cpp)
        CHECK_ALL_CLOSE(forces[i], single, 1e-4);
        if (results[i].stress) CHECK_ALL_CLOSE(stress[i], single_stress, 1e-5);
    }
    CHECK(session.evaluation_count() == 2 * kSystems);
}

TEST_CASE("descriptors are refused where the model has none") {
    Session session(load_model("analytic"), {});
    const SystemView system = water();
    double descriptors[3] = {5, 5, 5};
    Results results;
    results.outputs.descriptors = descriptors;
    CHECK_THROWS_WITH_AS(session.evaluate({&system, 1}, {&results, 1}),
                         "descriptors were asked for, but this model has none", Error);
    CHECK(descriptors[0] == 5);
}

TEST_CASE("options that make no sense are refused") {
    SessionOptions options;
    options.device = "gpu";
    CHECK(try_create(options) == Status::argument);
    options.device = "cuda:x";
    CHECK(try_create(options) == Status::argument);
    options.device = "cuda:99";
    CHECK((try_create(options) == Status::device || try_create(options) == Status::unsupported));
    options = {};
    options.precision = Precision::fast;
    CHECK(try_create(options) == Status::unsupported);
    options = {};
    options.head = "nobody";
    CHECK(try_create(options) == Status::argument);
    options = {};
    options.thread_count = -1;
    CHECK(try_create(options) == Status::argument);
    options = {};
    for (const double wrong : {std::numeric_limits<double>::quiet_NaN(), -1.0, 0.0})
        CHECK_THROWS_AS(NeighborSkin::of(wrong), Error);
    options.gpu_memory_limit_bytes = -1;
    CHECK(try_create(options) == Status::argument);
    CHECK(try_create({}) == Status::ok);
}

TEST_CASE("a skin saves searches and changes no number") {
    SessionOptions options;
    options.neighbor_skin = NeighborSkin::of(1.0);
    Session with_skin(load_model("analytic"), options), without(load_model("analytic"), {});
    std::mt19937 random(3);
    std::normal_distribution<double> step(0.0, 0.02);
    std::vector<double> positions(kWater, kWater + 9);
    for (int i = 0; i < 50; ++i) {
        for (double& x : positions) x += step(random);
        SystemView system = water();
        system.positions = positions.data();
        double a = 0, b = 0;
        Results ra{{&a}, nullptr}, rb{{&b}, nullptr};
        with_skin.evaluate({&system, 1}, {&ra, 1});
        without.evaluate({&system, 1}, {&rb, 1});
        CHECK(test::is_close(a, b, 1e-12));
    }
    CHECK(without.neighbor_build_count() == 50);
    CHECK(with_skin.neighbor_build_count() < 20);
    CHECK(with_skin.evaluation_count() == 50);
}
