// SPDX-License-Identifier: MIT
// The command `mlff`: reads the command line, runs one subcommand, turns errors into one sentence and an exit code.
#include <algorithm>
#include <csignal>
#include <iostream>
#include <new>

#include "command.h"
#include "core/error.h"
#include "core/log.h"
#include "core/standard_output.h"
#include "help.h"
#include "man_pages.h"

namespace mlff::app {
namespace {

int exit_code_of(Status status) {
    switch (status) {
        case Status::ok: return kGood;
        case Status::argument: return kBadUsage;
        case Status::file:
        case Status::format:
        case Status::unsupported:
        case Status::system: return kBadInput;
        case Status::device:
        case Status::memory:
        case Status::internal: break;
    }
    return kDeviceTrouble;
}

// The man pages have the exit codes and the environment from here.
constexpr const char* kMainFooter =
    R"(mlff computes energies, forces and stresses with machine-learned force fields: MACE models as
mace-torch writes them, checkpoints of SevenNet, files of Nequix, PaiNN students, and Python models.
It runs on CPUs and on NVIDIA GPUs. 'mlff COMMAND --help' describes a command. Lengths are in A
(angstrom), energies in eV, times in fs. Errors are one sentence on standard error.

Exit codes:
  0    success
  1    a check failed, a structure did not relax, a crystal has no equation of state or is not
       stable, a system does not fit into memory, or --stop-sigma ended dynamics
  1    a check failed, a structure or a path did not converge, a system does not fit into memory, or
       --stop-sigma ended dynamics
  2    bad usage: an unknown command or option, or a value that makes no sense
  3    bad input: a file, an element, a cell or a model that cannot be used; a result that is not
       finite; output that cannot be written; dynamics that broke; a calibration that is missing;
       a download that failed
  4    trouble with the device or the machine: no such GPU, out of memory, a backend that fails
  130  Ctrl-C stopped the run cleanly; in general 128 + the number of the signal

Environment:
  MLFF_MODELS        folder of the model cache
  MLFF_CALIBRATIONS  folder of the calibrations for 'mlff plan'
  MLFF_CPU           instruction set of the CPU kernels; 'mlff doctor' names those of this machine
  MLFF_PYTHON_ENV    Python environment for models with names that begin with python:

Examples:
  # A first look, without any files
  mlff demo
  # Energies and forces of the structures of a file
  mlff eval water.xyz
  # Check this machine
  mlff doctor)";

void print_warning(int, const char* message, void*) { std::cerr << "mlff: warning: " << message << "\n"; }

// The end of every message about bad usage, with the command as far as it was understood.
std::string where_to_look(const CLI::App& app) {
    std::string command = app.get_name();
    for (auto chosen = app.get_subcommands(); !chosen.empty(); chosen = chosen.back()->get_subcommands())
        command += " " + chosen.back()->get_name();
    return " (try '" + command + " --help')";
}

int run(int argc, char** argv) {
    set_log_callback(print_warning, LogLevel::warning, nullptr);
    CLI::App app{"run machine-learned force fields", "mlff"};
    app.formatter(make_help_formatter());
    app.set_help_flag("-h,--help", "print this help and exit");
    app.set_version_flag("--version", std::string("mlff ") + MLFF_VERSION_STRING, "print the version and exit");
    const auto write_pages = [&app](const std::string& folder) {
        write_man_pages(app, folder);
        throw CLI::Success();
    };
    app.add_option_function<std::string>("--write-man-pages", write_pages, "for the build: write the man pages")
        ->group("");  // not in --help
    app.require_subcommand(1);
    Work work;
    add_eval(app, work);
    add_model(app, work);
    add_doctor(app, work);
    add_demo(app, work);
    add_distill(app, work);
    add_trust(app, work);
    add_md(app, work);
    add_relax(app, work);
    add_hessian(app, work);
    add_vibrations(app, work);
    add_eos(app, work);
    add_elastic(app, work);
    add_phonons(app, work);
    add_neb(app, work);
    add_validate(app, work);
    add_verify(app, work);
    add_bench(app, work);
    add_plan(app, work);
    add_compare(app, work);
    add_serve(app, work);
    app.footer(kMainFooter);  // after the commands, which would inherit it
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    const auto is_chosen = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && std::none_of(commands.begin(), commands.end(), is_chosen)) {
        std::cerr << "mlff: unknown command '" << argv[1] << "' (try 'mlff --help')\n";
        return kBadUsage;
    }
    try {
        app.parse(argc, argv);
        return work();
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
        fail(Status::argument, error.what(), where_to_look(app));
    } catch (const Error& error) {
        if (error.status() != Status::argument) throw;
        fail(Status::argument, error.what(), where_to_look(app));
    }
}

int run_and_tell_errors(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const Error& error) {
        std::cerr << "mlff: " << error.what() << "\n";
        return exit_code_of(error.status());
    } catch (const std::bad_alloc&) {
        std::cerr << "mlff: out of memory\n";
    } catch (const std::exception& error) {
        std::cerr << "mlff: internal error, please report it: " << error.what() << "\n";
    }
    return kDeviceTrouble;
}

}  // namespace
}  // namespace mlff::app

int main(int argc, char** argv) {
    using namespace mlff::app;
    std::signal(SIGXFSZ,
                SIG_IGN);  // writing beyond the limit on file sizes then fails with an error, which has a message
    const int code = run_and_tell_errors(argc, argv);
    if (mlff::is_output_complete() || code != kGood) return code;
    std::cerr << "mlff: standard output: cannot write all of it\n";
    return kBadInput;  // as for any file that cannot be written
}
