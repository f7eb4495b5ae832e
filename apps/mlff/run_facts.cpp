// SPDX-License-Identifier: MIT
#include "run_facts.h"

#include <sys/utsname.h>

#include <ctime>

#include "build_commit.h"
#include "core/threads.h"
#include "cpu_kernels/kernel_table.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/host_facts.h"

namespace mlff::app {
namespace {

bench::Machine machine_of(const std::string& device) {
    utsname system{};
    uname(&system);
    bench::Machine machine;
    machine.processor = read_host_facts().processor;  // AArch64 kernels do not say it
    machine.architecture = system.machine;
    machine.instructions = kernels::choose_kernels<float>().name;
    machine.cores = available_cores();
    if (!names_gpu(device)) return machine;
    const GpuInventory& inventory = gpu_inventory();
    for (const Gpu& gpu : inventory.gpus) {
        if (gpu.ordinal != gpu_ordinal(*parse_device(device))) continue;
        machine.gpu = gpu.name;
        machine.gpu_memory_bytes = gpu.memory_bytes;
        machine.gpu_clock_MHz = gpu.clock_kHz / 1000;
    }
    machine.gpu_driver = cuda_version_text(inventory.driver_version);
    machine.gpu_runtime = cuda_version_text(inventory.runtime_version);
    return machine;
}

std::string time_text() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

}  // namespace

void add_run_facts(bench::RunFacts& facts, const std::string& device) {
    facts.mlff_version = MLFF_VERSION_STRING;
    facts.commit = build_commit();
    facts.time = time_text();
    facts.machine = machine_of(device);
}

}  // namespace mlff::app
