// SPDX-License-Identifier: MIT
// libmace_wrapper: the functions of mace_wrapper.h on top of those of mlff.h, a library of its own.
//
// A handle is a number that is never used again, looked up in a table: one that was destroyed, or never was, is found
// out. The table shares the calculators with the threads that use them, so that a handle may be destroyed while one of
// its calculations goes on.
#include "mace_wrapper.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

#include "mlff/mlff.h"

namespace {

static_assert(sizeof(int) == sizeof(int32_t), "atomic numbers are passed on as they are");

constexpr size_t kMessageSize = sizeof(MACEResult::error_msg);

// Text that is always terminated and needs no memory, so that an error can always be kept. Cut, if at all, between two
// characters.
struct Message {
    char text[kMessageSize] = "";
    void set(const char* message) noexcept {
        size_t size = std::strlen(message);
        if (size >= kMessageSize) {
            size = kMessageSize - 1;
            while (size > 0 && (static_cast<unsigned char>(message[size]) & 0xc0) == 0x80) --size;
        }
        std::memcpy(text, message, size);
        text[size] = '\0';
    }
};

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void check(mlff_status status) {
    if (status != MLFF_OK) throw Failure(mlff_last_error());
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// To the log callback of mlff, and to standard error if the user asked for it.
void log_line(const std::string& line) {
    mlff_log_write(MLFF_LOG_INFO, ("mace_wrapper: " + line).c_str());
    if (const std::string wanted = variable("MACE_LOG"); !wanted.empty() && wanted != "0")
        std::fprintf(stderr, "mace_wrapper: %s\n", line.c_str());
}

struct ModelDeleter {
    void operator()(mlff_model* model) const { mlff_model_free(model); }
};
struct SessionDeleter {
    void operator()(mlff_session* session) const { mlff_session_free(session); }
};

struct Calculator {
    std::mutex mutex;  // a session serves one thread at a time
    std::unique_ptr<mlff_session, SessionDeleter> session;
    std::mutex error_mutex;
    Message error;

    void keep_error(const char* message) {
        const std::lock_guard lock(error_mutex);
        error.set(message);
    }
};

// ---- Handles ----

struct HandleTable {
    std::mutex mutex;
    std::map<uintptr_t, std::shared_ptr<Calculator>> calculators;
    uintptr_t last = 0;
    Message last_init_error;  // of the last thread that called mace_init
};

// Never destroyed: threads may still calculate while the program ends.
HandleTable& handles() {
    static HandleTable* table = new HandleTable;
    return *table;
}

std::shared_ptr<Calculator> find(MACEHandle handle) {
    HandleTable& table = handles();
    const std::lock_guard lock(table.mutex);
    const auto found = table.calculators.find(reinterpret_cast<uintptr_t>(handle));
    return found == table.calculators.end() ? nullptr : found->second;
}

thread_local Message init_error;  // of this thread
thread_local bool has_called_init = false;
thread_local Message given_error;  // what mace_get_error returned last on this thread

void keep_init_error(const char* message) noexcept {
    has_called_init = true;
    init_error.set(message);
    try {
        HandleTable& table = handles();
        const std::lock_guard lock(table.mutex);
        table.last_init_error.set(message);
    } catch (...) {  // no memory for the table: this thread knows all the same
    }
}

// ---- Choices ----

mlff_precision chosen_precision() {
    const std::string wanted = variable("MACE_PRECISION");
    if (wanted.empty() || wanted == "auto") return MLFF_PRECISION_AUTO;
    if (wanted == "mixed") return MLFF_PRECISION_MIXED;
    if (wanted == "fp64") return MLFF_PRECISION_FP64;
    if (wanted == "fp32") return MLFF_PRECISION_FP32;
    if (wanted == "fast") return MLFF_PRECISION_FAST;
    throw Failure("MACE_PRECISION is '" + wanted + "', expected auto, mixed, fp64, fp32 or fast");
}

int32_t chosen_threads() {
    const std::string wanted = variable("MACE_THREADS");
    if (wanted.empty()) return 0;
    int32_t count = 0;
    const char* end = wanted.data() + wanted.size();
    const auto parsed = std::from_chars(wanted.data(), end, count);
    if (parsed.ec != std::errc() || parsed.ptr != end || count < 0 || count > 4096)
        throw Failure("MACE_THREADS is '" + wanted + "', expected 0 (all cores) to 4096");
    return count;
}

bool wants_python() {
    const std::string wanted = variable("MACE_BACKEND");
    if (wanted.empty() || wanted == "native") return false;
    if (wanted == "python") return true;
    throw Failure("MACE_BACKEND is '" + wanted + "', expected native or python");
}

std::string model_file(const char* path, const char* type) {
    if (path && *path) return path;
    if (!type || !*type)
        throw Failure(
            "mace_init: model_path and model_type are both NULL or empty, expected a model file or the name of a model "
            "in the model cache");
    std::string found(4096, '\0');
    check(mlff_model_cache_path(type, found.data(), static_cast<int64_t>(found.size())));
    found.resize(std::strlen(found.c_str()));
    return found;
}

std::shared_ptr<Calculator> make_calculator(const char* path, const char* type, const char* device, bool enable_cueq) {
    const bool is_python = wants_python();
    const std::string file = model_file(path, type);
    const std::string name = is_python ? "python:mace:" + file + (enable_cueq ? "?cueq=1" : "") : file;
    mlff_model* loaded = nullptr;
    check(mlff_model_load(name.c_str(), &loaded));
    const std::unique_ptr<mlff_model, ModelDeleter> model(loaded);

    const std::string head = variable("MACE_HEAD");
    mlff_session_options options{};
    options.struct_size = sizeof options;
    options.device = device && *device ? device : "auto";
    options.precision = chosen_precision();
    options.thread_count = chosen_threads();
    options.head = head.empty() ? nullptr : head.c_str();
    mlff_session* session = nullptr;
    check(mlff_session_create(model.get(), &options, &session));
    auto calculator = std::make_shared<Calculator>();
    calculator->session.reset(session);
    log_line(name + " on " + mlff_session_device(session) + " (" + mlff_session_device_reason(session) + ")");
    if (enable_cueq && !is_python)
        log_line("enable_cueq: mlff runs the model with kernels of its own, cuEquivariance is not needed");
    return calculator;
}

// ---- Calculations ----

void clear(MACEResult& result) {
    result.energy = std::numeric_limits<double>::quiet_NaN();
    result.forces = nullptr;
    result.num_atoms = 0;
    result.success = 0;
    result.error_msg[0] = '\0';
}

void evaluate(Calculator& calculator, const mlff_system& system, MACEResult& result) {
    const auto count = static_cast<size_t>(system.atom_count);
    std::unique_ptr<double, decltype(&std::free)> forces(static_cast<double*>(std::malloc(3 * count * sizeof(double))),
                                                         &std::free);
    if (!forces) throw std::bad_alloc();
    double energy = 0;
    mlff_result outputs{};
    outputs.struct_size = sizeof outputs;
    outputs.energy = &energy;
    outputs.forces = forces.get();
    {
        const std::lock_guard lock(calculator.mutex);
        check(mlff_session_evaluate(calculator.session.get(), &system, &outputs));
    }
    result.energy = energy;
    result.forces = forces.release();
    result.num_atoms = static_cast<int>(system.atom_count);
    result.success = 1;
}

mlff_system checked_system(const double* positions, const int* atomic_numbers, int num_atoms) {
    if (!positions) throw Failure("positions is NULL, expected 3 numbers for each atom");
    if (!atomic_numbers) throw Failure("atomic_numbers is NULL, expected a number for each atom");
    if (num_atoms < 1) throw Failure("num_atoms is " + std::to_string(num_atoms) + ", expected 1 or more");
    mlff_system system{};
    system.struct_size = sizeof system;
    system.atom_count = num_atoms;
    system.atomic_numbers = atomic_numbers;
    system.positions = positions;
    return system;
}

std::string null_handle_sentence() {
    const std::string why = mace_get_error(nullptr);
    return "the handle is NULL" + (why.empty() ? "" : ": mace_init failed: " + why);
}

// Runs body(calculator), which fills the result; what it throws becomes the error of both the result and the handle.
template <class Body>
void calculate(MACEHandle handle, MACEResult* result, Body&& body) noexcept {
    if (result) clear(*result);
    Message error;
    std::shared_ptr<Calculator> calculator;
    try {
        calculator = find(handle);
        if (!handle) throw Failure(null_handle_sentence());
        if (!calculator) throw Failure("the handle is none that mace_init gave, or was destroyed");
        if (!result) throw Failure("result is NULL, expected a MACEResult to write to");
        body(*calculator);
        return;
    } catch (const std::bad_alloc&) {
        error.set("out of memory");
    } catch (const std::exception& thrown) {
        error.set(thrown.what());
    } catch (...) {
        error.set("an unknown exception");
    }
    if (result) {
        clear(*result);
        std::memcpy(result->error_msg, error.text, kMessageSize);
    }
    if (calculator) calculator->keep_error(error.text);
}

}  // namespace

MACEHandle mace_init(const char* model_path, const char* model_type, const char* device, int enable_cueq) {
    try {
        auto calculator = make_calculator(model_path, model_type, device, enable_cueq != 0);
        HandleTable& table = handles();
        uintptr_t number = 0;
        {
            const std::lock_guard lock(table.mutex);
            number = table.last + 1;
            table.calculators[number] = std::move(calculator);
            table.last = number;
        }
        keep_init_error("");
        return reinterpret_cast<MACEHandle>(number);
    } catch (const std::bad_alloc&) {
        keep_init_error("out of memory");
    } catch (const std::exception& error) {
        keep_init_error(error.what());
    } catch (...) {
        keep_init_error("an unknown exception");
    }
    return nullptr;
}

void mace_calculate(MACEHandle handle, const double* positions, const int* atomic_numbers, int num_atoms,
                    MACEResult* result) {
    calculate(handle, result, [&](Calculator& calculator) {
        evaluate(calculator, checked_system(positions, atomic_numbers, num_atoms), *result);
    });
}

void mace_calculate_periodic(MACEHandle handle, const double* positions, const int* atomic_numbers, int num_atoms,
                             const double* cell, const int* pbc, MACEResult* result) {
    calculate(handle, result, [&](Calculator& calculator) {
        mlff_system system = checked_system(positions, atomic_numbers, num_atoms);
        if (!pbc) throw Failure("pbc is NULL, expected 3 integers");
        if (!cell) throw Failure("cell is NULL, expected 9 numbers, one lattice vector per row");
        system.cell = cell;
        for (int k = 0; k < 3; ++k) system.periodic[k] = pbc[k] != 0;
        evaluate(calculator, system, *result);
    });
}

void mace_free_forces(double* forces) { std::free(forces); }

void mace_free_result(MACEResult* result) {
    if (!result) return;
    std::free(result->forces);
    result->forces = nullptr;
    result->num_atoms = 0;
}

void mace_destroy(MACEHandle handle) {
    std::shared_ptr<Calculator> calculator;  // goes, if it is the last owner, without the table's lock
    try {
        HandleTable& table = handles();
        const std::lock_guard lock(table.mutex);
        const auto found = table.calculators.find(reinterpret_cast<uintptr_t>(handle));
        if (found == table.calculators.end()) return;
        calculator = std::move(found->second);
        table.calculators.erase(found);
    } catch (...) {  // no memory for the table: then there is no handle either
    }
}

const char* mace_get_error(MACEHandle handle) {
    try {
        if (handle) {
            const auto calculator = find(handle);
            if (!calculator) return "the handle is none that mace_init gave, or was destroyed";
            const std::lock_guard lock(calculator->error_mutex);
            given_error = calculator->error;
        } else if (has_called_init) {
            given_error = init_error;
        } else {
            HandleTable& table = handles();
            const std::lock_guard lock(table.mutex);
            given_error = table.last_init_error;
        }
    } catch (...) {
        given_error.set("out of memory");
    }
    return given_error.text;
}

const char* mace_get_version(void) { return mlff_version_string(); }
