// SPDX-License-Identifier: MIT
#include "md_beads.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "core/error.h"
#include "dynamics/restart.h"
#include "dynamics/ring_polymer.h"
#include "md_start.h"
#include "member_file.h"
#include "plan_warning.h"
#include "progress_line.h"
#include "sessions.h"
#include "stop_signal.h"
#include "trajectory.h"

namespace mlff::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBeadsLogHeader =
    "step,time_fs,centroid_temperature_K,ring_temperature_K,potential_eV,primitive_kinetic_eV,virial_kinetic_eV,"
    "total_eV,conserved_eV";

void check_bead_options(const MdOptions& options) {
    if (!options.beads) fail(Status::argument, "--beads-from and --write-beads need --beads");
    const auto refuse = [](bool is_given, const std::string& option, const char* instead) {
        if (is_given) fail(Status::argument, option, " cannot be given with --beads: ", instead);
    };
    refuse(options.wants_many(), "--all, --replicas, --temperatures or --exchange-every",
           "a ring polymer is made of one structure");
    refuse(options.ensemble == "npt", "--ensemble npt", "the cell of a ring polymer does not change");
    refuse(options.thermostat.value_or("langevin") != "langevin", "--thermostat " + options.thermostat.value_or(""),
           "its thermostat is PILE-L, Langevin's for every mode");
    refuse(options.remove_momentum_every > 0, "--remove-momentum-every",
           "without a thermostat the momentum stays what it is at the start, zero");
    refuse(!options.log.empty(), "--log", "the log is log.csv in the folder of --output");
    refuse(!options.checkpoint.empty(), "--checkpoint", "the restart file is all.restart in the folder of --output");
    refuse(options.wants_watch(), "--watch, --stop-sigma or --harvest", "run the structure without beads for it");
    refuse(!options.restart.empty() && !options.beads_from.empty(), "--restart and --beads-from together",
           "the first goes on with a run, the second begins one");
    if (!options.temperature)
        fail(Status::argument, "--beads needs --temperature, on which the springs between beads depend");
    if (options.output.empty())
        fail(Status::argument, "--beads needs --output DIR, a folder for trajectories and the log");
    if (!options.restart.empty() &&
        fs::path(options.restart).lexically_normal() != fs::path(options.many_restart_path()).lexically_normal())
        fail(Status::argument, "--restart ", options.restart, ": with --output ", options.output,
             " the restart file is ", options.many_restart_path());
}

// The energy is a mean over beads and belongs to no structure, so it must not look like that of the centroid.
Frame centroid_frame(const Snapshot& snapshot, const Particles& atoms, const std::string& head) {
    Frame frame = frame_of(snapshot, atoms, head);
    std::erase_if(frame.info, [](const auto& entry) { return entry.first == "energy"; });
    std::erase_if(frame.columns, [](const AtomColumn& column) { return column.name == "forces"; });
    frame.set_info("mean_energy_of_beads", snapshot.potential_energy);
    return frame;
}

// Everything that a run of beads writes.
class BeadsRun {
public:
    explicit BeadsRun(const MdOptions& options) : options_(options) {
        check_bead_options(options);
        polymer_options_.time_step = options.time_step;
        const DynamicsOptions dynamics = options.dynamics();
        polymer_options_.thermostat = dynamics.thermostat;
        polymer_options_.thermostat.temperature = *options.temperature;
        const RingModes check(1, *options.temperature);  // before files are touched
        const Frame frame = read_start(options);
        start_ = start_particles(options, dynamics, frame, options.input);
        start_.rigid_degrees = count_rigid_degrees(dynamics, start_);
        if (start_.has_fixed_atoms())
            fail(Status::argument, options.input,
                 ": some atoms are fixed (--fix or move_mask), but the atoms of a ring polymer must all be free");
        if (!options.restart.empty()) read_restart_file();
        check_folder();
        make_session(frame);
        begin(restart_ ? beads_of(*restart_) : first_beads());
        open_files();
    }

