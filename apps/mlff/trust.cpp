// SPDX-License-Identifier: MIT
// mlff trust fit: a trust meter for a model, from frames with true forces.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>

#include "command.h"
#include "core/error.h"
#include "core/output_file.h"
#include "engine/embedded_models.h"
#include "engine/load_model.h"
#include "engine/model_cache.h"
#include "engine/trust_files.h"
#include "formats/extxyz.h"
#include "tools/report/html_page.h"
#include "tools/report/svg_plot.h"
#include "tools/trust/fit.h"

namespace mlff::app {
namespace {

using trust::FrameUse;
using trust::Judgement;
using trust::Samples;

constexpr double kLargestRadius = 5;  // angstrom

struct TrustOptions {
    ModelOptions model;
    std::vector<std::string> inputs;
    std::string output, json, report;
};

struct Collected {
    Samples seen, errors, test;
    bool has_split = true;
    int64_t unknown_frames = 0;  // with elements that the model does not know
};

bool knows_elements(const Model& model, const Frame& frame) {
    const std::vector<int>& known = model.summary().elements;
    return std::all_of(frame.atomic_numbers.begin(), frame.atomic_numbers.end(),
                       [&](int z) { return std::binary_search(known.begin(), known.end(), z); });
}

// Frames of one molecule stay together: by the key `molecule`, else by their atoms. A SMILES such as F may be read as
// no text.
std::string molecule_of(const Frame& frame) {
    const InfoValue* const value = frame.find_info("molecule");
    const auto* const names = value ? std::get_if<std::vector<std::string>>(&value->values) : nullptr;
    if (names && names->size() == 1) return names->front();
    std::vector<int32_t> sorted = frame.atomic_numbers;
    std::sort(sorted.begin(), sorted.end());
    std::string text;
    for (const int32_t z : sorted) text += static_cast<char>(z);
    return text;
}

void collect(const std::string& path, Session& session, std::map<std::string, int32_t>& molecules, Collected& to) {
    ExtxyzReader reader(path);
    Frame frame;
    while (reader.next(frame)) {
        try {
            if (!knows_elements(session.model(), frame)) {
                ++to.unknown_frames;
                continue;
            }
            const auto group =
                molecules.emplace(molecule_of(frame), static_cast<int32_t>(molecules.size())).first->second;
            const std::string split = frame.find_info("split") ? frame.info_text("split").value_or("") : "";
            if (split == "train")
                add_frame(to.seen, session, frame, group, false);
            else if (split == "valid" || split == "validation")
                add_frame(to.errors, session, frame, group, true);
            else if (split == "test")
                add_frame(to.test, session, frame, group, true);
            else if (!split.empty())
                fail(Status::format, "split is '", split, "', expected train, valid or test");
            else {
                to.has_split = false;
                add_frame(to.errors, session, frame, group, true);
            }
        } catch (const Error& error) {
            throw Error(error.status(), concat(path, ": frame ", reader.frames_read() - 1, ": ", error.what()));
        }
    }
    if (reader.frames_read() == 0) fail(Status::format, path, ": no frame in the file");
}

std::string fingerprint_of(const std::string& name) {
    if (name == "builtin") return fingerprint_of_model(embedded_student());
    return fingerprint_of_model(MappedFile::open(find_model_file(name))->bytes());
}

report::Plot calibration_plot(const Judgement& judgement) {
    report::Plot plot;
    plot.title = "Expected and true errors of forces, by tenths of the atoms";
    plot.x_label = "expected error, eV/A";
    plot.y_label = "mean true error, eV/A";
    plot.style = report::Plot::Style::line_and_points;
    plot.is_parity = true;
    plot.is_log_x = plot.is_log_y = true;
    report::Curve curve = {"mean of a tenth", {}, {}};
    for (const Judgement::Bin& bin : judgement.bins) {
        curve.x.push_back(bin.expected);
        curve.y.push_back(bin.found);
    }
    plot.curves = {curve};
    return plot;
}

std::string percent(double share) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(1) << 100 * share << " %";
    return text.str();
}

int run_fit(const TrustOptions& options) {
    const std::string& name = options.model.model;
    if (options.output.empty() && name == "builtin")
        fail(Status::argument, "the model builtin has no file beside which its trust meter could be: give --output");
    const std::string fingerprint = fingerprint_of(name);
    const std::string output = options.output.empty() ? trust_file_of(find_model_file(name)) : options.output;
    check_outputs(options.report, "calibration.html", options.json);
    OutputFile{output};  // that it can be written is known before long work
    const auto model = load_without_meter(name);
    if (model->summary().member_count > 0 || model->summary().descriptor_count == 0)
        fail(Status::unsupported, name, ": a trust meter reads the features of one model; this one has none");
    Session session(model, options.model.session_options());
    Collected frames;
    std::map<std::string, int32_t> molecules;
    for (const std::string& path : options.inputs) collect(path, session, molecules, frames);
    if (!frames.has_split)
        std::cerr << "mlff: frames without split=... count as unseen: the errors are right only if the model was not "
                     "trained on them\n";
    if (frames.unknown_frames > 0)
        std::cerr << "mlff: skipped " << frames.unknown_frames
                  << " frames with elements that the model does not know\n";
    const Samples& seen = frames.seen.atom_count() > 0 ? frames.seen : frames.errors;
    TrustMeter meter = fit_trust_meter(seen, frames.errors, std::min(kLargestRadius, model->summary().cutoff));
    meter.model_fingerprint = fingerprint;
    if (model->summary().heads.size() > 1) meter.head = session.head();
    const bool has_test = frames.test.atom_count() > 0;
    const Judgement judgement = judge(meter, has_test ? frames.test : frames.errors);
    meter.card = JsonValue::Object{{"seen_atoms", seen.atom_count()},
                                   {"fitted_atoms", frames.errors.atom_count()},
                                   {"judged_on", has_test ? "test" : "the frames that it was fitted to"},
                                   {"judgement", to_json(judgement)}};
    write_trust_meter(output, meter);
    std::cout << "training: " << seen.atom_count() << " atoms; errors: " << frames.errors.atom_count()
              << " atoms; elements " << symbols_text(meter.elements) << "\n"
              << (has_test ? "on the test frames, " : "on the frames that it was fitted to, ") << judgement.atom_count
              << " atoms:\n"
              << "  rank correlation of expected and true errors  " << std::fixed << std::setprecision(2)
              << judgement.rank_correlation << "\n"
              << "  alarm above " << std::setprecision(3) << meter.alarm_error << " eV/A: finds "
              << percent(judgement.worst_flagged) << " of the worst tenth of the atoms, and "
              << percent(judgement.false_alarms) << " of the others\n"
              << "  unlike anything in training: " << percent(judgement.outside) << "\n"
              << "wrote " << output << "\n";
    if (!options.json.empty()) write_text(options.json, meter.card.dump(1) + "\n");
    if (!options.report.empty())
        write_text(options.report + "/calibration.html",
                   report::html_page("Trust meter of " + name, report::svg(calibration_plot(judgement))));
    return kGood;
}

}  // namespace

