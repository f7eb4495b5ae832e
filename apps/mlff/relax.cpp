// SPDX-License-Identifier: MIT
// mlff relax: structures to the minimum of their energy, many of a file at once.
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "command.h"
#include "core/error.h"
#include "core/matrix3.h"
#include "core/output_file.h"
#include "dynamics/relaxation.h"
#include "dynamics/units.h"
#include "formats/extxyz.h"
#include "moving_atoms.h"
#include "plan_warning.h"
#include "sessions.h"

namespace mlff::app {
namespace {

struct RelaxOptions {
    std::string input, output, fixed, method = "lbfgs";
    ModelOptions model;
    RelaxationOptions relaxation;
    std::optional<double> pressure, largest_stress;
};

constexpr int64_t kFramesAtOnce = 64;

struct Batch {
    std::vector<Frame> frames;
    std::vector<Relaxation> relaxations;
    std::string head;
    int64_t first = 0;  // index of the first frame in the file
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

class Relaxer {
public:
    explicit Relaxer(const RelaxOptions& options)
        : options_(options),
          sessions_(load_model(options.model.model), options.model.session_options()),
          warning_(options.model.model, options.model.session.exact_radial) {
        if (!options.output.empty()) output_.emplace(options.output);
        std::cout << std::setw(6) << "frame" << std::setw(10) << "atoms" << std::setw(8) << "moves" << std::setw(20)
                  << "energy/eV" << std::setw(16) << "max|F|/(eV/A)";
        if (options.relaxation.with_cell)
            std::cout << std::setw(18) << "stress/(eV/A^3)" << std::setw(14) << "volume/A^3";
        std::cout << "\n";
    }

    void add(const Frame& frame, int64_t index) {
        const std::string head = sessions_.head_of(frame);
        if (!batch_.frames.empty() &&
            (head != batch_.head || static_cast<int64_t>(batch_.frames.size()) == kFramesAtOnce))
            finish_batch();
        if (batch_.frames.empty()) batch_.head = head, batch_.first = index;
        try {
            batch_.relaxations.emplace_back(moving_atoms(frame, options_.fixed), options_.relaxation);
        } catch (const Error& error) {
            throw Error(error.status(), concat(options_.input, ": frame ", index, ": ", error.what()));
        }
        batch_.frames.push_back(frame);
    }

    // How many did not converge.
    int64_t finish() {
        finish_batch();
        if (output_) output_->commit();
        return failed_count_;
    }

private:
    void finish_batch() {
        if (batch_.frames.empty()) return;
        Session& session = sessions_.for_head(batch_.head);
        for (size_t i = 0; i < batch_.frames.size(); ++i)
            warning_.look_at(session, batch_.frames[i].view(),
                             concat(options_.input, ": frame ", batch_.first + static_cast<int64_t>(i)));
        try {
            relax_together(session, batch_.relaxations);
        } catch (const Error& error) {
            throw Error(error.status(),
                        batch_.frames.size() > 1
                            ? concat(options_.input, ": in the frames from ", batch_.first, " on: ", error.what())
                            : concat(options_.input, ": frame ", batch_.first, ": ", error.what()));
        }
        for (size_t i = 0; i < batch_.frames.size(); ++i) {
            print_row(batch_.first + static_cast<int64_t>(i), batch_.relaxations[i], options_.relaxation.with_cell);
            failed_count_ += !batch_.relaxations[i].is_converged();
            if (!output_) continue;
            const Relaxation& relaxation = batch_.relaxations[i];
            const bool has_virial =
                relaxation.moves_cell() || sessions_.model().gives_virial(relaxation.particles().view());
            put_results(batch_.frames[i], relaxation, has_virial);
            if (const std::string head = head_to_write(session); !head.empty()) batch_.frames[i].set_info("head", head);
            std::ostringstream text;
            write_extxyz(text, batch_.frames[i]);
            output_->write(text.view().data(), text.view().size());
        }
        batch_ = {};
    }

    const RelaxOptions& options_;
    Sessions sessions_;
    PlanWarning warning_;
    std::optional<OutputFile> output_;
    Batch batch_;
    int64_t failed_count_ = 0;
};

int run_relax(RelaxOptions options) {
    options.relaxation.method =
        options.method == "fire" ? RelaxationOptions::Method::fire : RelaxationOptions::Method::lbfgs;
    if (options.pressure && !options.relaxation.with_cell) fail(Status::argument, "--pressure needs --cell");
    if (options.largest_stress && !options.relaxation.with_cell) fail(Status::argument, "--smax needs --cell");
    options.relaxation.pressure = options.pressure.value_or(0);
    options.relaxation.largest_stress = options.largest_stress.value_or(options.relaxation.largest_stress);
    Relaxer relaxer(options);
    ExtxyzReader reader(options.input);
    Frame frame;
    while (reader.next(frame)) relaxer.add(frame, reader.frames_read() - 1);
    if (reader.frames_read() == 0) fail(Status::format, options.input, ": no frame in the file");
    const int64_t failed = relaxer.finish();
    if (failed == 0) return kGood;
    std::cerr << "mlff: " << options.input << ": " << failed << " of " << reader.frames_read()
              << " structures did not converge within --steps " << options.relaxation.step_limit << "\n";
    return kCheckFailed;
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
    command->add_option("--output", options->output, "write the relaxed structures as extended XYZ to OUT")
        ->option_text("OUT");
    command->footer(
        R"(Relaxes every frame of FILE, many at a time. A structure that does not converge is written too,
with converged=no, and the exit code is 1.

Examples:
  # Relax molecules until no force exceeds 0.01 eV/A
  mlff relax molecules.xyz --fmax 0.01 --output relaxed.xyz
  # Relax a crystal and its cell at 1000 bar
  mlff relax crystal.xyz --model X.model --cell --pressure 1000 --output relaxed.xyz)");
    command->callback([options, &work] { work = [options] { return run_relax(*options); }; });
}

}  // namespace mlff::app
