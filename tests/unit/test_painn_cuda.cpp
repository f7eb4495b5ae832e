// SPDX-License-Identifier: MIT
// PaiNN on the GPU against the reference backend, through model files and sessions. Tests that need a GPU pass without
// one, unless MLFF_REQUIRE_GPU is set. The emulated GPU (tests/emulated_gpu) runs the same kernels everywhere.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <nlohmann/json.hpp>

#include "close.h"
#include "core/error.h"
#include "engine/session.h"
#include "painn/gpu/evaluator.h"
#include "test_gpu_support.h"

#ifdef MLFF_HAS_CUDA
#include <cuda_runtime.h>
#endif

using namespace mlff;

namespace {

using Numbers = std::vector<double>;

// A model of random numbers in a file of its own.
class RandomModel {
public:
    RandomModel(int width, int block_count, int radial_count, bool has_repulsion)
        : path_(std::filesystem::temp_directory_path() /
                ("mlff_painn_cuda_" + std::to_string(width) + "_" + std::to_string(block_count) + "_" +
                 std::to_string(radial_count) + ".safetensors")),
          random_(static_cast<unsigned>(width + 7 * block_count + 31 * radial_count)) {
        const int64_t F = width, R = radial_count;
        header_["__metadata__"] = {
            {"format", "mlff-painn"},
            {"painn_layout", "1"},
            {"config",
             nlohmann::json{{"hidden", width}, {"blocks", block_count}, {"radial", radial_count}, {"cutoff", 4.5}}
                 .dump()},
            {"card", nlohmann::json{{"name", "random"}, {"teacher", "none"}, {"elements", {"H", "C", "O"}}}.dump()}};
        const int64_t numbers[] = {1, 6, 8};
        add("atomic_numbers", "I64", {3}, numbers, sizeof numbers);
        add("atomic_energies", {3}, {-13.5, -1029.25, -2042.0});
        add("scales", {3}, {0.5, 1.25, 0.75});
        if (has_repulsion) {
            add("repulsion_radii", {3}, {0.6, 1.1, 1.2});
            add("closest", {3, 3}, {0.9, 1.2, 1.1, 1.2, 1.4, 1.3, 1.1, 1.3, 1.5});
        }
        add_random("embedding", {3, F}, 1);
        for (int b = 0; b < block_count; ++b) {
            const std::string block = "blocks." + std::to_string(b) + ".";
            add_linear(block + "filter", 3 * F, R, 0.3);
            add_linear(block + "message.hidden", F, F, 1);
            add_linear(block + "message.output", 3 * F, F, 1);
            add_random(block + "update.mix.weight", {2 * F, F}, std::sqrt(3.0 / static_cast<double>(F)));
            add_linear(block + "update.hidden", F, 2 * F, 1);
            add_linear(block + "update.output", 3 * F, F, 1);
        }
        add_linear("readout.hidden", F / 2, F, 1);
        add_linear("readout.output", 1, F / 2, 1);
        write();
    }
    RandomModel(const RandomModel&) = delete;
    ~RandomModel() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    std::string path() const { return path_.string(); }

private:
    void add(const std::string& name, const char* type, const std::vector<int64_t>& shape, const void* data,
             size_t bytes) {
        header_[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {data_.size(), data_.size() + bytes}}};
        data_.append(static_cast<const char*>(data), bytes);
    }
    void add(const std::string& name, const std::vector<int64_t>& shape, const Numbers& numbers) {
        add(name, "F64", shape, numbers.data(), numbers.size() * sizeof(double));
    }
    void add_random(const std::string& name, const std::vector<int64_t>& shape, double size) {
        size_t count = 1;
        for (const int64_t n : shape) count *= static_cast<size_t>(n);
        Numbers numbers(count);
        for (double& x : numbers) x = std::uniform_real_distribution<double>(-size, size)(random_);
        add(name, shape, numbers);
    }
    void add_linear(const std::string& name, int64_t out, int64_t in, double gain) {
        add_random(name + ".weight", {out, in}, gain * std::sqrt(3.0 / static_cast<double>(in)));
        add_random(name + ".bias", {out}, 0.3 * gain);
    }
    void write() const {
        std::string header = header_.dump();
        header.resize((header.size() + 7) / 8 * 8, ' ');
        const uint64_t size = header.size();
        char bytes[8];
        std::memcpy(bytes, &size, sizeof size);
        std::ofstream file(path_, std::ios::binary);
        file.write(bytes, sizeof bytes);
        file << header << data_;
    }

