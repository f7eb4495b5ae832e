// SPDX-License-Identifier: MIT
#include "gpu/runtime/host_facts.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace mlff {
namespace {

std::string first_line_of(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// The value of the first line that begins with `key` and a separator: "MemTotal:  123 kB", "NAME=\"Debian\"".
std::string value_in(const std::string& path, const std::string& key, char separator) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(key) || line.find(separator) == std::string::npos) continue;
        std::string value = line.substr(line.find(separator) + 1);
        value.erase(0, value.find_first_not_of(" \t\""));
        value.erase(value.find_last_not_of(" \t\"\r") + 1);
        return value;
    }
    return "";
}

int64_t kilobytes_in(const std::string& path, const std::string& key) {
    const int64_t count = std::strtoll(value_in(path, key, ':').c_str(), nullptr, 10);
    return count > 0 && count < (int64_t{1} << 50) ? 1024 * count : 0;
}

// WSL 1 reports "Microsoft", WSL 2 "microsoft-standard-WSL2". A custom kernel reports neither, and only WSL 2 can have
// one.
int wsl_version(const std::string& proc_version, bool has_interop) {
    std::string lower = proc_version;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    if (lower.find("wsl2") != std::string::npos) return 2;
    if (lower.find("microsoft") != std::string::npos)
        return proc_version.find("Microsoft") != std::string::npos ? 1 : 2;
    return has_interop ? 2 : 0;
}

// The number in a file or, with `key`, the number after that word at the beginning of a line; -1 if there is none
// ("max").
int64_t number_in(const std::string& path, const std::string& key = "") {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!key.empty() && !line.starts_with(key + " ")) continue;
        const std::string digits = key.empty() ? line : line.substr(key.size() + 1);
        char* end = nullptr;
        const long long number = std::strtoll(digits.c_str(), &end, 10);
        return end == digits.c_str() || number < 0 ? -1 : number;
    }
    return -1;
}

// The names of the same files in the two versions of control groups.
struct GroupFiles {
    const char *limit, *usage, *cached;
};
constexpr GroupFiles kGroupFiles[] = {{"memory.max", "memory.current", "inactive_file"},
                                      {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}};

// Calls visit(folder, files) for a group and all enclosing groups. `top`: mount point of the groups.
template <class Visit>
void for_each_enclosing(const std::string& top, std::string group, const Visit& visit) {
    while (true) {
        for (const GroupFiles& files : kGroupFiles) visit(top + group + "/", files);
        if (group.empty()) return;
        group.erase(group.find_last_of('/') == std::string::npos ? 0 : group.find_last_of('/'));
    }
}

// Calls visit(folder, files) for all groups that limit the memory of this process.
template <class Visit>
void for_each_group(const std::string& root, const Visit& visit) {
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {  // version 2: "0::/a/b"; version 1: "4:memory:/a/b"
        const size_t first = line.find(':'), second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        std::string group = line.substr(second + 1);
        if (group == "/" || group.find("..") != std::string::npos) group.clear();
        if (controllers == ",,") for_each_enclosing(root + "/sys/fs/cgroup", group, visit);
        if (controllers.find(",memory,") != std::string::npos)
            for_each_enclosing(root + "/sys/fs/cgroup/memory", group, visit);
    }
}

void add_wsl_traps(const HostFacts& host, const DriverFacts& driver, std::vector<Trap>& traps) {
    if (host.wsl == 1) {
        traps.push_back({"wsl1", "WSL 1 has no access to GPUs",
                         "change to WSL 2, in Windows: wsl --set-version DISTRIBUTION 2", "runs on the CPU"});
        return;
    }
    if (!host.has_wsl_driver)
        traps.push_back({"wsl2-driver", "Windows offers no NVIDIA driver to WSL 2",
                         "install or update NVIDIA's driver in Windows, not in Linux", "runs on the CPU"});
    if (driver.is_cuda_hidden)
        traps.push_back(
            {"wsl2-libcuda", "libcuda is only in " + driver.cuda_library + ", where the loader does not look",
             "for other programs: echo /usr/lib/wsl/lib | sudo tee /etc/ld.so.conf.d/wsl.conf && sudo ldconfig",
             "loads it from there"});
    if (host.has_wsl_driver && !driver.cuda_library.empty() && driver.cuda_library.find("/wsl/") == std::string::npos)
        traps.push_back({"wsl2-two-drivers",
                         "libcuda comes from " + driver.cuda_library + ", a Linux driver that hides the one of Windows",
                         "remove NVIDIA's Linux driver packages: under WSL 2 the driver of Windows serves Linux too",
                         "uses what the loader finds, the CPU if that fails"});
    traps.push_back({"wsl2-triton",
                     "programs that use Triton (torch.compile, some kernels of cuEquivariance) are known to end with a "
                     "bus error under WSL 2",
                     "run the model natively, or in Python without torch.compile (TORCHDYNAMO_DISABLE=1)",
                     "native backends use no Triton"});
}

}  // namespace

