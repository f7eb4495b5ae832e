// SPDX-License-Identifier: MIT
// mlff neb: the path of least energy from one structure to another, and the barrier on the way.
#include <array>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>

#include "command.h"
#include "core/error.h"
#include "core/output_file.h"
#include "dynamics/relaxation.h"
#include "formats/extxyz.h"
#include "frame_result.h"
#include "moving_atoms.h"
#include "neb_output.h"
#include "plan_warning.h"
#include "progress_line.h"
#include "properties/interpolation.h"
#include "properties/reaction_path.h"
#include "sessions.h"
#include "stop_signal.h"

namespace mlff::app {
namespace {

constexpr double kSameStructure = 0.05;  // A: the ends are one structure if no atom is farther
constexpr double kTighter = 0.2;         // of --fmax: to which ends relax, and the saddle is refined

struct NebOptions {
    std::vector<std::string> inputs;
    std::string output, fixed, json, report, method = "neb", interpolation = "idpp";
    ModelOptions model;
    BandOptions band;
    std::optional<int64_t> image_count;
    bool no_climb = false, refines = false, no_relax_ends = false;
};

// The frames of a path: of one file, or the ends of two.
std::vector<Frame> read_path(const std::vector<std::string>& inputs) {
    std::vector<Frame> frames;
    for (const std::string& input : inputs) {
        std::vector<Frame> found = read_extxyz(input);
        if (found.empty()) fail(Status::format, input, ": no frame in the file");
        if (inputs.size() > 1 && found.size() > 1)
            fail(Status::format, input, ": ", found.size(),
                 " frames, expected one: each of two files has one end of the path");
        for (Frame& frame : found) frames.push_back(std::move(frame));
    }
    if (frames.size() < 2)
        fail(Status::format, inputs.front(), ": one frame; a path needs a second file, or all its images in one file");
    return frames;
}

// How far forces have come from `first` to `wanted`, on a logarithmic scale.
class ForceProgress {
public:
    ForceProgress(ProgressLine& line, std::string phase) : line_(line), phase_(std::move(phase)) {}
    void show(double force, double wanted) {
        if (first_ <= 0) first_ = force;
        if (first_ > wanted && force > 0)
            part_ = std::max(part_, std::min(1.0, std::log(first_ / force) / std::log(first_ / wanted)));
        line_.show(phase_, part_);
    }

private:
    ProgressLine& line_;
    std::string phase_;
    double first_ = 0, part_ = 0;
};

class NebRun {
public:
    explicit NebRun(const NebOptions& options)
        : options_(options),
          frames_(read_path(options.inputs)),
          sessions_(load_model(options.model.model), options.model.session_options()),
          session_(sessions_.for_frame(frames_.front())) {
        read_images();
        PlanWarning warning(options.model.model, options.model.session.exact_radial);
        warning.look_at(session_, frames_.front().view(), options.inputs.front());
        forces_ = session_image_forces(session_, atoms_);
        if (!options.output.empty()) output_.emplace(options.output);
        check_outputs(options.report, "report.html", options.json);
    }

    int go() {
        if (!options_.no_relax_ends) relax_ends();
        lay_out_path();
        optimize();
        finish_saddle();
        write();
        return exit_code();
    }

private:
    void read_images() {
        for (size_t k = 0; k < frames_.size(); ++k) {
            try {
                const Particles image = moving_atoms(frames_[k], options_.fixed);
                if (image.atom_count() == 0) fail(Status::system, "no atoms");
                if (k == 0) atoms_ = image;
                if (k > 0) check_same_atoms(atoms_, image);
                images_.push_back(image.positions);
            } catch (const Error& error) {
                throw Error(error.status(), concat(name_of(k), ": ", error.what()));
            }
        }
        check_different("");
    }

    std::string name_of(size_t frame) const {
        return options_.inputs.size() > 1 ? options_.inputs[frame] : concat(options_.inputs.front(), ": frame ", frame);
    }

    void check_different(const char* when) const {
        std::vector<Image> ends = {images_.front(), images_.back()};
        connect(ends, atoms_.environment, rigid_motion_of(atoms_));
        const double distance = largest_move(difference_of(ends[1], ends[0]));
        if (!(distance > kSameStructure))
            fail(Status::system, name_of(0), " and ", name_of(frames_.size() - 1),
                 ": the ends of the path are the same ", "structure", when, ": no atom is farther than ", distance,
                 " A from its place");
    }