    std::filesystem::path path_;
    std::mt19937 random_;
    nlohmann::json header_ = nlohmann::json::object();
    std::string data_;
};

struct System {
    std::vector<int32_t> numbers;
    Numbers positions;
    Mat3 cell{};
    bool is_periodic = false;

    SystemView view() const {
        SystemView view;
        view.atom_count = static_cast<int64_t>(numbers.size());
        view.atomic_numbers = numbers.data();
        view.positions = positions.data();
        view.cell = cell;
        view.periodic = {is_periodic, is_periodic, is_periodic};
        return view;
    }
};
// Atoms near the points of a grid 1.6 angstrom apart.
System random_system(unsigned seed, int atom_count, bool is_periodic) {
    constexpr double kSpacing = 1.6;
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> shift(-0.25, 0.25);
    const int side = std::max(1, static_cast<int>(std::ceil(std::cbrt(atom_count))));
    const int kNumbers[] = {1, 6, 8};
    System system;
    for (int i = 0; i < atom_count; ++i) {
        const int at[3] = {i % side, i / side % side, i / side / side};
        system.numbers.push_back(kNumbers[random() % 3]);
        for (const int x : at) system.positions.push_back(kSpacing * x + shift(random));
    }
    if (is_periodic) {
        const double edge = kSpacing * side;
        system.is_periodic = true;
        system.cell = {{{edge, 0, 0}, {0.3, edge, 0}, {0.1, -0.2, edge}}};
    }
    return system;
}
void shake(System& system, unsigned seed, double amplitude) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> shift(-amplitude, amplitude);
    for (double& x : system.positions) x += shift(random);
}

struct Found {
    double energy = NAN;
    Numbers forces, virial, energies, virials, descriptors;

    Found(size_t atoms, size_t width)
        : forces(3 * atoms, NAN),
          virial(9, NAN),
          energies(atoms, NAN),
          virials(9 * atoms, NAN),
          descriptors(width * atoms, NAN) {}
    Results results() {
        Results results;
        results.outputs = {&energy, forces.data(), virial.data(), energies.data(), virials.data(), descriptors.data()};
        return results;
    }
    bool operator==(const Found&) const = default;
};
Found evaluate(Session& session, const System& system) {
    Found found(system.numbers.size(), static_cast<size_t>(session.model().summary().descriptor_count));
    const SystemView view = system.view();
    const Results results = found.results();
    session.evaluate({&view, 1}, {&results, 1});
    return found;
}
Session session_on(const std::shared_ptr<const Model>& model, const char* device, Precision precision) {
    SessionOptions options;
    options.device = device;
    options.precision = precision;
    options.thread_count = 2;
    return Session(model, options);
}

struct Tolerance {
    double energy_per_atom, forces, virial, descriptors;
};
constexpr Tolerance kDouble = {1e-9, 1e-8, 1e-7, 1e-9}, kMixed = {1e-5, 2e-5, 2e-4, 1e-4},
                    kFast = {5e-3, 5e-3, 2e-2, 2e-2};

double size_of(const Numbers& numbers) {
    double largest = 1;
    for (const double x : numbers) largest = std::max(largest, std::abs(x));
    return largest;
}
// Tolerances are for numbers of size 1 and grow with the largest: random models give large ones.
void check_same(const Found& found, const Found& expected, const Tolerance& tolerance) {
    const double atoms = static_cast<double>(std::max<size_t>(1, expected.energies.size()));
    CHECK(std::abs(found.energy - expected.energy) <= tolerance.energy_per_atom * atoms * size_of(expected.energies));
    CHECK_ALL_CLOSE(found.energies, expected.energies, tolerance.energy_per_atom * size_of(expected.energies));
    CHECK_ALL_CLOSE(found.forces, expected.forces, tolerance.forces * size_of(expected.forces));
    CHECK_ALL_CLOSE(found.virial, expected.virial, tolerance.virial * std::sqrt(atoms) * size_of(expected.virial));
    CHECK_ALL_CLOSE(found.virials, expected.virials, tolerance.virial * size_of(expected.virials));
    CHECK_ALL_CLOSE(found.descriptors, expected.descriptors, tolerance.descriptors * size_of(expected.descriptors));
}
const Tolerance& tolerance_of(Precision precision) {
    return precision == Precision::fp64 ? kDouble : precision == Precision::fast ? kFast : kMixed;
}

}  // namespace

