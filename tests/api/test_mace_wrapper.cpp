// SPDX-License-Identifier: MIT
// libmace_wrapper: the numbers of mace-torch, hostile arguments, threads, memory, the log. Compiled against the
// original declarations (tests/api/original) with the layout that old programs have. Usage: test_mace_wrapper
// GOLDEN_DIR
#include <mace_wrapper.h>
#include <mlff/mlff.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "../sanitized.h"

#ifdef MACE_WRAPPER_ABI_VERSION
#error "this is not the original header"
#endif
extern "C" const char* mace_get_version(void);  // ours alone

namespace {

using Json = nlohmann::json;

static_assert(sizeof(MACEResult) == 536 && offsetof(MACEResult, energy) == 0 && offsetof(MACEResult, forces) == 8);
static_assert(offsetof(MACEResult, num_atoms) == 16 && offsetof(MACEResult, success) == 20 &&
              offsetof(MACEResult, error_msg) == 24);

std::atomic<int> checks{0}, failures{0};

#define CHECK(condition)                                                                              \
    do {                                                                                              \
        ++checks;                                                                                     \
        if (!(condition)) {                                                                           \
            if (++failures <= 20) std::printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                                             \
    } while (0)
#define CHECK_CLOSE(found, expected, tolerance) CHECK(std::abs((found) - (expected)) <= (tolerance))  // NaN fails

constexpr double kPositions[9] = {0, 0, 0, 0.96, 0, 0, -0.24, 0.93, 0};
constexpr int kNumbers[3] = {8, 1, 1};
constexpr double kCell[9] = {5, 0, 0, 0, 6, 0, 0, 0, 7};
constexpr int kPeriodic[3] = {1, 1, 1};

bool has(const char* text, const char* words) {
    if (std::strstr(text, words)) return true;
    std::printf("'%s' expected in: %s\n", words, text);
    return false;
}

// A result full of rubbish, as one on the stack is.
MACEResult rubbish() {
    MACEResult result;
    std::memset(&result, 0x5a, sizeof result);
    return result;
}

bool is_refused(const MACEResult& result, const char* words) {
    const bool is_terminated = std::memchr(result.error_msg, 0, sizeof result.error_msg) != nullptr;
    return result.success == 0 && result.forces == nullptr && result.num_atoms == 0 && std::isnan(result.energy) &&
           is_terminated && has(result.error_msg, words);
}

void test_goldens(const std::string& folder, const char* name, const char* precision, double energy_tolerance,
                  double force_tolerance) {
    setenv("MACE_PRECISION", precision, 1);
    Json golden;
    std::ifstream(folder + "/" + name + ".json") >> golden;
    MACEHandle mace = mace_init((folder + "/" + golden["model_file"].get<std::string>()).c_str(), nullptr, "cpu", 0);
    CHECK(mace != nullptr && *mace_get_error(nullptr) == '\0' && *mace_get_error(mace) == '\0');
    double worst = 0;
    for (const Json& system : golden["systems"]) {
        const auto numbers = system["numbers"].get<std::vector<int>>();
        std::vector<double> positions, cell;
        std::vector<int> pbc;
        for (const Json& row : system["positions"]) positions.insert(positions.end(), row.begin(), row.end());
        for (const Json& row : system["cell"]) cell.insert(cell.end(), row.begin(), row.end());
        for (const Json& flag : system["pbc"]) pbc.push_back(flag.get<bool>());
        const Json& expected = system["outputs"]["float64"];
        const int count = static_cast<int>(numbers.size());
        MACEResult result = rubbish();
        const bool is_molecule = pbc == std::vector<int>{0, 0, 0};
        if (is_molecule)
            mace_calculate(mace, positions.data(), numbers.data(), count, &result);
        else
            mace_calculate_periodic(mace, positions.data(), numbers.data(), count, cell.data(), pbc.data(), &result);
        CHECK(result.success == 1 && result.num_atoms == count && result.error_msg[0] == '\0');
        if (result.success != 1) continue;
        CHECK_CLOSE(result.energy, expected["energy"].get<double>(), energy_tolerance * count);
        for (int i = 0; i < 3 * count; ++i) {
            const double wanted =
                expected["forces"][static_cast<size_t>(i / 3)][static_cast<size_t>(i % 3)].get<double>();
            CHECK_CLOSE(result.forces[i], wanted, force_tolerance);
            worst = std::max(worst, std::abs(result.forces[i] - wanted));
        }
        mace_free_result(&result);
        CHECK(result.forces == nullptr && result.num_atoms == 0);
        mace_free_result(&result);  // again: nothing happens
    }
    std::printf("%s, %s: %zu systems, largest difference of a force %.1e eV/A\n", name,
                *precision ? precision : "default", golden["systems"].size(), worst);
    CHECK(golden["systems"].size() > 5);
    mace_destroy(mace);
    unsetenv("MACE_PRECISION");
}

void test_refused_models(const std::string& folder) {
    CHECK(mace_init(nullptr, nullptr, "cpu", 0) == nullptr && has(mace_get_error(nullptr), "both NULL"));
    CHECK(mace_init("", "", "cpu", 0) == nullptr && has(mace_get_error(nullptr), "both NULL"));
    CHECK(mace_init("/no/such.model", "small", "cpu", 0) == nullptr && has(mace_get_error(nullptr), "/no/such.model"));
    CHECK(mace_init((folder + "/p02_mp0like_l1_c3_f32.json").c_str(), nullptr, "cpu", 0) == nullptr &&
          has(mace_get_error(nullptr), "p02_mp0like_l1_c3_f32.json"));
    CHECK(mace_init((folder + "/p20_state_dict.pt").c_str(), nullptr, "cpu", 0) == nullptr &&
          has(mace_get_error(nullptr), "state dict"));
    CHECK(mace_init((folder + "/p24_energy_dipoles.model").c_str(), nullptr, "toaster", 0) == nullptr);
    setenv("MLFF_MODELS", "/no/such/folder", 1);
    for (const char* type : {"small", "medium", "large"})
        CHECK(mace_init(nullptr, type, "cpu", 0) == nullptr &&
              has(mace_get_error(nullptr), (std::string("mlff model add FILE --name ") + type).c_str()) &&
              has(mace_get_error(nullptr), (std::string("mlff model fetch ") + type).c_str()) &&
              has(mace_get_error(nullptr), "https://github.com/ACEsuit/") && has(mace_get_error(nullptr), "MIT"));
    CHECK(has(mace_get_error(nullptr), "/no/such/folder"));
    CHECK(mace_init(nullptr, "../../etc/passwd", "cpu", 0) == nullptr &&
          has(mace_get_error(nullptr), "no name of a model"));
    unsetenv("MLFF_MODELS");
    const std::string model = folder + "/p03_mace_plain_l1.model";
    const auto refused = [&](const char* variable, const char* value) {
        setenv(variable, value, 1);
        CHECK(mace_init(model.c_str(), nullptr, "cpu", 0) == nullptr && has(mace_get_error(nullptr), value));
        unsetenv(variable);
    };
    CHECK(mace_init(model.c_str(), nullptr, "toaster", 0) == nullptr && has(mace_get_error(nullptr), "toaster"));
    refused("MACE_PRECISION", "fp8");
    refused("MACE_BACKEND", "basic");
    refused("MACE_THREADS", "-3");
    refused("MACE_THREADS", "two");
    refused("MACE_HEAD", "nobody");
    if (mlff_device_count() == 0)
        CHECK(mace_init(model.c_str(), nullptr, "cuda", 1) == nullptr &&
              has(mace_get_error(nullptr), mlff_device_why_none()));
    setenv("MACE_BACKEND", "python", 1);
    CHECK(mace_init("/no/such.model", nullptr, "cpu", 1) == nullptr && has(mace_get_error(nullptr), "/no/such.model"));
    unsetenv("MACE_BACKEND");
    const std::string several = folder + "/p07_nonlinear_mh.model";
    CHECK(mace_init(several.c_str(), nullptr, "cpu", 0) == nullptr && has(mace_get_error(nullptr), "omol"));
    setenv("MACE_HEAD", "omol", 1);
    MACEHandle mace = mace_init(several.c_str(), nullptr, "cpu", 0);
    unsetenv("MACE_HEAD");
    CHECK(mace != nullptr && *mace_get_error(nullptr) == '\0');
    mace_destroy(mace);
}

void test_hostile_arguments(const std::string& model) {
    MACEHandle mace = mace_init(model.c_str(), nullptr, "cpu", 0);
    CHECK(mace != nullptr);
    MACEResult result = rubbish();
    const auto molecule = [&](MACEHandle handle, const double* positions, const int* numbers, int count,
                              const char* words) {
        result = rubbish();
        mace_calculate(handle, positions, numbers, count, &result);
        CHECK(is_refused(result, words));
    };
    const auto periodic = [&](const double* positions, const double* cell, const int* pbc, const char* words) {
        result = rubbish();
        mace_calculate_periodic(mace, positions, kNumbers, 3, cell, pbc, &result);
        CHECK(is_refused(result, words));
    };
    molecule(nullptr, kPositions, kNumbers, 3, "NULL");
    molecule(mace, nullptr, kNumbers, 3, "positions is NULL");
    CHECK(has(mace_get_error(mace), "positions is NULL"));
    molecule(mace, kPositions, nullptr, 3, "atomic_numbers is NULL");
    molecule(mace, kPositions, kNumbers, 0, "num_atoms is 0");
    molecule(mace, kPositions, kNumbers, -7, "num_atoms is -7");
    const int strangers[3] = {8, 200, 1}, unknown[3] = {8, 92, 1};
    molecule(mace, kPositions, strangers, 3, "200");
    molecule(mace, kPositions, unknown, 3, "U");
    double odd[9];
    std::memcpy(odd, kPositions, sizeof odd);
    odd[4] = NAN;
    molecule(mace, odd, kNumbers, 3, "atom 1");
    odd[4] = INFINITY;
    molecule(mace, odd, kNumbers, 3, "atom 1");
    const double same_place[9] = {};
    molecule(mace, same_place, kNumbers, 3, "same place");
    periodic(kPositions, nullptr, kPeriodic, "cell is NULL");
    periodic(kPositions, kCell, nullptr, "pbc is NULL");
    const double flat[9] = {5, 0, 0, 5, 0, 0, 0, 0, 7}, broken[9] = {NAN, 0, 0, 0, 6, 0, 0, 0, 7};
    periodic(kPositions, flat, kPeriodic, "");
    CHECK(*result.error_msg != '\0');
    periodic(kPositions, broken, kPeriodic, "finite");
    mace_calculate(mace, kPositions, kNumbers, 3, nullptr);
    CHECK(has(mace_get_error(mace), "result is NULL"));
    mace_calculate_periodic(mace, kPositions, kNumbers, 3, kCell, kPeriodic, nullptr);
    mace_calculate(nullptr, nullptr, nullptr, 0, nullptr);
    mace_free_forces(nullptr);
    mace_free_result(nullptr);
    mace_destroy(nullptr);

    // Good calls still work, any flag but 0 is periodic, and open boundaries in a cell are a molecule.
    const int odd_flags[3] = {-1, 7, 1}, open[3] = {0, 0, 0};
    MACEResult first = rubbish(), second = rubbish();
    mace_calculate_periodic(mace, kPositions, kNumbers, 3, kCell, odd_flags, &first);
    mace_calculate_periodic(mace, kPositions, kNumbers, 3, kCell, kPeriodic, &second);
    CHECK(first.success == 1 && first.energy == second.energy);
    mace_free_forces(first.forces);
    mace_free_forces(second.forces);
    mace_calculate_periodic(mace, kPositions, kNumbers, 3, kCell, open, &first);
    mace_calculate(mace, kPositions, kNumbers, 3, &second);
    CHECK(first.success == 1 && first.energy == second.energy);
    mace_free_result(&first);
    mace_free_result(&second);

    // A handle that was destroyed, or never was, is found out.
    int never = 0;
    mace_destroy(mace);
    molecule(mace, kPositions, kNumbers, 3, "destroyed");
    CHECK(has(mace_get_error(mace), "destroyed"));
    mace_destroy(mace);
    mace_destroy(&never);
    molecule(&never, kPositions, kNumbers, 3, "destroyed");

    // A sentence longer than error_msg is cut.
    const std::string long_path = "/" + std::string(3000, 'x') + ".model";
    CHECK(mace_init(long_path.c_str(), nullptr, "cpu", 0) == nullptr && std::strlen(mace_get_error(nullptr)) == 511);
    molecule(nullptr, kPositions, kNumbers, 3, "mace_init failed");
}

// Threads with one handle, with handles of their own, and one that destroys the handle of all meanwhile.
void test_threads(const std::string& model) {
    setenv("MACE_THREADS", "1", 1);
    MACEHandle shared = mace_init(model.c_str(), nullptr, "cpu", 0);
    MACEResult expected = rubbish();
    mace_calculate(shared, kPositions, kNumbers, 3, &expected);
    CHECK(expected.success == 1);
    std::atomic<int> at_the_end{0};
    const auto work = [&](int number) {
        MACEHandle own = mace_init(model.c_str(), nullptr, "cpu", 0);
        for (int round = 0; round < 50; ++round)
            for (MACEHandle handle : {shared, own}) {
                MACEResult result = rubbish();
                const bool is_wrong = round % 5 == 4;
                mace_calculate(handle, kPositions, kNumbers, is_wrong ? -number : 3, &result);
                if (is_wrong)
                    CHECK(is_refused(result, ("num_atoms is " + std::to_string(-number)).c_str()) &&
                          has(mace_get_error(handle), "num_atoms"));
                else
                    CHECK(result.success == 1 && result.energy == expected.energy &&
                          std::memcmp(result.forces, expected.forces, 9 * sizeof(double)) == 0);
                mace_free_result(&result);
            }
        mace_destroy(own);
        for (++at_the_end;;) {  // until the shared handle is gone
            MACEResult result = rubbish();
            mace_calculate(shared, kPositions, kNumbers, 3, &result);
            CHECK(result.success == 1 ? result.energy == expected.energy : is_refused(result, "destroyed"));
            if (!result.success) return;
            mace_free_result(&result);
        }
    };
    std::vector<std::thread> threads;
    for (int number = 1; number <= 4; ++number) threads.emplace_back(work, number);
    std::thread([&] {
        CHECK(mace_init("/no/such.model", nullptr, "cpu", 0) == nullptr &&
              has(mace_get_error(nullptr), "/no/such.model"));
    }).join();
    CHECK(*mace_get_error(nullptr) == '\0');  // the error of another thread is not ours
    while (at_the_end < 4) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    mace_destroy(shared);
    for (std::thread& thread : threads) thread.join();
    mace_free_result(&expected);
    unsetenv("MACE_THREADS");
}

long resident_kilobytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmRSS:")) return std::strtol(line.c_str() + 6, nullptr, 10);
    return -1;
}

void test_memory(const std::string& model, int cycles) {
    const auto cycle = [&] {
        MACEHandle mace = mace_init(model.c_str(), nullptr, "cpu", 1);
        MACEResult result = rubbish();
        mace_calculate(mace, kPositions, kNumbers, 3, &result);
        CHECK(result.success == 1);
        mace_free_result(&result);
        mace_destroy(mace);
    };
    for (int i = 0; i < cycles / 10; ++i) cycle();
    const long before = resident_kilobytes();
    for (int i = 0; i < cycles; ++i) cycle();
    const long after = resident_kilobytes();
    std::printf("%d cycles of init, calculate, destroy: %ld kB before, %ld kB after\n", cycles, before, after);
    CHECK(before > 0 && after - before < 2048);  // a leak of 2 kB in a cycle would show
}

std::vector<std::string> log_lines;
void keep_line(mlff_log_level, const char* message, void*) { log_lines.emplace_back(message); }

void test_log(const std::string& model) {
    CHECK(mlff_log_write(MLFF_LOG_INFO, nullptr) == MLFF_ERROR_ARGUMENT &&
          mlff_log_write(77, "x") == MLFF_ERROR_ARGUMENT);
    mlff_set_log_callback(keep_line, MLFF_LOG_INFO, nullptr);
    const auto count = [](const char* words) {
        int found = 0;
        for (const std::string& line : log_lines) found += line.find(words) != std::string::npos;
        return found;
    };
    mace_destroy(mace_init(model.c_str(), nullptr, "cpu", 0));
    CHECK(count("enable_cueq") == 0 && count(" on cpu") == 2);  // of the session and of the wrapper
    mace_destroy(mace_init(model.c_str(), nullptr, "cpu", 1));
    CHECK(count("enable_cueq") == 1 && count("kernels of its own") == 1);
    mlff_set_log_callback(nullptr, 0, nullptr);
    int major = 0, minor = 0, patch = 0;
    CHECK(std::sscanf(mace_get_version(), "%d.%d.%d", &major, &minor, &patch) == 3);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s GOLDEN_DIR\n", argv[0]);
        return 2;
    }
    const std::string folder = argv[1], model = folder + "/p03_mace_plain_l1.model";
    CHECK(*mace_get_error(nullptr) == '\0');  // before anything was done
    for (const char* name : {"p02_mp0like_l1_c3_f32", "p03_mace_plain_l1", "p10_mace_1layer_c1_ell1"}) {
        test_goldens(folder, name, "fp64", 1e-7, 1e-7);
        test_goldens(folder, name, "", 1e-5, 5e-5);
    }
    test_refused_models(folder);
    test_hostile_arguments(model);
    test_threads(model);
    test_log(model);
    if (!mlff::test::kIsSanitized)
        test_memory(model, 1000);  // there freed memory is kept for a while, and leaks are found anyway
    std::printf("%d checks, %d failed\n", checks.load(), failures.load());
    return failures == 0 && checks > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
