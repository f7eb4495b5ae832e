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

void print_warning(int, const char* message, void*) { std::cerr << "mlff: warning: " << message << "\n"; }

int run(int argc, char** argv) {
    set_log_callback(print_warning, LogLevel::warning, nullptr);
    CLI::App app{"Machine-learned force fields: energies, forces and stresses from a model file.", "mlff"};
    app.set_version_flag("--version", std::string("mlff ") + MLFF_VERSION_STRING);
    app.require_subcommand(1);
    app.get_formatter()->column_width(34);
    Work work;
    add_eval(app, work);
    add_model(app, work);
    add_doctor(app, work);
    add_demo(app, work);
    add_distill(app, work);
    add_md(app, work);
    add_relax(app, work);
    add_validate(app, work);
    add_verify(app, work);
    add_bench(app, work);
    add_plan(app, work);
    add_compare(app, work);
    add_serve(app, work);
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    const auto is_chosen = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && std::none_of(commands.begin(), commands.end(), is_chosen)) {
        std::cerr << "mlff: there is no command '" << argv[1] << "' (try 'mlff --help')\n";
        return kBadUsage;
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
        std::cerr << "mlff: " << error.what() << " (try 'mlff --help')\n";
        return kBadUsage;
    }
    return work();
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
                SIG_IGN);  // a file that is too large for the limit is then an error of writing, which has a sentence
    const int code = run_and_tell_errors(argc, argv);
    if (mlff::is_output_complete() || code != kGood) return code;
    std::cerr << "mlff: standard output: cannot write all of it\n";
    return kBadInput;  // as for any file that cannot be written
}
