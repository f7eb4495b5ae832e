// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <dlfcn.h>

#include <chrono>
#include <csignal>
#include <filesystem>

#include "gpu/runtime/driver_library.h"
#include "gpu/runtime/host_facts.h"
#include "model_files.h"
#include "run_program.h"

using namespace mlff;
using namespace mlff::test;

namespace {

const std::string kFakeDrivers = MLFF_FAKE_DRIVER_DIR;

// A system made of a few files.
struct FakeRoot {
    TemporaryDirectory directory;
    std::string path = directory.file("");

    explicit FakeRoot(const std::string& proc_version) {
        put("/proc/version", proc_version + "\n");
        put("/proc/sys/kernel/osrelease", "5.15.153.1-odd\n");
        put("/proc/meminfo", "MemTotal:       16308476 kB\nMemFree:         1 kB\nMemAvailable:   15000000 kB\n");
        put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: X\nmodel name\t: Some CPU @ 3 GHz\n");
        put("/etc/os-release", "NAME=\"Ubuntu\"\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n");
    }
    void put(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(path + name).parent_path());
        write_bytes(path + name, text);
    }
};

std::vector<std::string> names_of(const std::vector<Trap>& traps) {
    std::vector<std::string> names;
    for (const Trap& trap : traps) {
        CHECK_FALSE(trap.problem.empty());
        CHECK_FALSE(trap.advice.empty());
        CHECK_FALSE(trap.instead.empty());
        names.push_back(trap.name);
    }
    return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("available memory is what the kernel says, or what a control group around this process has left") {
    const FakeRoot host("Linux version 6.1.0");
    constexpr int64_t kKernel = int64_t{15000000} * 1024;
    CHECK(available_memory(host.path) == kKernel);
    host.put("/proc/self/cgroup", "12:cpu:/\n0::/jobs/7\nno group\n");
    CHECK(available_memory(host.path) == kKernel);  // without limits
    CHECK(whole_memory(host.path) == read_host_facts(host.path).memory_bytes);
    host.put("/sys/fs/cgroup/jobs/7/memory.max", "max\n");
    host.put("/sys/fs/cgroup/jobs/7/memory.current", "1000\n");
    CHECK(available_memory(host.path) == kKernel);
    host.put("/sys/fs/cgroup/jobs/memory.max", "5000000\n");  // of the group around it
    host.put("/sys/fs/cgroup/jobs/memory.current", "2000000\n");
    CHECK(available_memory(host.path) == 3'000'000);
    host.put("/sys/fs/cgroup/jobs/memory.stat", "anon 1\ninactive_file 500000\nactive_file 7\n");
    CHECK(available_memory(host.path) == 3'500'000);
    CHECK(whole_memory(host.path) == 5'000'000);
    host.put("/sys/fs/cgroup/jobs/7/memory.max", "900\n");  // less than it has
    CHECK(available_memory(host.path) == 1);
    CHECK(whole_memory(host.path) == 900);

    const FakeRoot old("Linux version 4.18");  // version 1 of control groups
    old.put("/proc/self/cgroup", "9:name=systemd:/\n4:blkio,memory:/slurm/job\n");
    old.put("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "8000000\n");
    old.put("/sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "1000000\n");
    old.put("/sys/fs/cgroup/memory/slurm/job/memory.stat", "inactive_file 5\ntotal_inactive_file 100\n");
    old.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    old.put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
    CHECK(available_memory(old.path) == 7'000'100);
    CHECK(whole_memory(old.path) == 8'000'000);
    CHECK(available_memory(old.path + "/nowhere") == 0);
    CHECK(whole_memory(old.path + "/nowhere") == 0);
    CHECK(available_memory() > 0);  // of this machine
    CHECK(whole_memory() >= available_memory());
}

TEST_CASE("a processor without a name is known by its numbers") {
    const FakeRoot named("Linux version 6.1.0");
    CHECK(read_host_facts(named.path).processor_id == "Some CPU @ 3 GHz");
    named.put("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
    CHECK(read_host_facts(named.path).processor.empty());
    CHECK(read_host_facts(named.path).processor_id == "implementer 0x41, part 0xd0c");
}

TEST_CASE("facts of a system are read from its files, and WSL is told from Linux") {
    const FakeRoot wsl2("Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1)");
    const HostFacts facts = read_host_facts(wsl2.path);
    CHECK(facts.wsl == 2);
    CHECK(facts.distribution == "Ubuntu 24.04 LTS");
    CHECK(facts.kernel == "5.15.153.1-odd");
    CHECK(facts.processor == "Some CPU @ 3 GHz");
    CHECK(facts.memory_bytes == int64_t{16308476} * 1024);
    CHECK(facts.free_memory_bytes == int64_t{15000000} * 1024);
    CHECK_FALSE(facts.has_wsl_driver);
    wsl2.put("/usr/lib/wsl/lib/libcuda.so.1", "");
    CHECK(read_host_facts(wsl2.path).has_wsl_driver);

    CHECK(read_host_facts(FakeRoot("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)").path).wsl == 1);
    const FakeRoot own_kernel("Linux version 6.6.0-custom (me@home)");
    CHECK(read_host_facts(own_kernel.path).wsl == 0);
    CHECK(read_host_facts(own_kernel.path, true).wsl == 2);

    // Files that are not there, or hold rubbish.
    const HostFacts nothing = read_host_facts("/no/such/root");
    CHECK(nothing.wsl == 0);
    CHECK(nothing.memory_bytes == 0);
    CHECK(nothing.distribution.empty());
    own_kernel.put("/proc/meminfo", "MemTotal: -5 kB\nMemAvailable: 99999999999999999999 kB\n");
    own_kernel.put("/etc/os-release", std::string("PRETTY_NAME=\n\0\xff", 15));
    const HostFacts rubbish = read_host_facts(own_kernel.path);
    CHECK(rubbish.memory_bytes == 0);
    CHECK(rubbish.free_memory_bytes == 0);
    CHECK(rubbish.distribution.empty());
}

TEST_CASE("the driver's libraries: none, complete, partial, only in the folder of WSL") {
    const DriverFacts none = probe_driver({"libmlff_no_such.so.1", "libmlff_no_such.so.2", "/no/such/folder"});
    CHECK(none.cuda_library.empty());
    CHECK(none.why_no_cuda.find("libmlff_no_such.so.1") != std::string::npos);
    CHECK(none.why_no_nvml.find("libmlff_no_such.so.2") != std::string::npos);
    CHECK(none.cuda_version == 0);

    const std::string full = kFakeDrivers + "/libmlff_fake_full.so";
    const DriverFacts complete = probe_driver({full, full, "/no/such/folder"});
    CHECK(complete.cuda_library == full);
    CHECK(complete.why_no_cuda.empty());
    CHECK_FALSE(complete.is_cuda_hidden);
    CHECK(complete.cuda_version == 12040);
    CHECK(complete.why_no_nvml.empty());
    CHECK(complete.driver_version == "570.86.15");

    const DriverFacts partial = probe_driver({full, kFakeDrivers + "/libmlff_fake_partial.so", "/no/such/folder"});
    CHECK(partial.why_no_nvml.find("nvmlSystemGetDriverVersion") != std::string::npos);
    CHECK(partial.driver_version.empty());
    const DriverFacts failing = probe_driver({full, kFakeDrivers + "/libmlff_fake_failing.so", "/no/such/folder"});
    CHECK(failing.why_no_nvml.find("status 9") != std::string::npos);

    // A file that is no library.
    const TemporaryDirectory directory;
    write_bytes(directory.file("libmlff_no_such.so.1"), "no library");
    const DriverFacts broken = probe_driver({"libmlff_no_such.so.1", "libmlff_no_such.so.1", directory.file("")});
    CHECK(broken.cuda_library.empty());
    CHECK_FALSE(broken.why_no_cuda.empty());
    load_driver_of_wsl({"libmlff_no_such.so.1", "", directory.file("")});

    // As the CUDA runtime looks for it: by its name alone.
    CHECK(dlopen("libmlff_fake_hidden.so", RTLD_NOW) == nullptr);
    load_driver_of_wsl({"libmlff_fake_hidden.so", "", kFakeDrivers});
    CHECK(dlopen("libmlff_fake_hidden.so", RTLD_NOW) != nullptr);
    const DriverFacts hidden = probe_driver({"libmlff_fake_other.so", full, kFakeDrivers});
    CHECK(hidden.is_cuda_hidden);
    CHECK(hidden.cuda_version == 12040);
}

TEST_CASE("known traps: each where it is, with advice and what mlff does instead") {
    HostFacts linux_host, wsl1, wsl2;
    wsl1.wsl = 1;
    wsl2.wsl = 2;
    DriverFacts none, good;
    none.why_no_cuda = none.why_no_nvml = "not there";
    good.cuda_library = "/usr/lib/wsl/lib/libcuda.so.1";
    good.cuda_version = 12040;
    CHECK(names_of(known_traps(linux_host, none, {})).empty());
    CHECK(names_of(known_traps(linux_host, good, {12040})).empty());
    CHECK(names_of(known_traps(linux_host, good, {12090})).empty());  // the same major version: compatible
    CHECK(names_of(known_traps(linux_host, good, {13000})) == Names{"old-driver"});
    CHECK(names_of(known_traps(linux_host, good, {})) == Names{"no-cuda-build"});
    CHECK(names_of(known_traps(wsl1, none, {12040})) == Names{"wsl1"});
    CHECK(names_of(known_traps(wsl2, none, {12040})) == Names{"wsl2-driver", "wsl2-triton"});
    wsl2.has_wsl_driver = true;
    CHECK(names_of(known_traps(wsl2, good, {12040})) == Names{"wsl2-triton"});
    DriverFacts odd = good;
    odd.is_cuda_hidden = true;
    odd.why_no_nvml = "it is incomplete";
    CHECK(names_of(known_traps(wsl2, odd, {12040})) == Names{"wsl2-libcuda", "wsl2-triton", "nvml"});
    odd = good;
    odd.cuda_library = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
    CHECK(names_of(known_traps(wsl2, odd, {12040})) == Names{"wsl2-two-drivers", "wsl2-triton"});
    CHECK(cuda_version_text(13000) == "13.0");
    CHECK(cuda_version_text(12040) == "12.4");
}

TEST_CASE("a program that is asked for something has a time limit") {
    using app::run_program;
    const app::ProgramResult good = run_program({"sh", "-c", "echo hello; echo noise >&2"}, 20);
    CHECK(good.output == "hello\n");
    CHECK(good.why_failed() == "");
    CHECK(run_program({"sh", "-c", "exit 3"}, 20).why_failed() == "it ended with exit code 3");
    CHECK(run_program({"/no/such/program"}, 20).why_failed() == "it could not be started");
    CHECK(run_program({"sh", "-c", "kill -BUS $$"}, 20).signal == SIGBUS);
    CHECK(run_program({"sh", "-c", "head -c 3000000 /dev/zero"}, 20).output.size() == 1 << 20);
    const auto begin = std::chrono::steady_clock::now();
    // The child of the child holds the pipe; and one that closes its output goes on.
    CHECK(run_program({"sh", "-c", "echo begun; sleep 100 & sleep 100"}, 0.3).is_timed_out);
    CHECK(run_program({"sh", "-c", "exec >&-; sleep 100"}, 0.3).why_failed() == "it did not end in time");
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}
