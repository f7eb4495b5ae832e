// SPDX-License-Identifier: MIT
// mlff md: molecular dynamics of one structure, with a trajectory, a log, restart files and a clean stop.
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "append_file.h"
#include "command.h"
#include "core/error.h"
#include "core/matrix3.h"
#include "core/output_file.h"
#include "dynamics/molecular_dynamics.h"
#include "dynamics/restart.h"
#include "dynamics/session_forces.h"
#include "dynamics/units.h"
#include "formats/extxyz.h"
#include "md_beads.h"
#include "md_many.h"
#include "md_options.h"
#include "md_start.h"
#include "md_watch.h"
#include "moving_atoms.h"
#include "plan_warning.h"
#include "sessions.h"
#include "stop_signal.h"
#include "trajectory_writer.h"

namespace mlff::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kTrustEveryOnGpu = 10;  // steps: two small kernels, which would be 4 % of a step of few atoms
namespace fs = std::filesystem;

// The log: a line of numbers every so many steps.
class Log {
public:
    // `has_watch`: with columns for what is watched, which stay empty if the forces are not.
    Log(const std::string& path, std::optional<uint64_t> go_on_at, bool has_watch, const SessionForces& forces)
        : file_(path, go_on_at), has_watch_(has_watch), forces_(forces) {
        if (!go_on_at) file_.write(header(has_watch) + "\n");
    }
    // Before a file is touched.
    static void check_columns(const std::string& path, bool has_watch) {
        std::ifstream file(path);
        std::string found;
        if (std::getline(file, found) && found != header(has_watch))
            fail(Status::argument, "--log ", path, " was begun with other columns: continue it with the same ",
                 "--watch or --no-watch, or choose another name");
    }
    void add(const MolecularDynamics& dynamics) {
        std::ostringstream line;
        line << std::setprecision(12) << md_log_numbers(dynamics);
        if (forces_.are_watched())
            line << "," << forces_.reading().sigma_max << "," << forces_.reading().atoms_outside;
        else if (dynamics.trust_step() >= 0)  // on a GPU, of the last step in which it was measured
            line << "," << dynamics.trust().max_expected_error << "," << dynamics.trust().outside_count;
        else if (has_watch_)
            line << ",,";
        line << "\n";
        file_.write(line.view());
    }
    uint64_t sync() { return file_.sync(); }

private:
    static std::string header(bool has_watch) {
        return concat(kMdLogHeader, has_watch ? ",sigma_max_eV_per_A,atoms_outside" : "");
    }

    AppendFile file_;
    bool has_watch_;
    const SessionForces& forces_;
};

// One line that is written over, on a terminal only.
class Progress {
public:
    Progress(const MolecularDynamics& dynamics, int64_t last_step, double conserved_start)
        : is_shown_(isatty(STDERR_FILENO)),
          first_step_(dynamics.step_count()),
          last_step_(last_step),
          conserved_start_(conserved_start),
          begin_(Clock::now()),
          shown_(begin_) {}
    ~Progress() {
        if (is_shown_) std::cerr << "\r\033[K" << std::flush;
    }

    double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
    double nanoseconds_per_day(const MolecularDynamics& dynamics) const {
        return static_cast<double>(dynamics.step_count() - first_step_) * dynamics.time_step() * 1e-6 /
               std::max(seconds(), 1e-9) * 86400;
    }
    double drift(const MolecularDynamics& dynamics) const {  // meV/atom
        return 1e3 * (dynamics.conserved_energy() - conserved_start_) / static_cast<double>(dynamics.atom_count());
    }

    void show(const MolecularDynamics& dynamics) {
        if (!is_shown_ || Clock::now() - shown_ < std::chrono::milliseconds(300)) return;
        shown_ = Clock::now();
        const int64_t step = dynamics.step_count();
        const auto left =
            static_cast<int64_t>(seconds() / static_cast<double>(std::max<int64_t>(step - first_step_, 1)) *
                                 static_cast<double>(last_step_ - step));
        std::ostringstream line;
        line << std::fixed << "\r\033[Kstep " << step << "/" << last_step_ << "  " << std::setprecision(2)
             << nanoseconds_per_day(dynamics) << " ns/day  " << std::setprecision(0) << dynamics.temperature()
             << " K  ";
        if (!dynamics.options().barostat) line << "drift " << std::setprecision(3) << drift(dynamics) << " meV/atom  ";
        line << "ETA " << left / 3600 << ":" << std::setfill('0') << std::setw(2) << left / 60 % 60 << ":"
             << std::setw(2) << left % 60;
        std::cerr << line.view() << std::flush;
    }

private:
    bool is_shown_;
    int64_t first_step_, last_step_;
    double conserved_start_;
    Clock::time_point begin_, shown_;
};