    int go() {
        const StopSignal stop;
        ProgressLine progress("md");
        const auto start = std::chrono::steady_clock::now();
        const int64_t first_step = polymer_->step_count();
        if (!restart_) report();
        try {
            while (step() < options_.steps && stop.number() == 0) {
                polymer_->step();
                report();
                if (options_.checkpoint_every > 0 && step() % options_.checkpoint_every == 0) save();
                progress.show(
                    concat("step ", step(), " of ", options_.steps, ", ", polymer_->bead_count(), " beads"),
                    static_cast<double>(step() - first_step) / static_cast<double>(options_.steps - first_step));
            }
        } catch (const Error& error) {
            if (error.status() != Status::system) throw;
            progress.pause();
            give_up(error);
        }
        progress.pause();
        save();
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        const double steps = static_cast<double>(step() - first_step) / std::max(seconds, 1e-9);
        const double drift = 1e3 * (polymer_->conserved_energy() - conserved_start_) /
                             static_cast<double>(std::max<size_t>(polymer_->atom_count(), 1));
        std::cout << "step " << step() << " of " << options_.steps << ", " << std::setprecision(4)
                  << steps * static_cast<double>(polymer_->bead_count()) << " bead-steps/s, " << std::fixed
                  << std::setprecision(1) << polymer_->ring_temperature() << " K, drift " << std::setprecision(4)
                  << drift << " meV/atom\n"
                  << std::flush;
        if (stop.number() == 0) return kGood;
        std::cerr << "mlff: stopped by a signal after step " << step() << "; continue with --restart "
                  << options_.many_restart_path() << "\n";
        return kStoppedBySignal + stop.number();
    }

private:
    int64_t step() const { return polymer_->step_count(); }

    // Restart files of `option` that have other beads are refused.
    ManyRestart read_beads(const std::string& path, const char* option) const {
        ManyRestart restart = read_many_restart(path);
        if (!restart.run.contains("beads")) fail(Status::argument, option, " ", path, " is not of a run with --beads");
        if (static_cast<int64_t>(restart.members.size()) != *options_.beads)
            fail(Status::argument, option, " ", path, " has ", restart.members.size(), " beads, not ", *options_.beads);
        for (size_t i = 0; i < restart.members.size(); ++i) {
            const DynamicsState& state = restart.members[i].state;
            if (!restart.ended[i].empty() || state.step_count != restart.members[0].state.step_count ||
                state.particles.masses != restart.members[0].state.particles.masses)
                fail(Status::format, path, ": system ", i, " is no bead of the first");
            if (state.particles.atomic_numbers != start_.atomic_numbers)
                fail(Status::argument, option, " ", path, " has other atoms than ", options_.input);
        }
        return restart;
    }

    void read_restart_file() {
        restart_ = read_beads(options_.restart, "--restart");
        for (const Restart& bead : restart_->members) check_restart(bead, options_, start_, options_.input);
        const int64_t step = restart_->members[0].state.step_count;
        if (step >= options_.steps)
            fail(Status::argument, "--steps ", options_.steps, " counts the whole run, and ", options_.restart,
                 " is already at step ", step);
    }

    template <class T>
    T restart_number(const std::string& key) const {
        const auto found = restart_->run.find(key);
        T number = 0;
        std::istringstream text(found == restart_->run.end() ? "" : found->second);
        if (!(text >> number)) fail(Status::format, options_.restart, ": the restart file has no number ", key);
        return number;
    }

    std::vector<Particles> beads_of(const ManyRestart& restart) const {
        std::vector<Particles> beads;
        for (const Restart& bead : restart.members) {
            beads.push_back(bead.state.particles);
            beads.back().is_fixed.clear();
            beads.back().rigid_degrees = start_.rigid_degrees;
        }
        return beads;
    }

    std::vector<Particles> first_beads() const {
        if (options_.beads_from.empty())
            return make_beads(start_, *options_.beads, *options_.temperature, options_.seed);
        std::vector<Particles> beads = beads_of(read_beads(options_.beads_from, "--beads-from"));
        if (start_.rigid_degrees > 0) stop_centre(beads);
        return beads;
    }

    // A thermostat has moved the centre of mass, and without one it would go on for ever.
    static void stop_centre(std::vector<Particles>& beads) {
        Vec3 momentum{};
        double mass = 0;
        for (const Particles& bead : beads) {
            const Vec3 own = bead.momentum();
            for (size_t k = 0; k < 3; ++k) momentum[k] += own[k];
            for (const double of_atom : bead.masses) mass += of_atom;
        }
        for (Particles& bead : beads)
            for (size_t i = 0; i < bead.velocities.size(); ++i) bead.velocities[i] -= momentum[i % 3] / mass;
    }

