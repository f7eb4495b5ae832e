// SPDX-License-Identifier: MIT
// mlff verify: are the numbers of a model right on this machine?
#include "tools/verify/verification.h"

#include <unistd.h>

#include <iostream>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/error.h"
#include "tools/validate/report.h"

namespace mlff::app {
namespace {

struct VerifyOptions {
    ModelOptions model;
    std::string json;
};

void print(const verify::Verification& found, const std::string& model, bool names_head) {
    std::cout << model << ", " << found.device << ", " << found.precision << (names_head ? ", head " + found.head : "")
              << (found.published.empty() ? "" : ", the released " + found.published) << "\n";
    for (const verify::Check& check : found.checks)
        std::cout << (check.is_passed() ? "  pass  " : "  FAIL  ") << check.name << ": " << validate::value_text(check)
                  << ", allowed " << validate::range_text(check) << (check.note.empty() ? "" : " (" + check.note + ")")
                  << "\n";
    for (const std::string& text : found.left_out) std::cout << "  -     " << text << "\n";
    std::cout << std::flush;
}

int run_verify(const VerifyOptions& options) {
    const auto model = load_model(options.model.model);
    const ModelSummary& summary = model->summary();
    const std::string sha256 = sha256_of_model(options.model.model);
    SessionOptions session = options.model.session_options();
    std::vector<std::string> heads = {session.head};  // "" = the only one
    if (session.head.empty() && summary.heads.size() > 1 && summary.fixed_head < 0) heads = summary.heads;

    const bool prints_text = options.json != "-", is_terminal = isatty(STDERR_FILENO) == 1;
    nlohmann::json json = {{"model", options.model.model}, {"sha256", sha256}, {"runs", nlohmann::json::array()}};
    size_t failed = 0, count = 0;
    for (const std::string& head : heads) {
        session.head = head;
        const auto on_check = [&](const std::string& what) {
            if (is_terminal) std::cerr << "\r\033[K" << what << std::flush;
        };
        const verify::Verification found = verify::verify_model(model, session, sha256, on_check);
        if (is_terminal) std::cerr << "\r\033[K" << std::flush;
        if (prints_text) print(found, options.model.model, heads.size() > 1);
        json["runs"].push_back(verification_json(found));
        count += found.checks.size();
        for (const verify::Check& check : found.checks) failed += check.is_passed() ? 0 : 1;
    }
    json["passed"] = failed == 0;
    if (prints_text)
        std::cout << (failed == 0 ? concat("PASS: all ", count, " checks")
                                  : concat("FAIL: ", failed, " of ", count, " checks"))
                  << "\n";
    if (!options.json.empty())
        write_text(options.json, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return failed == 0 ? kGood : kCheckFailed;
}

}  // namespace

void add_verify(CLI::App& app, Work& work) {
    CLI::App* command = app.add_subcommand("verify", "check that a model gives correct numbers on this machine");
    auto options = std::make_shared<VerifyOptions>();
    options->model.add_to(*command, "MODEL,--model");
    add_json_option(*command, options->json);
    command->footer(
        R"(Checks energies, forces and stresses on the chosen device and in the chosen precision: against the
plain double-precision loops, against finite differences, and for symmetries. A model with several
heads is checked for each of them. The exit code is 1 if a check fails.

Examples:
  # The embedded model
  mlff verify
  # A MACE model on a GPU
  mlff verify X.model --device cuda)");
    command->callback([options, &work] { work = [options] { return run_verify(*options); }; });
}

}  // namespace mlff::app