// Everything a run writes.
class Run {
public:
    Run(const MdOptions& options, const Session& session, MolecularDynamics& dynamics, const SessionForces& forces,
        std::string head, const Restart* restart)
        : options_(options),
          dynamics_(dynamics),
          head_(std::move(head)),
          conserved_start_(restart ? number_of(*restart, "conserved-start") : dynamics.conserved_energy()) {
        dynamics.watch(options.limits);
        check_paths(restart);
        std::optional<uint64_t> output_place, log_place;  // all is checked before a file is touched
        if (!options.output.empty()) output_place = place(restart, "output", options.output);
        if (!options.log.empty()) log_place = place(restart, "log", options.log);
        const bool log_has_watch = can_be_watched(session) && options.watch.value_or(true);
        if (log_place) Log::check_columns(options.log, log_has_watch);
        if (forces.are_watched()) watch_.emplace(options, forces, head_, restart);
        if (!options.output.empty())
            trajectory_.emplace(open_trajectory(options.output, dynamics.particles(), output_place, head_));
        if (!options.log.empty()) log_.emplace(options.log, log_place, log_has_watch, forces);
        last_saved_ = restart ? dynamics.step_count() : -1;
    }

    int go() {
        const StopSignal stop;
        Progress progress(dynamics_, options_.steps, conserved_start_);
        if (last_saved_ < 0) report();
        bool is_trusted = true;
        try {
            const auto goes_on = [&] {
                progress.show(dynamics_);
                return stop.number() == 0 && !(watch_ && watch_->needs_look(dynamics_.step_count()));
            };
            is_trusted = !watch_ || watch_->look(dynamics_);
            while (dynamics_.step_count() < options_.steps && stop.number() == 0 && is_trusted) {
                dynamics_.advance(next_stop() - dynamics_.step_count(), goes_on);
                report();
                is_trusted = !watch_ || watch_->look(dynamics_);
                if (options_.checkpoint_every > 0 && dynamics_.step_count() % options_.checkpoint_every == 0) save();
            }
        } catch (const Error& error) {
            if (error.status() != Status::system) throw;
            give_up(error);
        }
        save();
        const double speed = progress.nanoseconds_per_day(dynamics_);
        std::cout << std::fixed << "step " << dynamics_.step_count() << " of " << options_.steps << ", "
                  << std::setprecision(speed < 10 ? 4 : 2) << speed << " ns/day, " << std::setprecision(1)
                  << dynamics_.temperature() << " K";
        if (!dynamics_.options().barostat)
            std::cout << ", drift " << std::setprecision(4) << progress.drift(dynamics_) << " meV/atom";
        std::cout << "\n";
        if (watch_ && !watch_->summary().empty()) std::cout << watch_->summary() << "\n";
        std::cout << std::flush;
        if (!is_trusted) {
            std::cerr << "mlff: " << options_.input << ": " << watch_->why_stopped() << "; the restart file is "
                      << options_.checkpoint_path() << "\n";
            return kCheckFailed;
        }
        if (stop.number() == 0) return kGood;
        std::cerr << "mlff: stopped by a signal after step " << dynamics_.step_count() << "; continue with --restart "
                  << options_.checkpoint_path() << "\n";
        return kStoppedBySignal + stop.number();
    }

private:
    static double number_of(const Restart& restart, const char* key) {
        const auto found = restart.run.find(key);
        std::istringstream text(found == restart.run.end() ? "" : found->second);
        double number = 0;
        if (!(text >> number) || !std::isfinite(number)) fail(Status::format, "the restart file has no number ", key);
        return number;
    }
    static uint64_t whole_number_of(const Restart& restart, const std::string& key) {
        const auto found = restart.run.find(key);
        const std::string text = found == restart.run.end() ? "" : found->second;
        uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (text.empty() || error != std::errc() || end != text.data() + text.size())
            fail(Status::format, "the restart file has no whole number ", key);
        return number;
    }
    // The restart file of another run is not replaced, and no two files are one.
    void check_paths(const Restart* restart) const {
        const std::string checkpoint = options_.checkpoint_path();
        const auto refuse_same = [](const char* a, const std::string& first, const char* b, const std::string& second) {
            if (!first.empty() && fs::path(first).lexically_normal() == fs::path(second).lexically_normal())
                fail(Status::argument, a, " and ", b, " are the same file, ", first);
        };
        refuse_same("--output", options_.output, "--log", options_.log);
        refuse_same("--output", options_.output, "the restart file", checkpoint);
        refuse_same("--log", options_.log, "the restart file", checkpoint);
        std::error_code ignored;
        if (!restart && !options_.overwrite && fs::is_regular_file(checkpoint, ignored))
            fail(Status::argument, "the restart file ", checkpoint,
                 " already exists: continue its run with --restart, choose another name with --checkpoint, or "
                 "replace it with --overwrite");
    }
    // Where an output file is gone on with: nowhere if it is not the one of the restart file.
    std::optional<uint64_t> place(const Restart* restart, const std::string& what, const std::string& path) const {
        if (restart && restart->run.contains(what) && restart->run.at(what) == path)
            return whole_number_of(*restart, what + "-place");
        std::error_code ignored;
        if (!options_.overwrite && fs::is_regular_file(path, ignored))
            fail(Status::argument, "--", what, " ", path,
                 " already exists: continue its run with --restart, choose another name, or replace it with "
                 "--overwrite");
        return {};
    }

