// SPDX-License-Identifier: MIT
// mlff relax: structures to the minimum of their energy, many of a file at once.
#include <unistd.h>

#include <charconv>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "command.h"
#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/relaxation_batch.h"
#include "dynamics/units.h"
#include "formats/extxyz.h"
#include "moving_atoms.h"
#include "plan_warning.h"
#include "progress_line.h"
#include "resumable_output.h"
#include "sessions.h"
#include "stop_signal.h"

namespace mlff::app {
namespace {

struct RelaxOptions {
    std::string input, output, fixed, method = "lbfgs", batch = "auto";
    bool resumes = false;
    ModelOptions model;
    RelaxationOptions relaxation;
    std::optional<double> pressure, largest_stress;
};

void put_results(Frame& frame, const Relaxation& relaxation, bool has_virial) {
    const Particles& particles = relaxation.particles();
    frame.positions = particles.positions;
    if (frame.cell) frame.cell = particles.environment.cell;
    frame.set_info("energy", relaxation.energy());
    frame.set_info("converged", std::string(relaxation.is_converged() ? "yes" : "no"));
    frame.set_column("forces", 3, relaxation.forces());
    std::erase_if(frame.columns, [](const AtomColumn& column) {
        return column.name == "velocities" || column.name == "momenta" || column.name == "energies";
    });
    std::erase_if(frame.info, [](const auto& entry) { return entry.first == "stress" || entry.first == "virial"; });
    if (has_virial && particles.environment.periodic == std::array<bool, 3>{true, true, true}) {
        const double volume = std::abs(determinant(particles.environment.cell));
        std::vector<double> stress;
        for (const Vec3& row : relaxation.virial())
            for (double entry : row) stress.push_back(-entry / volume);
        frame.set_info("stress", stress);
    }
}

void print_row(int64_t frame, const Relaxation& relaxation, bool with_cell) {
    std::cout << std::setw(6) << frame << std::setw(10) << relaxation.particles().atom_count() << std::setw(8)
              << relaxation.move_count() << std::fixed << std::setprecision(8) << std::setw(20) << relaxation.energy()
              << std::setprecision(6) << std::setw(16) << relaxation.largest_force();
    if (with_cell)
        std::cout << std::setw(18) << relaxation.largest_stress() << std::setprecision(4) << std::setw(14)
                  << std::abs(determinant(relaxation.particles().environment.cell));
    std::cout << (relaxation.is_converged() ? "" : "   not converged") << "\n";
}

// Atoms in flight, from --batch; 0 = as many as the session evaluates at once.
int64_t batch_atoms(const std::string& text) {
    if (text == "auto") return 0;
    int64_t atoms = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), atoms);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || atoms < 1)
        fail(Status::argument, "--batch ", text, ": expected auto or a number of atoms, 1 or more");
    return atoms;
}

// For a progress line, which needs a terminal: the number of frames of a file, or 0 if that is not worth knowing.
int64_t count_frames_to_show(const std::string& path) {
    std::error_code ignored;
    if (!isatty(STDERR_FILENO) || !std::filesystem::is_regular_file(path, ignored)) return 0;
    std::ifstream file(path);
    int64_t count = 0;
    for (std::string line; std::getline(file, line);) {
        int64_t lines = 0;
        std::istringstream(line) >> lines;
        for (int64_t i = -1; i < lines && std::getline(file, line); ++i) continue;
        ++count;
    }
    return count;
}

// The batch in flight. Frames enter in the order of the file, and results leave in that order.
class Relaxer {
public:
    explicit Relaxer(const RelaxOptions& options)
        : options_(options),
          most_atoms_(batch_atoms(options.batch)),
          sessions_(load_model(options.model.model), options.model.session_options()),
          warning_(options.model.model, options.model.session.exact_radial),
          reader_(options.input),
          progress_("relax"),
          progress_count_(count_frames_to_show(options.input)) {
        if (!options.output.empty()) output_.emplace(options.output, options.resumes);
    }

    int run() {
        pass_kept_frames();
        print_header();
        const StopSignal stop;
        while (stop.number() == 0) {
            admit();
            if (!batch_ || batch_->is_empty()) break;
            for (RelaxationBatch::Member& member : batch_->step()) take(std::move(member));
            write_results();
        }
        if (stop.number() != 0) return end_by_signal(stop.number());
        if (error_) throw Error(error_->status(), concat(error_->what(), hint_to_resume()));
        if (written_ == 0) fail(Status::format, options_.input, ": no frame in the file");
        if (output_) output_->commit();
        if (failed_count_ == 0) return kGood;
        std::cerr << "mlff: " << options_.input << ": " << failed_count_ << " of " << written_
                  << " structures did not converge within --steps " << options_.relaxation.step_limit << "\n";
        return kCheckFailed;
    }

private:
    struct Waiting {
        Frame frame;
        std::optional<Relaxation> relaxation;  // once it is finished
    };

