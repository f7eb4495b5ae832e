// SPDX-License-Identifier: MIT
// mlff-train: trains the PaiNN student of docs/painn.md. Exit codes as for mlff: 0 success, 2 usage, 3 bad input, 4
// device error.
#include <iostream>
#include <new>

#include "core/error.h"
#include "core/standard_output.h"
#include "train/command.h"

namespace {

int exit_code_of(mlff::Status status) {
    using mlff::Status;
    switch (status) {
        case Status::ok: return 0;
        case Status::argument: return 2;
        case Status::file:
        case Status::format:
        case Status::unsupported:
        case Status::system: return 3;
        case Status::device:
        case Status::memory:
        case Status::internal: break;
    }
    return 4;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Trains the PaiNN student on energies and forces.", "mlff-train"};
    app.set_version_flag("--version", std::string("mlff-train ") + MLFF_VERSION_STRING);
    app.require_subcommand(1);
    app.get_formatter()->column_width(40);
    mlff::train::Work work;
    mlff::train::add_train(app, work);
    mlff::train::add_evaluate(app, work);
    mlff::train::add_predict(app, work);
    mlff::train::add_random(app, work);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        std::cerr << "mlff-train: " << error.what() << " (try 'mlff-train --help')\n";
        return 2;
    }
    try {
        const int code = work();
        if (code != 0 || mlff::is_output_complete()) return code;
        mlff::fail(mlff::Status::file, "standard output: cannot write all output");
    } catch (const mlff::Error& error) {
        std::cerr << "mlff-train: " << error.what() << "\n";
        return exit_code_of(error.status());
    } catch (const std::bad_alloc&) {
        std::cerr << "mlff-train: out of memory\n";
    } catch (const std::exception& error) {  // from LibTorch: device errors, on many lines
        std::cerr << "mlff-train: " << error.what() << "\n";
    }
    return 4;
}