TEST_CASE("PaiNN models that the GPU lacks are refused by name, with and without a GPU") {
    painn::Weights weights;
    weights.hidden = 96;
    CHECK(!painn::gpu::why_not_on_gpu(weights).empty());
    CHECK_THROWS_AS(painn::gpu::make_gpu_evaluator(std::make_shared<painn::Weights>(weights), {}), Error);
}

TEST_CASE("PaiNN of all widths on the GPU agrees with the reference, alone and in crystals, and repeats its bits") {
    if (!has_gpu()) return;
    struct Case {
        int width, blocks, radial;
        bool has_repulsion;
    };
    for (const Case& each : {Case{32, 1, 3, false}, Case{32, 3, 20, true}, Case{64, 2, 40, true},
                             Case{128, 3, 20, true}, Case{256, 2, 63, false}}) {
        CAPTURE(each.width);
        CAPTURE(each.blocks);
        const RandomModel file(each.width, each.blocks, each.radial, each.has_repulsion);
        const auto model = load_model(file.path());
        Session reference = session_on(model, "reference", Precision::fp64);
        for (const System& system :
             {random_system(1, 11, false), random_system(2, 37, true), random_system(3, 64, true)}) {
            const Found expected = evaluate(reference, system);
            for (const Precision precision : {Precision::fp64, Precision::mixed, Precision::fast}) {
                CAPTURE(static_cast<int>(precision));
                Session gpu = session_on(model, "cuda", precision);
                const Found found = evaluate(gpu, system);
                check_same(found, expected, tolerance_of(precision));
                for (int repeat = 0; repeat < 3; ++repeat)
                    CHECK(evaluate(gpu, system) == found);  // plain launches, capture, replay
            }
        }
    }
}

TEST_CASE("PaiNN on the GPU has the same numbers in the shapes of kernels for many atoms") {
    if (!has_gpu()) return;
    struct Case {
        int width, atoms;
    };
    for (const Case& each : {Case{32, 700}, Case{32, 2500}, Case{32, 8600},
                             Case{128, 2500}}) {  // above one, two, all thresholds of sizes.h
        CAPTURE(each.width);
        CAPTURE(each.atoms);
        const RandomModel file(each.width, 2, 8, true);
        const auto model = load_model(file.path());
        Session reference = session_on(model, "reference", Precision::fp64);
        const System system = random_system(4, each.atoms, true);
        const Found expected = evaluate(reference, system);
        for (const Precision precision : {Precision::fp64, Precision::mixed, Precision::fast}) {
            Session gpu = session_on(model, "cuda", precision);
            const Found found = evaluate(gpu, system);
            check_same(found, expected, tolerance_of(precision));
            CHECK(evaluate(gpu, system) == found);
        }
    }
}

TEST_CASE("PaiNN on the GPU agrees with the reference with optimisations switched off") {
    if (!has_gpu()) return;
    const RandomModel file(128, 3, 20, true);
    const auto model = load_model(file.path());
    Session reference = session_on(model, "reference", Precision::fp64);
    for (const System& system :
         {random_system(1, 11, false), random_system(2, 37, true), random_system(3, 700, true)}) {
        const Found expected = evaluate(reference, system);
        for (const Precision precision : {Precision::fp64, Precision::mixed, Precision::fast})
            for (const Optimizations& each : {Optimizations{false, true, true}, Optimizations{true, false, true},
                                              Optimizations{true, true, false}, Optimizations{false, false, false}}) {
                CAPTURE(each.graphs);
                CAPTURE(each.neighbor_grid);
                CAPTURE(each.fused_messages);
                SessionOptions options;
                options.device = "cuda";
                options.precision = precision;
                options.optimizations = each;
                Session gpu(model, options);
                const Found found = evaluate(gpu, system);
                check_same(found, expected, tolerance_of(precision));
                for (int repeat = 0; repeat < 3; ++repeat) CHECK(evaluate(gpu, system) == found);
                CHECK(gpu.neighbor_build_count() == (each.neighbor_grid ? 1 : 4));
            }
    }
}

