// SPDX-License-Identifier: MIT
// The n-th allocation fails, for n = 1, 2, 3, ...: once, or from then on. Whatever was called then returns
// MLFF_ERROR_MEMORY and has written nothing, or it works; and the same objects give the right numbers afterwards. A
// program of its own: it takes the place of malloc.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "formats/module_container.h"
#include "mlff/mlff.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum class Failure { once, from_then_on };

constexpr long kNever = -1;
std::atomic<long> allocations_left{kNever};  // until one fails
std::atomic<bool> has_failed{false};
Failure failure_kind = Failure::once;

bool must_fail() {
    if (allocations_left.load(std::memory_order_relaxed) < 0) return false;
    if (has_failed && failure_kind == Failure::from_then_on) return true;
    if (allocations_left.fetch_sub(1) != 1) return false;
    has_failed = true;
    return true;
}

void* refuse() {
    errno = ENOMEM;
    return nullptr;
}

}  // namespace

// operator new calls malloc.
extern "C" {
void* malloc(size_t size) { return must_fail() ? refuse() : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return must_fail() ? refuse() : __libc_calloc(count, size); }
void* realloc(void* memory, size_t size) { return must_fail() ? refuse() : __libc_realloc(memory, size); }
void* aligned_alloc(size_t alignment, size_t size) { return must_fail() ? refuse() : __libc_memalign(alignment, size); }
void* memalign(size_t alignment, size_t size) { return must_fail() ? refuse() : __libc_memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
    *memory = must_fail() ? nullptr : __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}
}

namespace {

int fault_count = 0;
std::string wanted;  // a part of the names of those that are run

bool is_wanted(const char* name) { return std::string(name).find(wanted) != std::string::npos; }

void expect(bool condition, const char* scenario, long n, const char* what) {
    if (condition) return;
    ++fault_count;
    std::printf("%s, allocation %ld %s: %s (%s)\n", scenario, n,
                failure_kind == Failure::once ? "fails" : "and all after it fail", what, mlff_last_error());
}

// Runs `action` with a failing n-th allocation, for growing n until nothing fails. `good` is the status without
// failures. `before` and `after` are not disturbed; `after` is told the status.
struct Scenario {
    const char* name;
    std::function<mlff_status()> action;
    std::function<void(long n, mlff_status status)> after = [](long, mlff_status) {};
    std::function<void()> before = [] {};
    mlff_status good = MLFF_OK;
    long density = 50;  // of a range from n to e n, so many are tried
};

void run(const Scenario& scenario) {
    for (const Failure kind : {Failure::once, Failure::from_then_on}) {
        long runs = 0, n = 1;
        for (bool is_through = false; !is_through; n += 1 + n / scenario.density, ++runs) {
            failure_kind = kind;
            scenario.before();
            has_failed = false;
            allocations_left = n;
            const mlff_status status = scenario.action();
            allocations_left = kNever;
            is_through = !has_failed;
            expect(status == scenario.good || (status == MLFF_ERROR_MEMORY && has_failed), scenario.name, n,
                   mlff_status_name(status));
            scenario.after(n, status);
        }
        std::printf("%s: %ld failures %s, the last at %ld\n", scenario.name, runs,
                    kind == Failure::once ? "once" : "from then on", n);
        std::fflush(stdout);
    }
}

void load(const char* name, const std::string& path) {
    if (!is_wanted(name)) return;
    mlff_model* model = nullptr;
    Scenario scenario = {name, [&] { return mlff_model_load(path.c_str(), &model); }};
    scenario.after = [&](long n, mlff_status status) {
        mlff_model_info info = {};
        info.struct_size = sizeof info;
        expect((status == MLFF_OK) == (model != nullptr), name, n, "a model and a failure");
        if (model)
            expect(mlff_model_get_info(model, &info) == MLFF_OK && info.is_runnable == 1, name, n,
                   "the model cannot be run");
        mlff_model_free(model);
    };
    run(scenario);
}

void load_hostile(const char* name, const std::string& path, mlff_status good) {
    if (!is_wanted(name)) return;
    mlff_model* model = nullptr;
    Scenario scenario = {name, [&] { return mlff_model_load(path.c_str(), &model); }};
    scenario.good = good;
    run(scenario);
}

// Eight atoms of a crystal, and what is asked for.
struct Crystal {
    std::vector<int32_t> numbers;
    std::vector<double> positions = {0, 0,   0,   2.1, 0.1, 0,   0, 2.2, 0,   2.1, 2.1, 0.2,
                                     0, 0.1, 2.1, 2.3, 0,   2.1, 0, 2.1, 2.1, 2.1, 2.2, 2.1};
    double cell[9] = {4.4, 0, 0, 0.3, 4.4, 0, 0, 0, 4.4};
    double energy, stress[6], virial[9];
    std::vector<double> forces, atom_energies, atom_virials, descriptors;

