// SPDX-License-Identifier: MIT
#include "profile.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/error.h"
#include "gpu/runtime/gpu.h"
#include "tools/bench/profile.h"

namespace mlff::app {
namespace {

constexpr int64_t kProfiledAtoms = 500;  // at least, unless --sizes says otherwise

std::string shell_quoted(const std::string& word) {
    if (!word.empty() &&
        word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:@%") ==
            std::string::npos)
        return word;
    std::string quoted = "'";
    for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

// What shows this case instruction by instruction.
std::vector<std::string> deeper_commands(const bench::Bench& bench, const bench::Report& report,
                                         const std::vector<int64_t>& sizes) {
    std::string list;
    for (int64_t size : sizes) list += (list.empty() ? "" : ",") + std::to_string(size);
    std::error_code error;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
    std::string command = concat(error ? "mlff" : shell_quoted(program), " bench --model ", shell_quoted(report.model),
                                 " --device ", report.device, " --precision ", report.precision);
    if (bench.model->summary().heads.size() > 1) command += " --head " + shell_quoted(report.head);
    command += " --profile --sizes " + list;
    if (names_gpu(report.device))
        return {"nsys profile --trace=cuda,nvtx -o mlff-profile " + command + " --quick",
                "ncu --nvtx --nvtx-include mlff@evaluation/ --launch-count 200 --set full -o mlff-kernels " + command +
                    " --quick"};
    return {concat("perf record -F 999 -g -o mlff.perf ", command, " --threads ", report.threads,
                   " && perf report -i mlff.perf"),
            "MLFF_CPU=" + std::string(report.machine.instructions == "avx512" ? "avx2" : report.machine.instructions) +
                " valgrind --tool=callgrind --collect-atstart=no '--toggle-collect=mlff::Session::evaluate(*' "
                "--callgrind-out-file=mlff.callgrind " +
                command + " --threads 1 --quick && callgrind_annotate mlff.callgrind"};
}

}  // namespace

int run_profile(bench::Bench& bench, const bench::Report& report, const ProfileOptions& options) {
    const bool prints_text = options.json != "-", is_terminal = isatty(STDERR_FILENO) == 1;
    const auto clear_line = [&] {
        if (is_terminal) std::cerr << "\r\033[K" << std::flush;
    };
    const std::vector<int64_t> sizes = bench.sizes.empty() ? std::vector<int64_t>{kProfiledAtoms} : bench.sizes;
    if (is_terminal) bench.announce = [](const std::string& what) { std::cerr << "\r\033[K" << what << std::flush; };
    Session session(bench.model, bench.options);
    bench.announce("measuring the peaks of this machine");
    const bench::Peaks peaks = bench.gpu_memory ? bench::measure_peaks_of_gpu(gpu_ordinal(*parse_device(report.device)))
                                                : bench::measure_peaks(bench.clock, session.team());
    clear_line();
    if (prints_text) {
        std::cout << report.model << ", " << report.device << ", " << report.precision << ", "
                  << bench::threads_text(report.threads) << ", " << report.material << "\n";
        std::printf("peaks of %s, measured: %.1f GFLOP/s in single precision, %.1f in double, %.1f GB/s of memory\n",
                    bench.gpu_memory ? "the GPU" : "the CPU with these threads", 1e-9 * peaks.flops_single,
                    1e-9 * peaks.flops_double, 1e-9 * peaks.bytes);
        std::fflush(stdout);
    }
    std::vector<bench::Profile> profiles;
    bool is_good = true;
    for (int64_t size : sizes) {
        profiles.push_back(bench::profile_evaluation(bench, session, bench::make_system(bench.material, size), peaks));
        is_good = is_good && profiles.back().is_identical;
        clear_line();
        if (prints_text) std::cout << profile_text(profiles.back()) << std::flush;
    }
    const std::vector<std::string> commands = deeper_commands(bench, report, sizes);
    if (prints_text)
        for (const std::string& command : commands)
            std::cout << (&command == commands.data() ? "\nfor more detail:\n  " : "  ") << command << "\n";
    if (!options.trace.empty()) write_text(options.trace, bench::trace_json(profiles).dump() + "\n");
    if (!options.json.empty()) {
        nlohmann::json json = report_json(report);
        for (const char* key : {"rows", "left_out", "failures"}) json.erase(key);
        json["format"] = "mlff-profile";
        json["peaks"] = {{"flop_per_s_single", peaks.flops_single},
                         {"flop_per_s_double", peaks.flops_double},
                         {"bytes_per_s", peaks.bytes}};
        json["profiles"] = nlohmann::json::array();
        for (const bench::Profile& profile : profiles) json["profiles"].push_back(profile_json(profile));
        json["commands"] = commands;
        json["passed"] = is_good;
        write_text(options.json, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    }
    if (prints_text && !is_good) std::cout << "FAIL: a profiled evaluation gives different numbers\n";
    return is_good ? kGood : kCheckFailed;
}

}  // namespace mlff::app