    void relax_ends() {
        RelaxationOptions relaxation;
        relaxation.largest_force = kTighter * options_.band.largest_force;
        relaxation.step_limit = options_.band.step_limit;
        std::vector<Relaxation> ends;
        for (const Image* image : {&images_.front(), &images_.back()}) {
            Particles end = atoms_;
            end.positions = *image;
            ends.emplace_back(end, relaxation);
        }
        ForceProgress progress(*line_, "the ends");
        while (stop_.number() == 0 && !(ends[0].is_finished() && ends[1].is_finished())) {
            const std::array<Image, 2> positions = {ends[0].particles().positions, ends[1].particles().positions};
            const std::vector<ImageResult> results = forces_(positions);
            for (size_t k = 0; k < 2; ++k) ends[k].advance(results[k].energy, results[k].forces, Mat3{});
            progress.show(std::max(ends[0].largest_force(), ends[1].largest_force()), relaxation.largest_force);
        }
        images_.front() = ends[0].particles().positions;
        images_.back() = ends[1].particles().positions;
        are_ends_relaxed_ = ends[0].is_converged() && ends[1].is_converged();
        check_different(" once they are relaxed");
    }

    void lay_out_path() {
        const RigidMotion motion = rigid_motion_of(atoms_);
        connect(images_, atoms_.environment, motion);
        constexpr size_t kUsualCount = 9;
        if (images_.size() == 2) {
            const auto count = static_cast<size_t>(options_.image_count.value_or(kUsualCount));
            images_ = options_.interpolation == "idpp"
                          ? pair_potential_path(images_.front(), images_.back(), count, atoms_)
                          : linear_path(images_.front(), images_.back(), count);
        } else if (options_.image_count && static_cast<size_t>(*options_.image_count) != images_.size()) {
            images_ = spread_images(images_, static_cast<size_t>(*options_.image_count));
        }
        connect(images_, atoms_.environment, motion);
        check_atoms_are_apart(images_, atoms_);
    }

    void optimize() {
        Band band(images_, atoms_.is_fixed, rigid_motion_of(atoms_), options_.band);
        ForceProgress progress(*line_, "the path");
        for (band.evaluate(forces_); !band.is_finished() && stop_.number() == 0; band.evaluate(forces_)) {
            band.move();
            progress.show(band.largest_force(), options_.band.largest_force);
        }
        result_.path = ReactionPath(band);
        result_.climbed = band.climbing().has_value();
        result_.is_converged = band.is_converged() && are_ends_relaxed_;
        result_.band_force = band.largest_force();
        result_.band_moves = band.move_count();
        result_.summary = summarize(result_.path, result_.climbed);
    }

    void finish_saddle() {
        const std::optional<size_t> highest = result_.summary.highest;
        if (highest && options_.refines && stop_.number() == 0) refine(*highest);
        if (!highest || stop_.number() != 0) return;
        line_->show("the curvatures", 0);
        result_.saddle = check_saddle(result_.path, *highest, atoms_, forces_);
    }

    void refine(size_t image) {
        DimerOptions options;
        options.largest_force = kTighter * options_.band.largest_force;
        options.step_limit = options_.band.step_limit;
        Dimer dimer(result_.path.images[image], result_.path.tangents[image], atoms_.is_fixed, rigid_motion_of(atoms_),
                    options);
        ForceProgress progress(*line_, "the saddle");
        for (dimer.evaluate(forces_); !dimer.is_finished() && stop_.number() == 0; dimer.evaluate(forces_)) {
            dimer.move();
            progress.show(dimer.largest_force(), options.largest_force);
        }
        result_.refinement_moves = dimer.move_count();
        refined_force_ = dimer.largest_force();
        result_.is_converged = result_.is_converged && dimer.is_converged();
        if (!dimer.is_converged()) return;
        result_.is_refined = true;
        result_.refined_distance = length_of(difference_of(dimer.image(), result_.path.images[image]));
        result_.path.replace(image, dimer);
        result_.summary = summarize(result_.path, true);
    }

    void add_doubts() {
        Frame frame = frames_.front();
        for (const Image& image : result_.path.images) {
            frame.positions = image;
            result_.add_doubts(evaluate_frame(session_, frame));
        }
    }

    void write() {
        line_.reset();
        if (session_.trust_meter() || session_.model().summary().member_count > 0) add_doubts();
        result_.model = options_.model.model;
        result_.device = session_.device_name();
        result_.precision = precision_name(session_.precision());
        result_.method = options_.method;
        result_.head = head_to_write(session_);
        result_.atoms = atoms_;
        result_.is_stopped = stop_.number() != 0;
        if (options_.json != "-") print_path(result_);
        if (output_) {
            const std::string text = path_frames(frames_.front(), result_);
            output_->write(text.data(), text.size());
            output_->commit();
        }
        if (!options_.json.empty()) write_text(options_.json, path_json(result_).dump(1) + "\n");
        if (!options_.report.empty()) write_path_report(options_.report, result_);
    }