    void check_folder() const {
        std::error_code error;
        fs::create_directories(options_.output, error);
        if (!fs::is_directory(options_.output, error))
            fail(Status::file, options_.output, ": cannot make the folder of --output");
        if (restart_ || options_.overwrite) return;
        std::vector<std::string> paths = {options_.many_restart_path(), file_named("log.csv"),
                                          file_named("centroid.xyz")};
        for (int64_t i = 0; options_.write_beads && i < *options_.beads; ++i) paths.push_back(bead_path(i));
        for (const std::string& path : paths)
            if (fs::exists(path, error))
                fail(Status::argument, path,
                     " already exists: continue its run with --restart, choose another folder, or replace it with "
                     "--overwrite");
    }

    void make_session(const Frame& frame) {
        sessions_ = std::make_unique<Sessions>(load_model(options_.model.model), options_.model.session_options());
        const std::string head = sessions_->head_of(frame);
        session_ = &sessions_->for_head(head);
        forces_.emplace(*session_, sessions_->shared_model(), sessions_->options_for(head));
        head_ = head_to_write(*session_);
        if (restart_ && restart_->run["head"] != head_)
            fail(Status::argument, "--restart ", options_.restart, " was written with head ", restart_->run["head"],
                 ", not ", head_);
        PlanWarning(options_.model.model, options_.model.session.exact_radial)
            .look_at(*session_, start_.view(), options_.input);
    }

    void begin(std::vector<Particles> beads) {
        try {
            polymer_.emplace(*forces_, std::move(beads), polymer_options_);
        } catch (const Error& error) {
            throw in_file(options_.input, error);
        }
        if (restart_) go_on();
        polymer_->watch(options_.limits);
        conserved_start_ = restart_ ? restart_number<double>("conserved-start") : polymer_->conserved_energy();
        std::cout << "model " << options_.model.model << ", " << session_->device_name() << ", "
                  << precision_name(session_->precision()) << ", " << polymer_->atom_count() << " atoms, "
                  << polymer_->bead_count() << (polymer_->bead_count() == 1 ? " bead\n" : " beads\n") << std::flush;
    }

    void go_on() {
        const DynamicsState& first = restart_->members[0].state;
        polymer_->go_on_at(first.step_count, first.heat);
        // Accepts other devices and precisions, as for a single structure.
        const double tolerance = 1e-3 * static_cast<double>(std::max<size_t>(polymer_->atom_count(), 1));  // eV
        for (size_t j = 0; j < polymer_->bead_count(); ++j) {
            const double before = restart_->members[j].state.potential_energy, now = polymer_->bead_potential_energy(j);
            if (!(std::abs(now - before) <= tolerance))
                fail(Status::argument, options_.restart, ": the potential energy of bead ", j, " was ", before,
                     " eV, and is ", now, " eV now: the restart file belongs to another model");
        }
    }

    std::string file_named(const std::string& name) const { return (fs::path(options_.output) / name).string(); }
    std::string bead_path(int64_t bead) const {
        std::ostringstream name;
        const int digits = std::max<int>(4, static_cast<int>(std::to_string(*options_.beads - 1).size()));
        name << std::setw(digits) << std::setfill('0') << bead << ".xyz";
        return file_named(name.str());
    }

    void open_files() {
        const auto place = [&](const std::string& key) {
            return restart_ ? std::optional(restart_number<uint64_t>(key)) : std::nullopt;
        };
        if (restart_ && restart_->run.contains("bead-0-place") != options_.write_beads)
            fail(Status::argument, "--restart ", options_.restart, " was written ",
                 options_.write_beads ? "without" : "with", " --write-beads: continue it in the same way");
        folder_.emplace(options_.output);
        if (restart_) {  // all is checked before a file is touched
            check_size(file_named("centroid.xyz"), *place("centroid-place"));
            check_size(file_named("log.csv"), *place("log-place"));
            for (int64_t i = 0; options_.write_beads && i < *options_.beads; ++i)
                check_size(bead_path(i), *place(concat("bead-", i, "-place")));
        } else {
            remove_old_restart(options_.many_restart_path());
        }
        centroid_file_.emplace(file_named("centroid.xyz"), place("centroid-place"));
        log_.emplace(file_named("log.csv"), place("log-place"));
        for (int64_t i = 0; options_.write_beads && i < *options_.beads; ++i)
            bead_files_.emplace_back(bead_path(i), place(concat("bead-", i, "-place")));
        if (!restart_) log_->add(concat(kBeadsLogHeader, "\n"));
    }