    void print_header() const {
        std::cout << std::setw(6) << "frame" << std::setw(10) << "atoms" << std::setw(8) << "moves" << std::setw(20)
                  << "energy/eV" << std::setw(16) << "max|F|/(eV/A)";
        if (options_.relaxation.with_cell)
            std::cout << std::setw(18) << "stress/(eV/A^3)" << std::setw(14) << "volume/A^3";
        std::cout << "\n";
    }

    // Whether `after` can be what relaxing `before` gave: what relaxing does not change must be the same.
    static bool is_relaxed_from(const Frame& after, const Frame& before) {
        const auto is_result = [](std::string_view key) {
            return key == "energy" || key == "stress" || key == "virial" || key == "converged" || key == "head";
        };
        for (const auto& [key, value] : before.info) {
            if (is_result(key)) continue;
            const InfoValue* kept = after.find_info(key);
            if (!kept || kept->values != value.values || kept->shape != value.shape) return false;
        }
        return after.atomic_numbers == before.atomic_numbers && after.periodic == before.periodic &&
               after.find_info("converged");
    }

    // Frames that an earlier run has relaxed must be those of the file.
    void pass_kept_frames() {
        if (!output_ || output_->kept_count() == 0) return;
        ResumableOutput::Kept kept(*output_);
        Frame frame;
        for (; written_ < output_->kept_count(); ++written_) {
            const Frame before = kept.next();
            if (!reader_.next(frame) || !is_relaxed_from(before, frame))
                fail(Status::argument, "--resume: frame ", written_, " of ", output_->part_path(), " is not that of ",
                     options_.input);
            failed_count_ += before.info_text("converged") == "no";
        }
        std::cout << "going on after " << written_ << " structures of " << output_->part_path() << "\n";
    }

    // Lets frames in while there is room. An error ends the file: it is thrown when all frames before it are finished,
    // so that what is written does not depend on the batch.
    void admit() {
        while (!error_ && !is_at_end_) {
            const int64_t index = written_ + static_cast<int64_t>(waiting_.size());
            try {
                if (!next_ && !read_next()) return;
                const std::string head = sessions_.head_of(*next_);
                if (batch_ && !batch_->is_empty() && (head != head_ || !has_room(next_->atom_count()))) return;
                if (!batch_ || head != head_) begin_batch(head);
                batch_->add(index, Relaxation(moving_atoms(*next_, options_.fixed), options_.relaxation));
            } catch (const Error& error) {
                set_error(index, error);
                return;
            }
            warning_.look_at(*session_, next_->view(), name_of(index));
            waiting_.push_back({std::move(*next_), std::nullopt});
            next_.reset();
        }
    }
    bool read_next() {
        Frame frame;
        is_at_end_ = !reader_.next(frame);
        if (!is_at_end_) next_ = std::move(frame);
        return !is_at_end_;
    }
    // One slow structure must not let results pile up.
    bool has_room(int64_t atoms) const {
        constexpr size_t kMostWaiting = 16384;
        const int64_t most = most_atoms_ > 0 ? most_atoms_ : forces_->most_atoms();
        return batch_->atom_count() + atoms <= most && waiting_.size() < kMostWaiting;
    }
    void begin_batch(const std::string& head) {
        head_ = head;
        session_ = &sessions_.for_head(head);
        forces_.emplace(*session_, sessions_.shared_model(), sessions_.options_for(head));
        batch_.emplace(*forces_, session_->device().is_gpu() ? kTurnoverOnGpu : 0);
    }

    std::string name_of(int64_t index) const { return concat(options_.input, ": frame ", index); }
    void set_error(int64_t index, const Error& error) {
        const bool has_name = std::string(error.what()).starts_with(options_.input);  // as errors of the reader do
        error_ = has_name ? error : Error(error.status(), concat(name_of(index), ": ", error.what()));
        is_at_end_ = true;
        next_.reset();
        waiting_.resize(static_cast<size_t>(index - written_));
        if (batch_) batch_->drop_after(index);
    }

    void take(RelaxationBatch::Member member) {
        const auto place = static_cast<size_t>(member.id - written_);
        if (place >= waiting_.size()) return;  // it comes after an error
        if (member.error)
            set_error(member.id, *member.error);
        else
            waiting_[place].relaxation.emplace(std::move(member.relaxation));
    }

    void write_results() {
        if (!waiting_.empty() && waiting_.front().relaxation) progress_.pause();
        for (; !waiting_.empty() && waiting_.front().relaxation; waiting_.pop_front()) {
            Frame& frame = waiting_.front().frame;
            const Relaxation& relaxation = *waiting_.front().relaxation;
            print_row(written_++, relaxation, options_.relaxation.with_cell);
            failed_count_ += !relaxation.is_converged();
            if (!output_) continue;
            const bool has_virial =
                relaxation.moves_cell() || sessions_.model().gives_virial(relaxation.particles().view());
            put_results(frame, relaxation, has_virial);
            if (const std::string head = head_to_write(*session_); !head.empty()) frame.set_info("head", head);
            std::ostringstream text;
            write_extxyz(text, frame);
            output_->write(text.view());
        }
        if (progress_count_ > 0)
            progress_.show(concat(written_, " of ", progress_count_, " structures"),
                           static_cast<double>(written_) / static_cast<double>(progress_count_));
    }

