// SPDX-License-Identifier: MIT
// mlff doctor: what this machine offers, what mlff makes of it, and what stands in the way.
#include <sys/utsname.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/bytes_text.h"
#include "core/error.h"
#include "core/threads.h"
#include "cpu_kernels/kernel_check.h"
#include "engine/model_cache.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/host_facts.h"
#include "python_environments.h"
#include "python_models/environment.h"
#include "run_program.h"
#include "self_test.h"

namespace mlff::app {
namespace {

using Json = nlohmann::json;

constexpr double kSecondsForPython = 60;  // torch takes long to import from a slow disk
constexpr double kSecondsForCudaProgram = 10;

std::string environment_variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

struct CudaProgram {
    std::string path, version;  // "" = none, or a version that it does not say
};

// A program of the CUDA toolkit: of PATH, of CUDA_HOME, of /usr/local/cuda. `version`: what it prints before its
// version.
CudaProgram find_cuda_program(const std::string& name, const std::string& version) {
    std::vector<std::string> folders;
    std::istringstream path(environment_variable("PATH"));
    for (std::string folder; std::getline(path, folder, ':');) folders.push_back(folder);
    const std::string home = environment_variable("CUDA_HOME");
    if (!home.empty()) folders.push_back(home + "/bin");
    folders.emplace_back("/usr/local/cuda/bin");
    CudaProgram found;
    for (const std::string& folder : folders) {
        const std::string candidate = folder + "/" + name;
        if (folder.empty() || access(candidate.c_str(), X_OK) != 0) continue;
        const ProgramResult result = run_program({candidate, "--version"}, kSecondsForCudaProgram);
        std::smatch match;
        if (result.exit_code != 0) continue;
        if (std::regex_search(result.output, match, std::regex(version + " ([0-9]+(\\.[0-9]+)+)")))
            return {candidate, match[1]};
        if (found.path.empty()) found.path = candidate;
    }
    return found;
}

struct CacheState {
    std::string folder, why_not;  // why_not: "" if the index can be read
    size_t count = 0;
    std::vector<std::string> damaged;  // one sentence for each
};

CacheState check_cache() {
    const ModelCache cache;
    CacheState state;
    state.folder = cache.folder();
    try {
        const auto models = cache.list();
        state.count = models.size();
        for (const auto& [name, model] : models) try {
                cache.verify(name, model);
            } catch (const Error& error) {
                state.damaged.emplace_back(error.what());
            }
    } catch (const Error& error) {
        state.why_not = error.what();
    }
    return state;
}

struct Diagnosis {
    utsname system{};
    HostFacts host;
    DriverFacts driver;
    CudaProgram compiler, nsys, ncu;
    std::string kernels, why_no_kernels;  // the instruction set in use
    std::vector<kernels::KernelState> kernel_states;
    std::vector<Trap> traps;
    std::vector<PythonEnvironment> environments;
    CacheState cache;
    std::vector<BackendTest> backends;
    bool is_usable = true;
};

Diagnosis diagnose() {
    Diagnosis found;
    uname(&found.system);
    // Another root is for tests, which bring a system of their own.
    const std::string root = environment_variable("MLFF_DOCTOR_ROOT");
    found.host = read_host_facts(root, root.empty() && !environment_variable("WSL_INTEROP").empty());
    DriverLibraries libraries;
    libraries.wsl_folder = root + libraries.wsl_folder;
    found.driver = probe_driver(libraries);
    found.compiler = find_cuda_program("nvcc", "release");
    found.nsys = find_cuda_program("nsys", "version");
    found.ncu = find_cuda_program("ncu", "Version");
    try {
        found.kernels = kernels::choose_kernels<float>().name;
    } catch (const Error& error) {
        found.why_no_kernels = error.what();
    }
    found.kernel_states = kernels::check_all_kernels();
    found.traps = known_traps(found.host, found.driver, {gpu_inventory().runtime_version});
    for (const auto& folder : python::known_environments())
        found.environments.push_back(try_python_environment(folder.string(), kSecondsForPython));
    found.cache = check_cache();
    found.backends = test_backends();
    for (const BackendTest& backend : found.backends) found.is_usable = found.is_usable && backend.is_passed();
    for (const kernels::KernelState& state : found.kernel_states) found.is_usable = found.is_usable && state.is_right();
    return found;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json version_or_null(int version) { return version ? Json(cuda_version_text(version)) : Json(); }

Json program_or_null(const CudaProgram& program) {
    if (program.path.empty()) return {};
    return {{"path", program.path}, {"version", text_or_null(program.version)}};
}

// 0 if the GPU does not say: the report must not fail because of it.
int64_t free_memory_of(const Gpu& gpu) {
    try {
        return gpu_memory_state(gpu.ordinal).free;
    } catch (const Error&) {
        return 0;
    }
}

// The names of mlff_device_info, and the free memory.
Json gpu_json(const Gpu& gpu) {
    const auto known = [](auto number) { return number > 0 ? Json(number) : Json(); };
    return {{"name", gpu.name},
            {"compute_capability", gpu.compute_capability},
            {"memory_bytes", gpu.memory_bytes},
            {"free_memory_bytes", known(free_memory_of(gpu))},
            {"multiprocessor_count", known(gpu.multiprocessor_count)},
            {"l2_cache_bytes", known(gpu.l2_cache_bytes)},
            {"shared_memory_per_block_bytes", known(gpu.shared_memory_per_block_bytes)},
            {"shared_memory_per_multiprocessor_bytes", known(gpu.shared_memory_per_multiprocessor_bytes)},
            {"clock_kHz", known(gpu.clock_kHz)},
            {"memory_clock_kHz", known(gpu.memory_clock_kHz)},
            {"memory_bus_bits", known(gpu.memory_bus_bits)},
            {"memory_bandwidth", known(gpu.memory_bandwidth())}};
}

Json diagnosis_json(const Diagnosis& found) {
    const GpuInventory& inventory = gpu_inventory();
    Json gpus = Json::array(), traps = Json::array(), environments = Json::array(), backends = Json::array(),
         kernel_states = Json::array();
    for (const Gpu& gpu : inventory.gpus) gpus.push_back(gpu_json(gpu));
    for (const Trap& trap : found.traps)
        traps.push_back(
            {{"name", trap.name}, {"problem", trap.problem}, {"advice", trap.advice}, {"instead", trap.instead}});
    for (const PythonEnvironment& one : found.environments)
        environments.push_back(
            {{"folder", one.folder},
             {"python", text_or_null(one.version)},
             {"why_not", text_or_null(one.why_not)},
             {"works", one.works},
             {"broken", one.broken},
             {"gpu_packages",
              {{"cupy", text_or_null(one.gpu_package("cupy"))}, {"triton", text_or_null(one.gpu_package("triton"))}}}});
    for (const BackendTest& one : found.backends)
        backends.push_back(
            {{"model", one.model},
             {"device", one.device},
             {"kernels", text_or_null(one.kernels)},
             {"precision", one.precision},
             {"works", one.is_passed()},
             {"force_difference", std::isfinite(one.force_difference) ? Json(one.force_difference) : Json()},
             {"limit", one.limit},
             {"milliseconds", one.milliseconds > 0 ? Json(one.milliseconds) : Json()},
             {"why_failed", text_or_null(one.why_failed)}});
    for (const kernels::KernelState& one : found.kernel_states)
        kernel_states.push_back(
            {{"name", one.name}, {"works", one.is_right()}, {"why_failed", text_or_null(one.fault_text())}});
    return {{"mlff", MLFF_VERSION_STRING},
            {"system", std::string(found.system.sysname) + " " +
                           (found.host.kernel.empty() ? found.system.release : found.host.kernel)},
            {"distribution", text_or_null(found.host.distribution)},
            {"wsl", found.host.wsl ? Json(found.host.wsl) : Json()},
            {"architecture", found.system.machine},
            {"processor", found.host.processor},
            {"cores", available_cores()},
            {"kernels", text_or_null(found.kernels)},
            {"kernel_checks", kernel_states},
            {"memory_bytes", found.host.memory_bytes},
            {"free_memory_bytes", found.host.free_memory_bytes},
            {"cuda_runtime", version_or_null(inventory.runtime_version)},
            {"cuda_driver",
             version_or_null(found.driver.cuda_version ? found.driver.cuda_version : inventory.driver_version)},
            {"cuda_toolkit", text_or_null(found.compiler.version)},
            {"tools", {{"nsys", program_or_null(found.nsys)}, {"ncu", program_or_null(found.ncu)}}},
            {"driver_version", text_or_null(found.driver.driver_version)},
            {"libcuda", text_or_null(found.driver.cuda_library)},
            {"nvml",
             {{"library", text_or_null(found.driver.nvml_library)},
              {"works", found.driver.why_no_nvml.empty()},
              {"why_not", text_or_null(found.driver.why_no_nvml)}}},
            {"gpus", gpus},
            {"why_no_gpu", text_or_null(inventory.why_none)},
            {"traps", traps},
            {"python_environments", environments},
            {"model_cache",
             {{"folder", found.cache.folder},
              {"models", found.cache.count},
              {"damaged", found.cache.damaged},
              {"why_not", text_or_null(found.cache.why_not)}}},
            {"backends", backends},
            {"usable", found.is_usable}};
}

void doctor_row(const std::string& label, const std::string& text) {
    std::cout << std::left << std::setw(10) << label << std::right << as_message(text) << "\n";
}

std::string or_none(const std::string& text, const char* none = "none") { return text.empty() ? none : text; }

std::string program_text(const CudaProgram& program) {
    return program.path.empty() ? "none" : or_none(program.version, "of unknown version");
}

std::string gpu_text(const Gpu& gpu) {
    std::string text = concat(gpu.name, ", sm_", gpu.compute_capability, ", ", gpu.multiprocessor_count,
                              " multiprocessors, L2 ", bytes_text(gpu.l2_cache_bytes), ", ");
    if (gpu.clock_kHz > 0) text += concat((gpu.clock_kHz + 500) / 1000, " MHz, ");
    text += bytes_text(gpu.memory_bytes) + " memory";
    if (const int64_t free = free_memory_of(gpu); free > 0) text += ", " + bytes_text(free) + " free";
    return gpu.memory_bandwidth() > 0 ? text + ", at most " + bytes_text(gpu.memory_bandwidth()) + "/s" : text;
}

void print_machine(const Diagnosis& found) {
    std::cout << "mlff " << MLFF_VERSION_STRING << "\n";
    doctor_row("system", concat(or_none(found.host.distribution, "unknown distribution"), ", ", found.system.sysname,
                                " ", found.host.kernel, ", ", found.system.machine,
                                found.host.wsl ? ", WSL " + std::to_string(found.host.wsl) : ""));
    doctor_row(
        "cpu",
        concat(found.host.processor.empty() ? "" : found.host.processor + ", ", available_cores(),
               " cores, kernels for ", found.kernels.empty() ? "nothing: " + found.why_no_kernels : found.kernels, ", ",
               bytes_text(found.host.memory_bytes), " memory, ", bytes_text(found.host.free_memory_bytes), " free"));
    const GpuInventory& inventory = gpu_inventory();
    doctor_row(
        "cuda",
        concat("runtime ", inventory.runtime_version ? cuda_version_text(inventory.runtime_version) : "not built in",
               ", driver ", found.driver.cuda_version ? "for " + cuda_version_text(found.driver.cuda_version) : "none",
               found.driver.driver_version.empty() ? "" : " (" + found.driver.driver_version + ")", ", toolkit ",
               or_none(found.compiler.version), ", NVML ",
               found.driver.why_no_nvml.empty()    ? "works"
               : found.driver.nvml_library.empty() ? "none"
                                                   : "does not work"));
    for (const Gpu& gpu : inventory.gpus) doctor_row("gpu", gpu_text(gpu));
    if (!inventory.why_none.empty()) doctor_row("gpu", "none: " + inventory.why_none);
    doctor_row("tools", "nsys " + program_text(found.nsys) + ", ncu " + program_text(found.ncu));
}

void print_environments(const Diagnosis& found) {
    if (found.environments.empty()) doctor_row("python", "no environment");
    for (const PythonEnvironment& environment : found.environments) {
        std::string text = environment.folder + ": ";
        text += environment.why_not.empty() || !environment.version.empty() ? "Python " + environment.version
                                                                            : environment.why_not;
        for (const auto& [name, version] : environment.works) text += ", " + name + " " + version;
        for (const auto& [name, version] : environment.gpu_packages) text += ", " + name + " " + version;
        doctor_row("python", text);
        if (!environment.why_not.empty() && !environment.version.empty()) doctor_row("", "  " + environment.why_not);
        for (const auto& [name, why] : environment.broken)
            doctor_row("", "  " + name + " is installed but cannot be imported: " + why);
    }
    doctor_row("models", found.cache.why_not.empty()
                             ? concat(found.cache.count, " in the model cache ",
                                      or_none(found.cache.folder, "(no folder: neither HOME nor XDG_DATA_HOME is set)"))
                             : found.cache.why_not);
    for (const std::string& sentence : found.cache.damaged) doctor_row("", "  " + sentence);
}

void print_verdict(const Diagnosis& found) {
    for (const kernels::KernelState& state : found.kernel_states)
        if (!state.is_right())
            doctor_row("kernels", concat("for ", state.name, ": BROKEN, not used: ", state.fault_text()));
    for (const BackendTest& backend : found.backends) {
        std::ostringstream text;
        text << std::left << std::setw(7) << backend.device << std::setw(9) << backend.kernels << std::setw(6)
             << backend.precision << std::setw(8) << backend.model << std::right;
        if (backend.is_passed()) {
            text << "works: forces within " << std::setprecision(1) << std::scientific << backend.force_difference
                 << " eV/A of the reference";
            if (backend.milliseconds > 0)
                text << std::fixed << std::setprecision(2) << ", " << backend.milliseconds << " ms for 22 atoms";
        } else {
            text << "FAILS: " << backend.why_failed;
        }
        doctor_row("backend", text.str());
    }
    for (const Trap& trap : found.traps) {
        doctor_row("trap", trap.name + ": " + trap.problem);
        doctor_row("", "  advice: " + trap.advice);
        doctor_row("", "  mlff: " + trap.instead);
    }
    std::cout << (found.is_usable ? "usable\n" : "NOT usable: a backend fails\n");
}

int run_doctor(const std::string& json_path) {
    const Diagnosis found = diagnose();
    if (json_path != "-") {
        print_machine(found);
        print_environments(found);
        print_verdict(found);
    }
    if (!json_path.empty())
        write_text(json_path,
                   diagnosis_json(found).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return found.is_usable ? kGood : kDeviceTrouble;
}

}  // namespace

void add_doctor(CLI::App& app, Work& work) {
    auto json = std::make_shared<std::string>();
    CLI::App* command = app.add_subcommand("doctor", "check this machine: hardware, drivers, backends, known problems");
    add_json_option(*command, *json);
    command->footer(
        R"(Evaluates small models on every device and with the kernels of every instruction set, and compares
the forces with the plain double-precision loops. The exit code is 4 if a backend fails.

Examples:
  # A report to read
  mlff doctor
  # A report to attach to a question
  mlff doctor --json report.json)");
    command->callback([json, &work] { work = [json] { return run_doctor(*json); }; });
}

}  // namespace mlff::app