TEST_CASE("a walk of PaiNN on the GPU, by graphs and searches, stays with the reference and saves searches") {
    if (!has_gpu()) return;
    const RandomModel file(32, 2, 8, true);
    const auto model = load_model(file.path());
    Session reference = session_on(model, "reference", Precision::fp64),
            gpu = session_on(model, "cuda", Precision::fp64);
    System system = random_system(6, 50, true);
    constexpr int kSteps = 16;
    for (int step = 0; step < kSteps; ++step) {
        shake(system, static_cast<unsigned>(step), 0.02);
        check_same(evaluate(gpu, system), evaluate(reference, system), kDouble);
    }
    CHECK(gpu.neighbor_build_count() < kSteps / 2);
    for (double& x : system.positions) x += 5;  // too far: the step that found out is run again
    check_same(evaluate(gpu, system), evaluate(reference, system), kDouble);
}

TEST_CASE("sessions of PaiNN that alternate between systems and outputs repeat their bits") {
    if (!has_gpu()) return;
    const RandomModel file(64, 2, 8, true);
    const auto model = load_model(file.path());
    for (const Precision precision : {Precision::mixed, Precision::fp64, Precision::fast}) {
        Session session = session_on(model, "cuda", precision);
        const std::vector<System> systems = {random_system(1, 5, false), random_system(2, 40, true),
                                             random_system(3, 1, false), random_system(4, 90, false), System{}};
        std::vector<Found> first;
        for (const System& system : systems) first.push_back(evaluate(session, system));
        CHECK(first.back().energy == 0);
        CHECK(first[2].forces == Numbers(3, 0.0));
        for (int round = 0; round < 4; ++round)
            for (size_t i = 0; i < systems.size(); ++i) {
                CAPTURE(i);
                CHECK(evaluate(session, systems[i]) == first[i]);
                double energy = NAN;
                Results only_energy;
                only_energy.outputs.energy = &energy;
                const SystemView view = systems[i].view();
                session.evaluate({&view, 1}, {&only_energy, 1});
                CHECK(energy == first[i].energy);
            }
    }
}

TEST_CASE("a ragged batch of PaiNN on the GPU gives what single calls give, to rounding") {
    if (!has_gpu()) return;
    const RandomModel file(128, 3, 20, true);
    const auto model = load_model(file.path());
    for (const bool has_crystals : {true, false}) {  // without, the GPU finds the neighbours of all
        CAPTURE(has_crystals);
        std::vector<System> systems;
        for (unsigned i = 0; i < 20; ++i)
            systems.push_back(random_system(20 + i, 1 + static_cast<int>(3 * i), has_crystals && i % 3 == 0));
        systems.insert(systems.begin() + 3, System{});
        for (const Precision precision : {Precision::mixed, Precision::fp64, Precision::fast}) {
            Session session = session_on(model, "cuda", precision), alone = session_on(model, "cuda", precision);
            for (unsigned repeat = 0; repeat < 5; ++repeat) {
                for (System& system : systems) shake(system, repeat, 0.02);
                if (repeat == 3)
                    for (double& x : systems[7].positions) x += 9;  // a new search
                std::vector<Found> found;
                std::vector<SystemView> views;
                std::vector<Results> results;
                for (const System& system : systems) found.emplace_back(system.numbers.size(), 128);
                for (size_t i = 0; i < systems.size(); ++i) {
                    views.push_back(systems[i].view());
                    results.push_back(found[i].results());
                }
                session.evaluate(views, results);
                for (size_t i = 0; i < systems.size(); ++i) {
                    CAPTURE(i);
                    check_same(
                        found[i], evaluate(alone, systems[i]),
                        precision == Precision::fp64 ? Tolerance{1e-10, 1e-10, 1e-9, 1e-10} : tolerance_of(precision));
                }
            }
            if (!has_crystals) CHECK(session.neighbor_build_count() <= 3);
        }
    }
}

TEST_CASE("atoms at one place are refused by PaiNN on the GPU, and the session still works") {
    if (!has_gpu()) return;
    const RandomModel file(32, 2, 8, true);
    Session gpu = session_on(load_model(file.path()), "cuda", Precision::mixed);
    System system = {{1, 8}, {0, 0, 0, 0, 0, 0}};
    CHECK_THROWS_AS(evaluate(gpu, system), Error);
    system.positions[3] = 1.1;
    CHECK(std::isfinite(evaluate(gpu, system).energy));
}