    // The next step after which something is written.
    int64_t next_stop() const {
        const int64_t step = dynamics_.step_count();
        int64_t stop = options_.steps;
        const auto consider = [&](int64_t interval) { stop = std::min(stop, step - step % interval + interval); };
        if (trajectory_) consider(options_.output_every);
        if (log_) consider(options_.log_every);
        if (options_.checkpoint_every > 0) consider(options_.checkpoint_every);
        return stop;
    }

    void report() {
        const int64_t step = dynamics_.step_count();
        if (trajectory_ && step % options_.output_every == 0) trajectory_->put(dynamics_);
        if (log_ && step % options_.log_every == 0) log_->add(dynamics_);
    }

    // Frames first: a restart file never knows of frames that are not on disk.
    void save() {
        if (last_saved_ == dynamics_.step_count()) return;
        Restart restart = {dynamics_.state(), options_.choices()};
        std::ostringstream start;
        start << std::setprecision(17) << conserved_start_;
        restart.run["conserved-start"] = start.str();
        if (!head_.empty()) restart.run["head"] = head_;
        if (trajectory_) {
            restart.run["output"] = options_.output;
            restart.run["output-place"] = std::to_string(trajectory_->flush());
        }
        if (log_) {
            restart.run["log"] = options_.log;
            restart.run["log-place"] = std::to_string(log_->sync());
        }
        if (watch_) watch_->save(restart);
        write_restart(options_.checkpoint_path(), restart);
        last_saved_ = dynamics_.step_count();
    }

    [[noreturn]] void give_up(const Error& error) {
        if (trajectory_) trajectory_->flush();
        const RecentSnapshots& recent = dynamics_.recent();
        const Particles& atoms = dynamics_.particles();
        std::ostringstream frames;
        for (size_t i = 0; i < recent.size(); ++i) write_extxyz(frames, frame_of(recent[i], atoms, head_));
        write_text(options_.last_frames_path(), frames.str());
        std::string text = error.what();
        if (text.find("the closest atoms") == std::string::npos) text += describe_closest_pair(atoms.view());
        if (text.find("the closest atoms") == std::string::npos && recent.size() > 0) {
            const Snapshot& last = recent[recent.size() - 1];
            SystemView system = atoms.view();
            system.positions = last.positions.data();
            system.cell = last.cell;
            const std::string pair = describe_closest_pair(system);
            if (!pair.empty()) text += concat(pair, " at step ", last.step);
        }
        fail(error.status(), options_.input, ": ", text, "; the last frames are in ", options_.last_frames_path());
    }

    const MdOptions& options_;
    MolecularDynamics& dynamics_;
    std::string head_;  // "" if the model has only one
    double conserved_start_;
    std::optional<TrajectoryWriter> trajectory_;
    std::optional<Log> log_;
    std::optional<MdWatch> watch_;
    int64_t last_saved_ = -1;
};

