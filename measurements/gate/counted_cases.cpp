// SPDX-License-Identifier: MIT
// What scripts/bench-gate counts the instructions of: each case is set up and warmed up, and then runs once inside
// mlff_counted(), at which callgrind begins and ends to count; qemu_counter.c ends at mlff_counted_end(). Prints what
// the counts depend on, and the names of the cases in the order of the counts.
//
//   mlff_counted_cases MODEL.model [--facts] [--slow-kernel] [CASE...]       --facts: prints that, and runs nothing
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "cpu_kernels/kernel_table.h"
#include "dynamics/molecular_dynamics.h"
#include "dynamics/session_forces.h"
#include "engine/session.h"
#include "neighbors/neighbor_list.h"
#include "tools/bench/materials.h"

using namespace mlff;

// Callgrind and the plugin of qemu know them by these names.
extern "C" __attribute__((noinline)) void mlff_counted(const std::function<void()>& call) { call(); }
extern "C" __attribute__((noinline)) void mlff_counted_end() { asm volatile(""); }

namespace {

constexpr int kThreads = 1;  // with more, counts would depend on who waits for whom

#if defined(__aarch64__)
constexpr const char* kArchitecture = "aarch64";
#elif defined(__x86_64__)
constexpr const char* kArchitecture = "x86-64";
#else
constexpr const char* kArchitecture = "other";
#endif
#if defined(__clang__)
const std::string kCompiler = "clang++ " + std::to_string(__clang_major__);
#else
const std::string kCompiler = "g++ " + std::to_string(__GNUC__);
#endif

template <class Real>
kernels::KernelTable<Real>& chosen_kernels() {
    return const_cast<kernels::KernelTable<Real>&>(kernels::choose_kernels<Real>());
}

// While it lives, the chosen kernels are those for any processor of the architecture. On x86-64 valgrind works out each
// fused multiply-add in software, and an evaluation with them takes it a minute; these have none.
class PlainKernels {
public:
    PlainKernels() : singles_(chosen_kernels<float>()), doubles_(chosen_kernels<double>()) {
#if defined(__x86_64__)
        setenv("MLFF_CPU", "baseline", 1);
        kernels::KernelTable<float> singles = kernels::choose_kernels<float>();
        kernels::KernelTable<double> doubles = kernels::choose_kernels<double>();
        singles.name = doubles.name = singles_.name;  // they are found by it
        setenv("MLFF_CPU", std::string(singles_.name).c_str(), 1);
        chosen_kernels<float>() = singles;
        chosen_kernels<double>() = doubles;
#endif
    }
    ~PlainKernels() {
        chosen_kernels<float>() = singles_;
        chosen_kernels<double>() = doubles_;
    }
    PlainKernels(const PlainKernels&) = delete;
    PlainKernels& operator=(const PlainKernels&) = delete;

private:
    const kernels::KernelTable<float> singles_;
    const kernels::KernelTable<double> doubles_;
};

// The first call makes tables and takes memory.
void count_twice_called(const std::function<void()>& call) {
    {
        const PlainKernels plain;
        call();
    }
    mlff_counted(call);
    mlff_counted_end();
}

void count_evaluation(const std::string& model_name, Precision precision,
                      const std::function<Frame(const bench::Material&)>& make) {
    const auto model = load_model(model_name);
    SessionOptions options;
    options.device = "cpu";
    options.precision = precision;
    options.thread_count = kThreads;
    std::optional<Session> session;
    {
        const PlainKernels plain;  // tables are made here or in the first call
        session.emplace(model, options);
    }
    const Frame frame = make(bench::choose_material(model->summary().elements));
    double energy = 0, virial[9];
    std::vector<double> forces(frame.positions.size()), atom_energies(frame.atomic_numbers.size());
    const SystemView system = frame.view();
    const Results results = {{&energy, forces.data(), virial, atom_energies.data()}, nullptr};
    count_twice_called([&] { session->evaluate({&system, 1}, {&results, 1}); });
}

void count_neighbors() {
    const Frame frame = bench::make_box(bench::choose_material({1, 8}), 1500);
    NeighborOptions options;
    options.cutoff = 5;
    NeighborList list(options);
    ThreadTeam team(kThreads);
    const SystemView system = frame.view();
    count_twice_called([&] { list.update(system, team); });  // without a skin each update is a search
}

// Of the model that costs least, so that the integrator, the thermostat and the loop around them show.
void count_step() {
    const auto model = load_model("analytic");
    SessionOptions options;
    options.device = "cpu";
    options.thread_count = kThreads;
    options.neighbor_skin = NeighborSkin::of(0.5);
    Session session(model, options);
    SessionForces forces(session);
    Particles particles(bench::make_box(bench::choose_material(model->summary().elements), 1500).view());
    set_temperature(particles, 300, 1);
    DynamicsOptions dynamics_options;
    dynamics_options.time_step = 0.1;
    dynamics_options.thermostat = {ThermostatOptions::Kind::langevin, 300, 100, 1};
    MolecularDynamics dynamics(forces, std::move(particles), dynamics_options);
    count_twice_called([&] { dynamics.step(); });
}

// For the test of the gate: a kernel that does its work twice, as a careless change might. What it writes is
// overwritten with the same.
template <class Real>
void slow_down_kernels() {
    static const auto original = kernels::choose_kernels<Real>().sum_painn_messages;
    const_cast<kernels::KernelTable<Real>&>(kernels::choose_kernels<Real>()).sum_painn_messages =
        [](const kernels::PainnMessages<Real>& messages) {
            original(messages);
            original(messages);
        };
}

struct Case {
    std::string name;
    std::function<void()> run;
};

int run(std::vector<std::string> arguments) {
    if (arguments.empty()) fail(Status::argument, "a MACE model file is needed");
    const std::string mace = arguments.front();
    arguments.erase(arguments.begin());
    const auto take = [&](const char* option) { return std::erase(arguments, option) > 0; };
    const bool runs = !take("--facts");
    if (take("--slow-kernel")) {
        slow_down_kernels<float>();
        slow_down_kernels<double>();
    }
#if defined(__x86_64__)  // small, for what makes PlainKernels necessary
    const auto water = [](const bench::Material& material) { return bench::make_cluster(material, 21); };
    const auto cluster = [](const bench::Material& material) { return bench::make_cluster(material, 30); };
#else
    const auto water = [](const bench::Material& material) { return bench::make_box(material, 192); };
    const auto cluster = [](const bench::Material& material) { return bench::make_cluster(material, 60); };
#endif
    const std::vector<Case> cases = {{"student mixed", [&] { count_evaluation("builtin", Precision::mixed, water); }},
                                     {"student fp64", [&] { count_evaluation("builtin", Precision::fp64, water); }},
                                     {"MACE mixed", [&] { count_evaluation(mace, Precision::mixed, cluster); }},
                                     {"MACE fp64", [&] { count_evaluation(mace, Precision::fp64, cluster); }},
                                     {"neighbour list", count_neighbors},
                                     {"step of dynamics", count_step}};
    nlohmann::json names = nlohmann::json::array();
    std::vector<const Case*> chosen;
    for (const Case& one : cases)
        if (arguments.empty() || std::find(arguments.begin(), arguments.end(), one.name) != arguments.end())
            chosen.push_back(&one);
    for (const std::string& wanted : arguments)
        if (std::none_of(cases.begin(), cases.end(), [&](const Case& one) { return one.name == wanted; }))
            fail(Status::argument, "there is no case '", wanted, "'");
    for (const Case* one : chosen) {
        if (runs) one->run();
        names.push_back(one->name);
    }
    const nlohmann::json said = {{"architecture", kArchitecture},
                                 {"compiler", kCompiler},
                                 {"instructions", kernels::choose_kernels<float>().name},
                                 {"cases", names}};
    std::printf("%s\n", said.dump().c_str());
    return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
    try {
        return run({arguments + 1, arguments + argument_count});
    } catch (const Error& error) {
        std::fprintf(stderr, "mlff_counted_cases: %s\n", error.what());
        return 2;
    }
}