    std::string hint_to_resume() const {
        if (!output_ || output_->frame_count() == 0) return "";
        return concat("; the structures before it are in ", output_->part_path(), ", and --resume goes on with them");
    }

    int end_by_signal(int signal) {
        progress_.pause();
        std::cout.flush();
        std::cerr << "mlff: stopped by a signal after " << written_ << " structures"
                  << (output_ ? "; continue with --resume" : "") << "\n";
        return kStoppedBySignal + signal;
    }

    static constexpr double kTurnoverOnGpu = 0.125;

    const RelaxOptions& options_;
    int64_t most_atoms_;
    Sessions sessions_;
    PlanWarning warning_;
    ExtxyzReader reader_;
    ProgressLine progress_;
    int64_t progress_count_;
    std::optional<ResumableOutput> output_;
    // Of the batch.
    std::string head_;
    Session* session_ = nullptr;
    std::optional<SessionBatch> forces_;
    std::optional<RelaxationBatch> batch_;
    std::optional<Frame> next_;    // read, but there was no room
    std::deque<Waiting> waiting_;  // frames from written_ on
    int64_t written_ = 0, failed_count_ = 0;
    bool is_at_end_ = false;
    std::optional<Error> error_;  // of the first frame after those that are waiting
};

int run_relax(RelaxOptions options) {
    options.relaxation.method =
        options.method == "fire" ? RelaxationOptions::Method::fire : RelaxationOptions::Method::lbfgs;
    if (options.pressure && !options.relaxation.with_cell) fail(Status::argument, "--pressure needs --cell");
    if (options.largest_stress && !options.relaxation.with_cell) fail(Status::argument, "--smax needs --cell");
    if (options.resumes && options.output.empty()) fail(Status::argument, "--resume needs --output");
    options.relaxation.pressure = options.pressure.value_or(0);
    options.relaxation.largest_stress = options.largest_stress.value_or(options.relaxation.largest_stress);
    return Relaxer(options).run();
}

}  // namespace

void add_relax(CLI::App& app, Work& work) {
    auto options = std::make_shared<RelaxOptions>();
    CLI::App* command = app.add_subcommand("relax", "relax structures to an energy minimum");
    command
        ->add_option("FILE", options->input,
                     "structures in extended XYZ; '-' = standard input; uses the column move_mask")
        ->required();
    options->model.add_to(*command);
    command->add_option("--fmax", options->relaxation.largest_force, "converged when no force exceeds this, in eV/A")
        ->capture_default_str()
        ->option_text("FORCE");
    command->add_flag("--cell", options->relaxation.with_cell, "relax the cell too");
    command->add_option("--pressure", options->pressure, "pressure in bar, with --cell (default: 0)")
        ->option_text("BAR");
    command
        ->add_option("--smax", options->largest_stress,
                     "with --cell: converged when the stress is within this of the pressure, in eV/A^3 (default: 5e-4)")
        ->option_text("STRESS");
    command->add_option("--minimizer", options->method, "lbfgs or fire")
        ->capture_default_str()
        ->check(CLI::IsMember({"lbfgs", "fire"}))
        ->option_text("NAME");
    command->add_option("--steps", options->relaxation.step_limit, "maximum number of steps for a structure")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber)
        ->option_text("N");
    command->add_option("--fix", options->fixed, "atoms that do not move, counted from 0, such as 0,3,10-15")
        ->option_text("INDICES");
    command
        ->add_option("--batch", options->batch,
                     "number of atoms in flight, or auto; what is finished makes room for the next frame, and 1 is one "
                     "structure after the other")
        ->capture_default_str()
        ->option_text("ATOMS");
    command
        ->add_option("--output", options->output,
                     "write the relaxed structures as extended XYZ to OUT, which is OUT.part until it is complete")
        ->option_text("OUT");
    command->add_flag("--resume", options->resumes,
                      "go on after the structures in OUT.part of a run that was stopped, with the same options");
    command->footer(
        R"(Relaxes every frame of FILE, many at a time. A structure that does not converge is written too,
with converged=no, and the exit code is 1. Ctrl-C and other signals keep what is finished in
OUT.part.

Examples:
  # Relax molecules until no force exceeds 0.01 eV/A
  mlff relax molecules.xyz --fmax 0.01 --output relaxed.xyz
  # Go on where Ctrl-C stopped it
  mlff relax molecules.xyz --fmax 0.01 --output relaxed.xyz --resume
  # Relax a crystal and its cell at 1000 bar
  mlff relax crystal.xyz --model X.model --cell --pressure 1000 --output relaxed.xyz)");
    command->callback([options, &work] { work = [options] { return run_relax(*options); }; });
}

}  // namespace mlff::app