    Crystal(std::vector<int32_t> elements, size_t descriptor_count) : descriptors(8 * descriptor_count) {
        for (size_t i = 0; i < 8; ++i) numbers.push_back(elements[i % elements.size()]);
        forces.resize(24);
        atom_energies.resize(8);
        atom_virials.resize(72);
        forget();
    }
    void forget() {
        energy = 77;
        for (double& number : forces) number = 77;
    }
    bool is_untouched() const { return energy == 77 && forces == std::vector<double>(24, 77.0); }
    mlff_system system() const {
        return {sizeof(mlff_system), 8, numbers.data(), positions.data(), cell, {1, 1, 1}, 0, 0};
    }
    mlff_result result() {
        return {sizeof(mlff_result),
                &energy,
                forces.data(),
                stress,
                virial,
                atom_energies.data(),
                atom_virials.data(),
                descriptors.empty() ? nullptr : descriptors.data()};
    }
    std::vector<double> numbers_found() const {
        std::vector<double> all = {energy};
        for (const auto* part : {&forces, &atom_energies, &atom_virials, &descriptors})
            all.insert(all.end(), part->begin(), part->end());
        all.insert(all.end(), stress, stress + 6);
        all.insert(all.end(), virial, virial + 9);
        return all;
    }
};

struct Evaluations {
    mlff_model* model = nullptr;
    mlff_session* session = nullptr;
    mlff_session_options options = {};

    Evaluations(const std::string& path, int threads, const char* device = "cpu") {
        options.struct_size = sizeof options;
        options.device = device;
        options.thread_count = threads;
        if (mlff_model_load(path.c_str(), &model) != MLFF_OK) std::printf("%s\n", mlff_last_error()), std::exit(1);
    }
    ~Evaluations() {
        mlff_session_free(session);
        mlff_model_free(model);
    }
    void make_session() {
        mlff_session_free(session);
        if (mlff_session_create(model, &options, &session) != MLFF_OK)
            std::printf("%s\n", mlff_last_error()), std::exit(1);
    }
    size_t descriptor_count() const {
        mlff_model_info info = {};
        info.struct_size = sizeof info;
        mlff_model_get_info(model, &info);
        return static_cast<size_t>(info.descriptor_count);
    }
    std::vector<int32_t> elements() const {
        std::vector<int32_t> found(118);
        int64_t count = 0;
        mlff_model_get_elements(model, found.data(), 118, &count);
        found.resize(static_cast<size_t>(std::min<int64_t>(count, 3)));
        return found;
    }
};

void create_session(const char* name, const std::string& path) {
    if (!is_wanted(name)) return;
    Evaluations made(path, 3);
    Crystal crystal(made.elements(), made.descriptor_count());
    const mlff_system system = crystal.system();
    mlff_result result = crystal.result();
    Scenario scenario = {name, [&] { return mlff_session_create(made.model, &made.options, &made.session); }};
    scenario.after = [&](long n, mlff_status status) {
        expect((status == MLFF_OK) == (made.session != nullptr), name, n, "a session and a failure");
        if (made.session)
            expect(mlff_session_evaluate(made.session, &system, &result) == MLFF_OK, name, n,
                   "the session does not work");
        mlff_session_free(made.session);
        made.session = nullptr;
    };
    run(scenario);
}

struct EvaluationCase {
    const char* name;
    std::string path;
    int threads = 1;
    int64_t count = 1;  // of systems, which may be joined
    double skin = 0;
    const char* device = "cpu";
    bool is_exact = false;
    long density = 20;
};

// New sessions, in which everything is yet to be allocated.
void evaluate(const EvaluationCase& tried) {
    const char* name = tried.name;
    const int64_t count = tried.count;
    if (!is_wanted(name)) return;
    Evaluations made(tried.path, tried.threads, tried.device);
    made.options.neighbor_skin_angstrom = tried.skin;
    made.options.exact_radial = tried.is_exact;
    std::vector<Crystal> crystals(static_cast<size_t>(count), Crystal(made.elements(), made.descriptor_count()));
    std::vector<mlff_system> systems;
    std::vector<mlff_result> results;
    for (Crystal& crystal : crystals) {
        crystal.positions[0] += 0.1 * static_cast<double>(&crystal - crystals.data());
        systems.push_back(crystal.system());
        results.push_back(crystal.result());
    }
    const auto evaluate_all = [&] {
        return mlff_session_evaluate_batch(made.session, count, systems.data(), results.data());
    };
    const auto found = [&] {
        std::vector<double> all;
        for (const Crystal& crystal : crystals) {
            const std::vector<double> part = crystal.numbers_found();
            all.insert(all.end(), part.begin(), part.end());
        }
        return all;
    };
    made.make_session();
    if (evaluate_all() != MLFF_OK) std::printf("%s: %s\n", name, mlff_last_error()), std::exit(1);
    const std::vector<double> right = found();

    Scenario scenario = {name, evaluate_all};
    scenario.density = tried.density;
    scenario.before = [&] {
        made.make_session();
        for (Crystal& crystal : crystals) crystal.forget();
    };
    scenario.after = [&](long n, mlff_status status) {
        if (status == MLFF_OK)
            expect(found() == right, name, n, "wrong numbers from a call that did not fail");
        else if (count == 1)
            expect(crystals[0].is_untouched(), name, n, "results were written");
        for (int again = 0; again < 2; ++again) {
            for (Crystal& crystal : crystals) crystal.forget();
            expect(evaluate_all() == MLFF_OK, name, n, "the next call fails");
            expect(found() == right, name, n, "wrong numbers from the next call");
        }
    };
    run(scenario);
}

void find_neighbors(const char* name, double skin) {
    if (!is_wanted(name)) return;
    mlff_neighbor_options options = {};
    options.struct_size = sizeof options;
    options.cutoff_angstrom = 4;
    options.skin_angstrom = skin;
    options.thread_count = 2;
    options.want_shifts = options.want_vectors = options.want_distances = options.want_reverse = 1;
    Crystal crystal({1}, 0);
    const mlff_system system = crystal.system();
    mlff_neighbors* neighbors = nullptr;
    mlff_neighbor_view view = {};
    view.struct_size = sizeof view;
    std::vector<double> right;
    const auto update = [&] {
        if (const mlff_status status = neighbors ? MLFF_OK : mlff_neighbors_create(&options, &neighbors);
            status != MLFF_OK)
            return status;
        return mlff_neighbors_update(neighbors, &system);
    };
    const auto found = [&] {
        mlff_neighbors_get_view(neighbors, &view);
        return std::vector<double>(view.distances, view.distances + view.edge_count);
    };
    update();
    right = found();
    Scenario scenario = {name, update};
    scenario.before = [&] {
        mlff_neighbors_free(neighbors);
        neighbors = nullptr;
    };
    scenario.after = [&](long n, mlff_status) {
        expect(update() == MLFF_OK && found() == right, name, n, "the next update is wrong");
        expect(update() == MLFF_OK && found() == right, name, n, "the update after it is wrong");
    };
    run(scenario);
    mlff_neighbors_free(neighbors);
}

}  // namespace