int run_md(const MdOptions& options) {
    if (options.wants_beads()) return run_beads_md(options);
    if (options.wants_many()) return run_many_md(options);
    DynamicsOptions dynamics_options = options.dynamics();
    options.watch_rules();  // refuses what contradicts itself, before anything is read
    if (!options.output.empty()) check_trajectory_name(options.output);
    const Frame frame = read_start(options);
    Particles particles = start_particles(options, dynamics_options, frame, options.input);
    const std::array<bool, 3>& periodic = particles.environment.periodic;
    std::optional<Restart> restart;
    if (!options.restart.empty()) {
        restart = read_restart(options.restart);
        check_restart(*restart, options, particles, options.input);
        if (restart->state.step_count >= options.steps)
            fail(Status::argument, "--steps ", options.steps, " counts the whole run, and ", options.restart,
                 " is already at step ", restart->state.step_count);
    }
    SessionOptions session_options = options.model.session_options();
    session_options.is_trajectory = true;
    session_options.measures_trust_on_gpu = options.watch.value_or(false);
    const auto model = load_model(options.model.model);
    session_options.head = head_of(frame, *model, session_options.head);
    Session session(model, session_options);
    const std::string head = head_to_write(session);
    if (restart && restart->run.contains("head") && restart->run.at("head") != head)
        fail(Status::argument, "--restart ", options.restart, " was written with head ", restart->run.at("head"),
             ", not ", head);
    dynamics_options.wants_virial =
        periodic[0] && periodic[1] && periodic[2] && session.model().gives_virial(particles.view());
    PlanWarning(options.model.model, session_options.exact_radial).look_at(session, particles.view(), options.input);
    DeviceStepper* stepper = session.device_stepper();
    if (options.wants_watch()) {
        if (!can_be_watched(session))
            fail(Status::argument,
                 options.stop_sigma         ? "--stop-sigma"
                 : !options.harvest.empty() ? "--harvest"
                                            : "--watch",
                 " needs a model that says how far its forces may be trusted: one with a trust meter (mlff trust fit), "
                 "or "
                 "a committee: --model A,B,C");
        // Frames and the end of a run need the errors of all atoms, and dynamics on the GPU compute only the mean of a
        // committee.
        if (options.stop_sigma || !options.harvest.empty() || !session.trust_meter()) stepper = nullptr;
    }
    if (stepper && session.trust_meter() && options.watch.value_or(false))
        dynamics_options.trust_every = kTrustEveryOnGpu;
    const bool is_watched = can_be_watched(session) && options.watch.value_or(true) && !stepper;
    SessionForces forces(session, is_watched ? std::optional(options.watch_rules().outside_sigma) : std::nullopt);
    std::optional<MolecularDynamics> dynamics;
    try {
        if (restart)
            dynamics.emplace(forces, restart->state, dynamics_options);
        else
            dynamics.emplace(forces, std::move(particles), dynamics_options);
        if (stepper) dynamics->move_to_device(*stepper, session.team());
    } catch (const Error& error) {
        throw in_file(restart ? options.restart : options.input, error);
    }
    std::cout << "model " << options.model.model << ", " << session.device_name() << ", "
              << precision_name(session.precision()) << ", " << dynamics->particles().atom_count() << " atoms, "
              << dynamics->particles().degrees_of_freedom() << " degrees of freedom\n"
              << std::flush;
    return Run(options, session, *dynamics, forces, head, restart ? &*restart : nullptr).go();
}

}  // namespace

void add_md(CLI::App& app, Work& work) {
    auto options = std::make_shared<MdOptions>();
    CLI::App* command = app.add_subcommand("md", "run molecular dynamics of a structure");
    options->add_to(*command);
    command->footer(
        R"(Ctrl-C, SIGTERM, SIGHUP, SIGUSR1 and SIGXCPU stop the run cleanly: the trajectory, the log and a
restart file are written first. Existing files are kept unless --restart or --overwrite is given.

Examples:
  # 10 ps at 300 K, with a trajectory
  mlff md water.xyz --ensemble nvt --temperature 300 --steps 20000 --dt 0.5 --output run.xyz
  # Continue it to 20 ps
  mlff md water.xyz --ensemble nvt --temperature 300 --steps 40000 --dt 0.5 --output run.xyz --restart run.restart
  # All structures of a file, each with a trajectory and a log in the folder many
  mlff md conformers.xyz --all --ensemble nvt --temperature 300 --steps 2000 --dt 0.5 --output many
  # Replica exchange of 8 copies between 300 and 600 K
  mlff md peptide.xyz --replicas 8 --temperatures 300,600 --ensemble nvt --steps 2000 --dt 0.5 --output ladder
  # The same as a quantum system: a ring polymer of 32 beads
  mlff md water.xyz --beads 32 --ensemble nvt --temperature 300 --steps 2000 --dt 0.25 --output quantum
  # Constant pressure with a MACE model, with a log
  mlff md box.xyz --model X.model --ensemble npt --temperature 300 --pressure 1 --steps 9000 --dt 1 --log npt.csv)");
    command->callback([options, &work] { work = [options] { return run_md(*options); }; });
}

}  // namespace mlff::app