void add_trust(CLI::App& app, Work& work) {
    CLI::App* command = app.add_subcommand("trust", "what a model has seen, so that it can say when it has not");
    command->require_subcommand(1);
    auto options = std::make_shared<TrustOptions>();
    CLI::App* fit = command->add_subcommand("fit", "make a trust meter for a model, from frames with true forces");
    fit->add_option("MODEL", options->model.model, "the model: a file, a name in the model cache, or builtin")
        ->required();
    fit->add_option("FRAMES", options->inputs, "extended XYZ with the column forces")->required();
    options->model.add_session_options(*fit, "Model");
    fit->add_option("--output", options->output, "write the meter to FILE (default: MODEL.trust, where it is found)")
        ->option_text("FILE");
    add_json_option(*fit, options->json);
    add_report_option(*fit, options->report);
    fit->footer(
        R"(Frames with split=train are what training has seen; they need no forces. Frames with split=valid
have the true forces, and the model was not trained on them: their errors are what the meter
learns. Frames with split=test judge it. Frames without split count as valid; without frames of
training, those count as seen too. Give frames of one molecule the same molecule=NAME.)");
    command->footer(R"(Examples:
  # A meter for a MACE model; from then on eval says which atoms to doubt
  mlff trust fit X.model labelled.xyz
  mlff eval new.xyz --model X.model)");
    fit->callback([options, &work] { work = [options] { return run_fit(*options); }; });
}

}  // namespace mlff::app