std::string cuda_version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

HostFacts read_host_facts(const std::string& root, bool has_wsl_interop) {
    HostFacts facts;
    std::error_code error;
    const std::string release = std::filesystem::exists(root + "/etc/os-release", error) ? root + "/etc/os-release"
                                                                                         : root + "/usr/lib/os-release";
    facts.distribution = value_in(release, "PRETTY_NAME", '=');
    facts.kernel = first_line_of(root + "/proc/sys/kernel/osrelease");
    facts.processor = value_in(root + "/proc/cpuinfo", "model name", ':');
    facts.processor_id = facts.processor;
    if (facts.processor.empty())
        facts.processor_id = "implementer " + value_in(root + "/proc/cpuinfo", "CPU implementer", ':') + ", part " +
                             value_in(root + "/proc/cpuinfo", "CPU part", ':');
    facts.wsl = wsl_version(first_line_of(root + "/proc/version") + " " + facts.kernel, has_wsl_interop);
    facts.memory_bytes = kilobytes_in(root + "/proc/meminfo", "MemTotal");
    facts.free_memory_bytes = kilobytes_in(root + "/proc/meminfo", "MemAvailable");
    facts.has_wsl_driver = std::filesystem::exists(root + "/usr/lib/wsl/lib/libcuda.so.1", error);
    return facts;
}

int64_t available_memory(const std::string& root) {
    int64_t available = kilobytes_in(root + "/proc/meminfo", "MemAvailable");
    if (available == 0) return 0;
    for_each_group(root, [&](const std::string& folder, const GroupFiles& files) {
        const int64_t limit = number_in(folder + files.limit), usage = number_in(folder + files.usage);
        if (limit < 0 || usage < 0) return;
        const int64_t cached = std::max<int64_t>(0, number_in(folder + "memory.stat", files.cached));
        available = std::min(available, std::max<int64_t>(1, limit - usage + cached));
    });
    return available;
}

int64_t whole_memory(const std::string& root) {
    int64_t whole = kilobytes_in(root + "/proc/meminfo", "MemTotal");
    if (whole == 0) return 0;
    for_each_group(root, [&](const std::string& folder, const GroupFiles& files) {
        if (const int64_t limit = number_in(folder + files.limit); limit > 0) whole = std::min(whole, limit);
    });
    return whole;
}

std::vector<Trap> known_traps(const HostFacts& host, const DriverFacts& driver, const CudaBuild& build) {
    std::vector<Trap> traps;
    if (host.wsl > 0) add_wsl_traps(host, driver, traps);
    const bool has_driver = !driver.cuda_library.empty();
    if (has_driver && !driver.why_no_nvml.empty())
        traps.push_back({"nvml", "NVML, which nvidia-smi and others read, does not work: " + driver.why_no_nvml,
                         host.wsl == 2 ? "it comes with NVIDIA's driver in Windows: update that"
                                       : "install the driver's libnvidia-ml, of the same version as its libcuda",
                         "asks CUDA alone for GPUs and their memory"});
    if (has_driver && build.runtime_version == 0)
        traps.push_back({"no-cuda-build", "there is an NVIDIA driver, but this mlff was built without CUDA",
                         "build it where nvcc is", "runs on the CPU"});
    if (build.runtime_version > 0 && driver.cuda_version > 0 &&
        driver.cuda_version / 1000 < build.runtime_version / 1000)
        traps.push_back({"old-driver",
                         "the driver serves CUDA " + cuda_version_text(driver.cuda_version) +
                             ", this mlff has that of " + cuda_version_text(build.runtime_version),
                         "update the NVIDIA driver", "runs on the CPU"});
    return traps;
}

}  // namespace mlff
