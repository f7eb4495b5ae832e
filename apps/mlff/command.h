// SPDX-License-Identifier: MIT
// What the subcommands share. Each adds itself to the command line in a file of its own.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "engine/session.h"

namespace mlff::app {

// The exit codes of the command-line contract.
enum ExitCode {  // mlff --help lists them, in main.cpp
    kGood = 0,
    kCheckFailed = 1,
    kBadUsage = 2,
    kBadInput = 3,
    kDeviceTrouble = 4,
    kStoppedBySignal = 128
};  // the last: plus its number

// The subcommand that was chosen leaves its work here; main runs it after the whole command line has been checked.
using Work = std::function<int()>;

void add_eval(CLI::App& app, Work& work);
void add_model(CLI::App& app, Work& work);
void add_model_cache(CLI::App& model_command, Work& work);
void add_model_fetch(CLI::App& model_command, Work& work);
void add_doctor(CLI::App& app, Work& work);
void add_demo(CLI::App& app, Work& work);
void add_distill(CLI::App& app, Work& work);
void add_validate(CLI::App& app, Work& work);
void add_verify(CLI::App& app, Work& work);
void add_bench(CLI::App& app, Work& work);
void add_md(CLI::App& app, Work& work);
void add_relax(CLI::App& app, Work& work);
void add_hessian(CLI::App& app, Work& work);
void add_vibrations(CLI::App& app, Work& work);
void add_eos(CLI::App& app, Work& work);
void add_elastic(CLI::App& app, Work& work);
void add_phonons(CLI::App& app, Work& work);
void add_neb(CLI::App& app, Work& work);
void add_plan(CLI::App& app, Work& work);
void add_compare(CLI::App& app, Work& work);
void add_trust(CLI::App& app, Work& work);
void add_serve(CLI::App& app, Work& work);

// What every option says that names a model.
constexpr const char* kModelHelp =
    "model file, name in the model cache, builtin, analytic, zbl, d3:FUNCTIONAL, self-test, python:..., a sum A+B of "
    "these, or a committee A,B,C or a file that lists one";
constexpr const char* kDispersionHelp =
    "add DFT-D3 dispersion: --d3 pbe or --d3 pbe:zero:atm is --model MODEL+d3:pbe or MODEL+d3:pbe:zero:atm";

// --json, which every command with results has. "" = not given, "-" = standard output.
void add_json_option(CLI::App& command, std::string& path);

// --report; "" = not given.
void add_report_option(CLI::App& command, std::string& folder);

// --model, --d3, --device, --precision, --head and --threads, for every command that evaluates a model.
struct ModelOptions {
    std::string model = "builtin";  // with what --d3 adds
    std::string dispersion;         // --d3; "" = none
    std::string precision = "auto";
    SessionOptions session;
    void add_to(CLI::App& command, const std::string& model_option = "--model");
    // The same options of one model of two, with a suffix: --device-a. Add the option of the model first.
    void add_session_options(CLI::App& command, const std::string& group, const std::string& suffix = "");
    SessionOptions session_options() const;
};

// Of the model's file or of the embedded student; "" if there is no file.
std::string sha256_of_model(const std::string& name);

// What a calibration knows the model by: its SHA-256, or the name of a model that has no file.
std::string plan_model_id(const std::string& name);

// Before long work: makes the folder of a report, and throws Error{file} if `first_file` in it or the JSON file cannot
// be written. "" = not wanted.
void check_outputs(const std::string& report_folder, const char* first_file, const std::string& json_path);

// Text to a file or, for "-", to standard output. Throws Error{file}.
void write_text(const std::string& path, const std::string& text);

}  // namespace mlff::app