// The folder of goldens and, to run some only, a part of their names.
int main(int argument_count, char** arguments) {
    if (argument_count > 2) wanted = arguments[2];
    const std::string golden = arguments[1], folder = std::filesystem::temp_directory_path() /
                                                      ("mlff_failing_allocations_" + std::to_string(getpid()));
    const std::string mace = golden + "/mace/p03_mace_plain_l1.model", gated = golden + "/mace/p08_omol_like_f32.model",
                      painn = golden + "/painn/two_blocks_f32.safetensors",
                      sevennet = golden + "/nequip/p12_v093_names_of_22may_f32.pth",
                      nequix = golden + "/nequip/n03_lmax1_two_layers.nqx";
    const std::string container = folder + "/mace.safetensors", cut = folder + "/cut.model";
    std::filesystem::create_directories(folder);
    mlff::write_safetensors(container, mlff::pack_module(mlff::open_module_file(mace).root));
    std::ifstream whole(container, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(whole), {});
    std::ofstream(cut, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size() - 1));

    find_neighbors("neighbours", 0);
    find_neighbors("neighbours with a skin", 0.5);
    load("load of analytic", "analytic");
    load("load of the student", "builtin");
    load("load of PaiNN", painn);
    load("load of MACE", mace);
    load("load of cuequivariance", golden + "/mace/p18_cueq_ir_mul.model");
    load("load of SevenNet", sevennet);
    load("load of Nequix", nequix);
    load("load of our container", container);
    load_hostile("load of a damaged file", cut, MLFF_ERROR_FORMAT);
    create_session("session of analytic", "analytic");
    create_session("session of PaiNN", painn);
    create_session("session of MACE", mace);
    evaluate({"analytic", "analytic", 2});
    evaluate({"PaiNN", painn});
    evaluate({"PaiNN, batch, skin", painn, 2, 3, 0.5});
    evaluate({"PaiNN, reference", painn, 1, 1, 0, "reference", false, 10});
    evaluate({"MACE", mace, 1, 1, 0, "cpu", false, 60});
    evaluate({"MACE, batch, skin", mace, 2, 3, 0.5});
    evaluate({"MACE, gated", gated, 1, 1, 0, "cpu", true});
    evaluate({"MACE, reference", mace, 1, 1, 0, "reference", false, 10});
    evaluate({"Nequix", nequix, 1, 1, 0, "cpu", false, 60});
    evaluate({"Nequix, reference", nequix, 1, 1, 0, "reference", false, 10});
    evaluate({"SevenNet, batch, skin", sevennet, 2, 3, 0.5, "cpu", false, 60});
    std::filesystem::remove_all(folder);
    if (fault_count > 0) std::printf("%d faults\n", fault_count);
    return fault_count > 0;
}
