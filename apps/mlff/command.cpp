// SPDX-License-Identifier: MIT
#include "command.h"

#include <cstdio>
#include <filesystem>

#include "committee/member_list.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "core/output_file.h"
#include "core/sha256.h"
#include "engine/embedded_models.h"
#include "engine/model_cache.h"
#include "engine/model_names.h"

namespace mlff::app {

void ModelOptions::add_to(CLI::App& command, const std::string& model_option) {
    const std::string group = "Model and device";
    command.add_option(model_option, model, kModelHelp)->capture_default_str()->option_text("MODEL")->group(group);
    add_session_options(command, group);
    command
        .add_option("--gpu-memory", session.gpu_memory_limit_bytes,
                    "limit on the GPU memory for atoms and edges, such as 20GB; 0 = all that is free")
        ->transform(CLI::AsSizeValue(true))
        ->capture_default_str()
        ->option_text("SIZE")
        ->group(group);
}

void ModelOptions::add_session_options(CLI::App& command, const std::string& group, const std::string& suffix) {
    command
        .add_option_function<std::string>(
            "--d3" + suffix,
            [this](const std::string& given) {  // runs after that of the model, wherever it is on the command line
                dispersion = given;
                model = with_dispersion(model, given);
            },
            kDispersionHelp)
        ->option_text("FUNCTIONAL")
        ->group(group);
    command
        .add_option("--device" + suffix, session.device,
                    "auto, cpu, reference (plain double-precision loops), cuda or cuda:INDEX")
        ->capture_default_str()
        ->option_text("DEVICE")
        ->group(group);
    command
        .add_option("--precision" + suffix, precision,
                    "auto, mixed, fp64, fp32 or fast (GPU only: parts in half precision)")
        ->capture_default_str()
        ->option_text("PRECISION")
        ->group(group);
    command.add_option("--head" + suffix, session.head, "head of the model, if it has several")
        ->option_text("HEAD")
        ->group(group);
    command
        .add_flag("--exact-radial" + suffix, session.exact_radial,
                  "evaluate radial functions for every pair instead of interpolating in tables; slower")
        ->group(group);
    command.add_option("--threads" + suffix, session.thread_count, "number of CPU threads; 0 = all cores")
        ->capture_default_str()
        ->option_text("N")
        ->group(group);
}

void add_json_option(CLI::App& command, std::string& path) {
    command.add_option("--json", path, "write the results as JSON to OUT; '-' prints the JSON instead of text")
        ->option_text("OUT");
}

void add_report_option(CLI::App& command, std::string& folder) {
    command.add_option("--report", folder, "write a report to FOLDER: report.html, report.json and its other files")
        ->option_text("FOLDER");
}

SessionOptions ModelOptions::session_options() const {
    SessionOptions options = session;
    for (Precision candidate :
         {Precision::automatic, Precision::mixed, Precision::fp64, Precision::fp32, Precision::fast})
        if (precision == precision_name(candidate)) {
            options.precision = candidate;
            return options;
        }
    fail(Status::argument, "--precision '", precision, "': expected auto, mixed, fp64, fp32 or fast");
}

std::string sha256_of_model(const std::string& name) {
    if (name == "builtin") return sha256_hex(embedded_student());
    if (name == "self-test") return sha256_hex(*embedded_self_test_model());
    if (is_model_without_file(name)) return "";
    const auto file = MappedFile::open(find_model_file(name));
    // A list says which files, not what is in them.
    return is_member_list(file->text()) ? "" : sha256_hex(file->bytes());
}

std::string plan_model_id(const std::string& name) {
    const std::string sha256 = sha256_of_model(name);
    return sha256.empty() ? name : sha256;
}

void check_outputs(const std::string& report_folder, const char* first_file, const std::string& json_path) {
    if (!report_folder.empty()) {
        std::error_code error;
        std::filesystem::create_directories(report_folder, error);
        if (error) fail(Status::file, "--report ", report_folder, ": cannot make the folder (", error.message(), ")");
        OutputFile(report_folder + "/" + first_file);
    }
    if (!json_path.empty() && json_path != "-") OutputFile{json_path};
}

void write_text(const std::string& path, const std::string& text) {
    if (path == "-") {
        if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
            fail(Status::file, "standard output: cannot write");
        return;
    }
    OutputFile file(path);
    file.write(text.data(), text.size());
    file.commit();
}

}  // namespace mlff::app