    void report() {
        if (step() % options_.log_every == 0) log_->add(log_line());
        if (step() % options_.output_every != 0) return;
        const auto text_of = [](const Frame& frame) {
            std::ostringstream text;
            write_extxyz(text, frame);
            return text.str();
        };
        centroid_file_->add(text_of(centroid_frame(polymer_->centroid_snapshot(), start_, head_)));
        run_over(session_->team(), bead_files_.size(),
                 [&](size_t j) { bead_files_[j].add(text_of(frame_of(polymer_->bead_snapshot(j), start_, head_))); });
    }

    std::string log_line() const {
        std::ostringstream line;
        line << std::setprecision(12) << step() << "," << static_cast<double>(step()) * options_.time_step << ","
             << polymer_->centroid().temperature() << "," << polymer_->ring_temperature() << ","
             << polymer_->potential_energy() << "," << polymer_->primitive_kinetic_energy() << ","
             << polymer_->virial_kinetic_energy() << "," << polymer_->total_energy() << ","
             << polymer_->conserved_energy() << "\n";
        return line.str();
    }

    // Frames and the log first: a restart file never knows of what is not on disk.
    void save() {
        if (step() == last_saved_) return;
        ManyRestart restart;
        std::ostringstream start;
        start << std::setprecision(17) << conserved_start_;
        restart.run = {{"beads", std::to_string(polymer_->bead_count())},
                       {"conserved-start", start.str()},
                       {"head", head_},
                       {"centroid-place", std::to_string(centroid_file_->flush())},
                       {"log-place", std::to_string(log_->flush())}};
        for (size_t j = 0; j < bead_files_.size(); ++j)
            restart.run[concat("bead-", j, "-place")] = std::to_string(bead_files_[j].flush());
        for (size_t j = 0; j < polymer_->bead_count(); ++j) {
            DynamicsState state;
            state.particles = polymer_->beads()[j];
            state.step_count = step();
            state.potential_energy = polymer_->bead_potential_energy(j);
            state.heat = j == 0 ? polymer_->heat() : 0;
            state.searched_positions = state.particles.positions;
            state.searched_cell = state.particles.environment.cell;
            restart.members.push_back({std::move(state), options_.choices()});
            restart.ended.emplace_back();
        }
        folder_->sync();
        write_many_restart(options_.many_restart_path(), restart);
        last_saved_ = step();
    }

    [[noreturn]] void give_up(const Error& error) {
        centroid_file_->flush();
        log_->flush();
        for (MemberFile& file : bead_files_) file.flush();
        const std::string path = file_named("centroid.last.xyz");
        std::ostringstream frames;
        for (size_t i = 0; i < polymer_->recent().size(); ++i)
            write_extxyz(frames, centroid_frame(polymer_->recent()[i], start_, head_));
        write_text(path, frames.str());
        fail(error.status(), options_.input, ": ", error.what(), "; the last frames of the centroid are in ", path);
    }

    const MdOptions& options_;
    RingPolymerOptions polymer_options_;
    Particles start_;  // the structure of the file
    std::optional<ManyRestart> restart_;
    std::unique_ptr<Sessions> sessions_;
    Session* session_ = nullptr;
    std::optional<SessionBatch> forces_;
    std::optional<RingPolymer> polymer_;
    std::string head_;  // "" if the model has only one
    double conserved_start_ = 0;
    std::optional<SyncedFolder> folder_;
    std::optional<MemberFile> centroid_file_, log_;
    std::vector<MemberFile> bead_files_;
    int64_t last_saved_ = -1;
};

}  // namespace

int run_beads_md(const MdOptions& options) { return BeadsRun(options).go(); }

}  // namespace mlff::app
