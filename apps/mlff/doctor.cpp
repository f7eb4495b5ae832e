// SPDX-License-Identifier: MIT
// mlff doctor: what this machine offers and what mlff makes of it.
#include <sys/utsname.h>

#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/threads.h"
#include "device/gpu.h"
#include "machine.h"

namespace mlff::app {
namespace {

using Json = nlohmann::json;

Json diagnose() {
    utsname system{};
    uname(&system);
    const GpuInventory& inventory = gpu_inventory();
    Json gpus = Json::array();
    for (const Gpu& gpu : inventory.gpus)
        gpus.push_back({{"name", gpu.name}, {"compute_capability", gpu.compute_capability}, {"memory_bytes", gpu.memory_bytes}});
    return {{"mlff", MLFF_VERSION_STRING},
            {"system", std::string(system.sysname) + " " + system.release},
            {"architecture", system.machine},
            {"processor", processor_name()},
            {"cores", available_cores()},
            {"cuda_runtime", inventory.runtime_version ? Json(cuda_version_text(inventory.runtime_version)) : Json()},
            {"cuda_driver", inventory.driver_version ? Json(cuda_version_text(inventory.driver_version)) : Json()},
            {"gpus", gpus},
            {"why_no_gpu", inventory.why_none.empty() ? Json() : Json(inventory.why_none)}};
}

int run_doctor(const std::string& json_path) {
    const Json report = diagnose();
    if (json_path != "-") {
        const std::string processor = report["processor"].get<std::string>();
        std::cout << "mlff " << MLFF_VERSION_STRING << " on " << report["system"].get<std::string>() << ", "
                  << report["architecture"].get<std::string>() << (processor.empty() ? "" : ", " + processor) << "\n"
                  << "cores   " << report["cores"] << "\n";
        std::cout << "cuda    runtime " << (report["cuda_runtime"].is_null() ? "not built in" : report["cuda_runtime"].get<std::string>())
                  << ", driver " << (report["cuda_driver"].is_null() ? "none" : report["cuda_driver"].get<std::string>()) << "\n";
        for (const Gpu& gpu : gpu_inventory().gpus)
            std::cout << "gpu     " << gpu.name << ", sm_" << gpu.compute_capability << ", " << (gpu.memory_bytes >> 20) << " MiB\n";
        if (!report["why_no_gpu"].is_null()) std::cout << "gpu     none: " << report["why_no_gpu"].get<std::string>() << "\n";
    }
    if (!json_path.empty()) write_text(json_path, report.dump(2) + "\n");
    return kGood;
}

}  // namespace

void add_doctor(CLI::App& app, Work& work) {
    auto json = std::make_shared<std::string>();
    CLI::App* command = app.add_subcommand("doctor", "what this machine offers: processor, GPU, driver");
    command->add_option("--json", *json, "write it as JSON to this file; '-' = standard output only");
    command->callback([json, &work] { work = [json] { return run_doctor(*json); }; });
}

}  // namespace mlff::app