TEST_CASE("the embedded student in fast has forces of water within 2 meV/A of fp64") {
    if (!has_gpu()) return;
    const auto model = load_model("builtin");
    for (const int side : {2, 4, 9, 15}) {  // 24 to 10,125 atoms: all shapes of kernels
        CAPTURE(side);
        System water;
        std::mt19937 random(static_cast<unsigned>(side));
        std::uniform_real_distribution<double> shift(-0.05, 0.05), turns(0, 6.28);
        const double spacing = 3.104, half_angle = 0.912, length = side * spacing;
        for (int i = 0; i < side * side * side; ++i) {
            const double at[3] = {spacing * (i % side), spacing * (i / side % side), spacing * (i / side / side)},
                         turn = turns(random);
            water.numbers.insert(water.numbers.end(), {8, 1, 1});
            for (int atom = 0; atom < 3; ++atom) {
                const double angle = turn + (atom == 1 ? half_angle : -half_angle), bond = atom == 0 ? 0 : 0.96;
                const double offset[3] = {bond * std::cos(angle), bond * std::sin(angle), 0};
                for (int k = 0; k < 3; ++k) water.positions.push_back(at[k] + offset[(k + i) % 3] + shift(random));
            }
        }
        water.is_periodic = true;
        water.cell = {{{length, 0, 0}, {0, length, 0}, {0, 0, length}}};
        Session exact = session_on(model, "cuda", Precision::fp64), fast = session_on(model, "cuda", Precision::fast);
        const Found expected = evaluate(exact, water), found = evaluate(fast, water);
        double worst = 0, square = 0, sum = 0;
        for (size_t i = 0; i < expected.forces.size(); ++i) {
            const double off = found.forces[i] - expected.forces[i];
            worst = std::max(worst, std::abs(off));
            square += off * off;
            sum += expected.forces[i] * expected.forces[i];
        }
        const double count = static_cast<double>(expected.forces.size());
        MESSAGE(water.numbers.size() << " atoms, meV/A: rms force " << 1e3 * std::sqrt(sum / count) << ", rms error "
                                     << 1e3 * std::sqrt(square / count) << ", largest error " << 1e3 * worst);
        CHECK_ALL_CLOSE(found.forces, expected.forces, 2e-3 * std::max(1.0, size_of(expected.forces)));
        CHECK_ALL_CLOSE(found.energies, expected.energies, 2e-3);
        CHECK(evaluate(fast, water) == found);
    }
}

#ifdef MLFF_HAS_CUDA
TEST_CASE("device pointers of PaiNN give the bits of the host's entry point") {
    if (!has_gpu()) return;
    const RandomModel file(64, 2, 20, true);
    const auto model = load_model(file.path());
    System system = random_system(8, 60, true);
    const size_t atoms = system.numbers.size(), width = 64,
                 total = 3 * atoms + 1 + 3 * atoms + 9 + atoms + 9 * atoms + width * atoms;
    for (const Precision precision : {Precision::mixed, Precision::fp64, Precision::fast}) {
        Session on_host = session_on(model, "cuda", precision), on_device = session_on(model, "cuda", precision);
        double* memory = nullptr;
        REQUIRE(cudaMalloc(&memory, total * sizeof(double)) == cudaSuccess);
        REQUIRE(cudaMemset(memory, 0xff, total * sizeof(double)) == cudaSuccess);
        for (int step = 0; step < 4; ++step) {
            shake(system, static_cast<unsigned>(step), 0.02);
            const Found expected = evaluate(on_host, system);
            REQUIRE(cudaMemcpy(memory, system.positions.data(), 3 * atoms * sizeof(double), cudaMemcpyHostToDevice) ==
                    cudaSuccess);
            double *energy = memory + 3 * atoms, *forces = energy + 1, *virial = forces + 3 * atoms,
                   *energies = virial + 9, *virials = energies + atoms, *descriptors = virials + 9 * atoms;
            SystemView view = system.view();
            view.positions = memory;
            Results results;
            results.outputs = {energy, forces, virial, energies, virials, descriptors};
            on_device.evaluate_on_device(view, results, nullptr);
            Found found(atoms, width);
            const auto download = [](Numbers& to, const double* from) {
                return cudaMemcpy(to.data(), from, to.size() * sizeof(double), cudaMemcpyDeviceToHost) == cudaSuccess;
            };
            REQUIRE(cudaMemcpy(&found.energy, energy, sizeof(double), cudaMemcpyDeviceToHost) == cudaSuccess);
            REQUIRE((download(found.forces, forces) && download(found.virial, virial) &&
                     download(found.energies, energies)));
            REQUIRE((download(found.virials, virials) && download(found.descriptors, descriptors)));
            CHECK(found == expected);
        }
        cudaFree(memory);
    }
}
#endif