    int exit_code() const {
        const std::string next = options_.output.empty() ? "with --output, a later run can continue"
                                                         : "continue with mlff neb " + options_.output;
        if (result_.is_stopped) {
            std::cerr << "mlff: stopped by a signal after " << result_.band_moves << " moves of the path; " << next
                      << "\n";
            return kStoppedBySignal + stop_.number();
        }
        if (result_.is_converged) return kGood;
        const double wanted = options_.band.largest_force;
        if (!are_ends_relaxed_)
            std::cerr << "mlff: the ends did not relax to " << kTighter * wanted << " eV/A within --steps "
                      << options_.band.step_limit << "; " << next << "\n";
        else if (!(result_.band_force <= wanted))
            std::cerr << "mlff: the path did not converge within --steps " << options_.band.step_limit
                      << ": the largest force is " << result_.band_force << " eV/A, expected " << wanted << " or less; "
                      << next << "\n";
        else
            std::cerr << "mlff: --refine found no saddle within --steps " << options_.band.step_limit
                      << ": the largest force is " << refined_force_ << " eV/A, expected " << kTighter * wanted
                      << " or less\n";
        return kCheckFailed;
    }

    const NebOptions& options_;
    std::vector<Frame> frames_;
    Sessions sessions_;
    Session& session_;
    Particles atoms_;
    std::vector<Image> images_;
    ImageForces forces_;
    std::optional<OutputFile> output_;
    StopSignal stop_;
    std::optional<ProgressLine> line_{std::in_place, "mlff neb"};
    NebResult result_;
    double refined_force_ = 0;
    bool are_ends_relaxed_ = true;
};

int run_neb(NebOptions options) {
    options.band.method = options.method == "string" ? BandOptions::Method::string : BandOptions::Method::elastic_band;
    options.band.climbs = !options.no_climb;
    return NebRun(options).go();
}

}  // namespace

void add_neb(CLI::App& app, Work& work) {
    auto options = std::make_shared<NebOptions>();
    CLI::App* command = app.add_subcommand("neb", "find the path between two structures, and its barrier");
    command
        ->add_option(
            "FILE", options->inputs,
            "two files in extended XYZ, one structure each; or one file with both ends or all images; uses the "
            "column move_mask")
        ->required()
        ->expected(1, 2);
    options->model.add_to(*command);
    command
        ->add_option("--images", options->image_count,
                     "number of images with both ends (default: 9, or those of a path that is given)")
        ->check(CLI::Range(3, 1000))
        ->option_text("N");
    command->add_option("--method", options->method, "neb (springs between images) or string (images spread evenly)")
        ->capture_default_str()
        ->check(CLI::IsMember({"neb", "string"}))
        ->option_text("NAME");
    command->add_flag("--no-climb", options->no_climb, "the highest image does not climb to the saddle");
    command->add_flag("--refine", options->refines, "bring the highest image to a fifth of --fmax with a dimer");
    command->add_option("--fmax", options->band.largest_force, "converged when no force exceeds this, in eV/A")
        ->capture_default_str()
        ->option_text("FORCE");
    command
        ->add_option("--steps", options->band.step_limit, "maximum number of moves: of the ends, the path, the dimer")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber)
        ->option_text("N");
    command->add_option("--spring", options->band.spring, "spring constant between images, in eV/A^2")
        ->capture_default_str()
        ->option_text("K");
    command
        ->add_option("--interpolation", options->interpolation,
                     "first images between two ends: idpp (distances between atoms change evenly) or linear")
        ->capture_default_str()
        ->check(CLI::IsMember({"idpp", "linear"}))
        ->option_text("NAME");
    command->add_flag("--no-relax-ends", options->no_relax_ends, "take the ends as they are");
    command->add_option("--fix", options->fixed, "atoms that do not move, counted from 0, such as 0,3,10-15")
        ->option_text("INDICES");
    command->add_option("--output", options->output, "write all images as extended XYZ to PATH; it can be continued")
        ->option_text("PATH");
    add_json_option(*command, options->json);
    add_report_option(*command, options->report);
    command->footer(
        R"(Finds the path of least energy from the first structure to the last: relaxes both (to a fifth of
--fmax), lays images between them, and moves all until no force across the path and no spring
exceeds --fmax. All images are one batch. Prints barriers, reaction energy and the saddle, with its
two lowest curvatures: a saddle has exactly one that is negative.

Both ends need the same atoms in the same order. In a periodic cell, atoms move to the nearest
image of their place. Without periodic directions and fixed atoms, molecules are laid over each
other first. A path that did not converge is written too, and the exit code is 1. After Ctrl-C the
path is written as it is; 'mlff neb PATH' continues it.

Examples:
  # A path with the embedded model, and a page with the energy along it
  mlff neb before.xyz after.xyz --output path.xyz --report path
  # With a MACE model, more images, and the saddle refined
  mlff neb before.xyz after.xyz --model X.model --images 15 --refine --output path.xyz
  # Go on with a path
  mlff neb path.xyz --fmax 0.02 --output better.xyz)");
    command->callback([options, &work] { work = [options] { return run_neb(*options); }; });
}

}  // namespace mlff::app
