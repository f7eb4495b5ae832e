// SPDX-License-Identifier: MIT
#include "md_many.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "core/error.h"
#include "dynamics/many_dynamics.h"
#include "dynamics/replica_exchange.h"
#include "dynamics/restart.h"
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

std::string csv_of(const std::vector<int64_t>& numbers) {
    std::string text;
    for (const int64_t number : numbers) text += concat(",", number);
    return text;
}

// One structure, with options of its own.
struct ManyMember {
    MdOptions options;  // with its temperature and seed
    Frame frame;
    std::string name;  // for messages
};

// A trajectory of mlff says what the temperature was, which is not what a bath is to have.
std::optional<double> wanted_temperature(const Frame& frame) {
    return frame.find_info("kinetic_energy") ? std::nullopt : frame.info_number("temperature");
}

std::vector<ManyMember> read_members(const MdOptions& options) {
    std::vector<ManyMember> members;
    ExtxyzReader reader(options.input);
    Frame frame;
    while (reader.next(frame)) {
        const int64_t index = reader.frames_read() - 1;
        ManyMember member = {options, frame, concat(options.input, ": frame ", index)};
        try {
            if (const auto own = wanted_temperature(frame)) member.options.temperature = *own;
            if (const auto own = frame.info_number("seed")) {
                if (!(*own >= 0 && *own <= 0x1p53 && *own == std::floor(*own)))
                    fail(Status::format, "seed=", *own, " is not a whole number, 0 or more");
                member.options.seed = static_cast<uint64_t>(*own);
            } else {
                member.options.seed += static_cast<uint64_t>(index);
            }
        } catch (const Error& error) {
            throw in_file(member.name, error);
        }
        members.push_back(std::move(member));
    }
    if (members.empty()) fail(Status::format, options.input, ": no frame in the file");
    return members;
}

std::vector<ManyMember> make_replicas(const MdOptions& options, const std::vector<double>& temperatures) {
    std::vector<ManyMember> frames = read_members(options);
    const auto count = static_cast<int64_t>(frames.size());
    const int64_t index = options.frame < 0 ? count + options.frame : options.frame;
    if (index < 0 || index >= count)
        fail(Status::argument, "--frame ", options.frame, ": ", options.input, " has ", count, " frames");
    std::vector<ManyMember> members;
    for (size_t i = 0; i < temperatures.size(); ++i) {
        ManyMember member = {options, frames[static_cast<size_t>(index)].frame, concat(options.input, ": replica ", i)};
        member.options.temperature = temperatures[i];
        member.options.seed += i;
        members.push_back(std::move(member));
    }
    return members;
}

void check_many_options(const MdOptions& options) {
    if (!options.all && !options.replicas)
        fail(Status::argument, "--temperatures and --exchange-every need --replicas");
    const char* const mode = options.all ? "--all" : "--replicas";
    const auto refuse = [&](bool is_given, const char* option, const char* instead) {
        if (is_given) fail(Status::argument, option, " cannot be given with ", mode, ": ", instead);
    };
    if (options.all && options.replicas) fail(Status::argument, "--all and --replicas exclude each other");
    refuse(options.all && options.frame != -1, "--frame", "all frames are run");
    refuse(!options.log.empty(), "--log", "every structure has a log in the folder of --output");
    refuse(!options.checkpoint.empty(), "--checkpoint", "the restart file is all.restart in the folder of --output");
    refuse(options.wants_watch(), "--watch, --stop-sigma or --harvest", "run structures one by one for it");
    if (options.output.empty()) fail(Status::argument, mode, " needs --output DIR, a folder for trajectories and logs");
    if (!options.restart.empty() &&
        fs::path(options.restart).lexically_normal() != fs::path(options.many_restart_path()).lexically_normal())
        fail(Status::argument, "--restart ", options.restart, ": with --output ", options.output,
             " the restart file is ", options.many_restart_path());
    if (!options.replicas) {
        refuse(!options.temperatures.empty(), "--temperatures", "it is for --replicas");
        refuse(options.exchange_every.has_value(), "--exchange-every", "it is for --replicas");
        return;
    }
    refuse(options.temperature.has_value(), "--temperature", "--temperatures has those of all replicas");
    if (options.ensemble != "nvt") fail(Status::argument, "--replicas needs --ensemble nvt");
    if (options.temperatures.empty())
        fail(Status::argument, "--replicas needs --temperatures: the lowest and the highest, or all of them");
}

std::vector<double> exchange_temperatures(const MdOptions& options) {
    const std::vector<double>& given = options.temperatures;
    if (given.size() == 2) return temperature_ladder(given[0], given[1], *options.replicas);
    if (static_cast<int64_t>(given.size()) != *options.replicas)
        fail(Status::argument, "--temperatures has ", given.size(),
             " numbers, expected 2 (the lowest and the highest) or ", *options.replicas, ", one for each replica");
    return given;
}

// Everything that a run of many writes.
class ManyRun {
public:
    explicit ManyRun(const MdOptions& options) : options_(options) {
        check_many_options(options);
        if (options.replicas) exchange_.emplace(exchange_temperatures(options), options.seed);
        members_ = exchange_ ? make_replicas(options, exchange_->temperatures()) : read_members(options);
        check_count();
        if (!options.restart.empty()) read_restart_file();
        check_folder();
        make_session();
        begin();
        open_files();
    }

    int go() {
        try {
            return take_steps();
        } catch (...) {
            flush_all();
            throw;
        }
    }

private:
    struct Files {
        MemberFile trajectory, log;
    };

    int take_steps() {
        const StopSignal stop;
        ProgressLine progress("md");
        using Seconds = std::chrono::duration<double>;
        const auto start = std::chrono::steady_clock::now();
        const int64_t first_step = step_;
        int64_t taken = 0;
        report_ended(progress);
        if (!restart_) report();
        while (step_ < options_.steps && stop.number() == 0 && dynamics_->count_going_on() > 0) {
            taken += static_cast<int64_t>(dynamics_->count_going_on());
            dynamics_->step();
            ++step_;
            report_ended(progress);
            if (exchange_ && step_ % exchange_every() == 0) swap_replicas();
            report();
            if (options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0) save();
            progress.show(
                concat("step ", step_, " of ", options_.steps, ", ", dynamics_->count_going_on(), " structures"),
                static_cast<double>(step_ - first_step) / static_cast<double>(options_.steps - first_step));
        }
        progress.pause();
        save();
        const double seconds = Seconds(std::chrono::steady_clock::now() - start).count();
        std::cout << "step " << step_ << " of " << options_.steps << ", " << std::setprecision(4)
                  << static_cast<double>(taken) / std::max(seconds, 1e-9) << " structure-steps/s";
        if (ended_count_ > 0) std::cout << ", " << ended_count_ << " of " << members_.size() << " structures broke";
        std::cout << "\n";
        if (exchange_) print_acceptance();
        std::cout << std::flush;
        if (stop.number() != 0) {
            std::cerr << "mlff: stopped by a signal after step " << step_ << "; continue with --restart "
                      << options_.many_restart_path() << "\n";
            return kStoppedBySignal + stop.number();
        }
        return ended_count_ == 0 ? kGood : kCheckFailed;
    }

    // A run that could not be gone on with is not begun.
    void check_count() const {
        if (members_.size() > kMostSystemsOfRestart)
            fail(Status::argument, options_.input, ": ", members_.size(), exchange_ ? " replicas" : " structures",
                 " cannot step together: a restart file has at most ", kMostSystemsOfRestart);
    }

    void read_restart_file() {
        restart_ = read_many_restart(options_.restart);
        if (restart_->members.size() != members_.size())
            fail(Status::argument, "--restart ", options_.restart, " has ", restart_->members.size(),
                 " structures, but there are ", members_.size(), " now");
        step_ = static_cast<int64_t>(place_of(restart_->run, "step"));
        if (step_ < 0) fail(Status::format, options_.restart, ": the restart file has no step number");
        last_saved_ = step_;
        if (step_ >= options_.steps)
            fail(Status::argument, "--steps ", options_.steps, " counts the whole run, and ", options_.restart,
                 " is already at step ", step_);
        const std::string rungs = exchange_text(), before = restart_->run["exchange"];
        if (rungs != before)
            fail(Status::argument, "--restart ", options_.restart, " was written with ",
                 before.empty() ? "no replicas" : "replicas and swaps " + before, ", not ",
                 rungs.empty() ? "no replicas" : rungs);
        if (exchange_) exchange_->set_state(restart_->run["exchange-state"], step_ / exchange_every());
        for (size_t i = 0; i < members_.size(); ++i) {
            if (exchange_ && !restart_->ended[i].empty())
                fail(Status::format, options_.restart, ": replica ", i, " has ended, but replicas need each other");
            if (restart_->ended[i].empty() && restart_->members[i].state.step_count != step_)
                fail(Status::format, options_.restart, ": system ", i, " is at another step");
        }
    }

    uint64_t place_of(const std::map<std::string, std::string>& run, const std::string& key) const {
        const auto found = run.find(key);
        uint64_t number = 0;
        std::istringstream text(found == run.end() ? "" : found->second);
        if (!(text >> number)) fail(Status::format, options_.restart, ": the restart file has no whole number ", key);
        return number;
    }

    void check_folder() const {
        std::error_code error;
        fs::create_directories(options_.output, error);
        if (!fs::is_directory(options_.output, error))
            fail(Status::file, options_.output, ": cannot make the folder of --output");
        if (!restart_ && !options_.overwrite && fs::exists(options_.many_restart_path(), error))
            fail(Status::argument, "the restart file ", options_.many_restart_path(),
                 " already exists: continue its run with --restart, choose another folder, or replace it with "
                 "--overwrite");
        for (size_t i = 0; !restart_ && !options_.overwrite && i < members_.size(); ++i)
            for (const char* ending : {".xyz", ".csv"})
                if (fs::exists(file_of(i, ending), error))
                    fail(Status::argument, file_of(i, ending),
                         " already exists: choose another folder, or replace it with --overwrite");
    }

    void make_session() {
        sessions_ = std::make_unique<Sessions>(load_model(options_.model.model), options_.model.session_options());
        const std::string head = sessions_->head_of(members_.front().frame);
        for (const ManyMember& member : members_)
            if (const std::string own = sessions_->head_of(member.frame); own != head)
                fail(Status::argument, member.name, " has head ", own, ", but the first has ", head,
                     ": structures that step together need the same head");
        session_ = &sessions_->for_head(head);
        forces_.emplace(*session_, sessions_->shared_model(), sessions_->options_for(head));
        head_ = head_to_write(*session_);
    }

    void begin() {
        std::vector<DynamicsStart> starts;
        PlanWarning warning(options_.model.model, options_.model.session.exact_radial);
        for (size_t i = 0; i < members_.size(); ++i) {
            const ManyMember& member = members_[i];
            DynamicsStart start;
            try {
                start.options = member.options.dynamics();
                start.particles = start_particles(member.options, start.options, member.frame, member.name);
            } catch (const Error& error) {  // an option that is needed for this structure
                if (error.status() != Status::argument) throw;
                throw Error(error.status(), concat(member.name, ": ", error.what()));
            }
            warning.look_at(*session_, start.particles.view(), member.name);
            const auto& periodic = start.particles.environment.periodic;
            start.options.wants_virial =
                periodic[0] && periodic[1] && periodic[2] && session_->model().gives_virial(start.particles.view());
            if (restart_) {
                start.ended = restart_->ended[i];
                if (start.ended.empty()) {
                    check_restart(restart_->members[i], member.options, start.particles, member.name);
                    start.state = restart_->members[i].state;
                }
            }
            is_told_.push_back(!start.ended.empty());
            starts.push_back(std::move(start));
        }
        try {
            dynamics_.emplace(*forces_, std::move(starts), options_.limits);
        } catch (const Error& error) {
            throw in_file(options_.input, error);
        }
        std::cout << "model " << options_.model.model << ", " << session_->device_name() << ", "
                  << precision_name(session_->precision()) << ", " << members_.size()
                  << (exchange_ ? " replicas" : " structures") << "\n"
                  << std::flush;
    }

    std::string file_of(size_t i, const char* ending) const {
        std::ostringstream name;
        const int digits = std::max<int>(4, static_cast<int>(std::to_string(members_.size() - 1).size()));
        name << std::setw(digits) << std::setfill('0') << i << ending;
        return (fs::path(options_.output) / name.str()).string();
    }

    std::string swaps_path() const { return (fs::path(options_.output) / "swaps.csv").string(); }

    // Not of those that ended in an earlier part of the run, or never began.
    bool has_files(size_t i) const { return !is_told_[i] && dynamics_->at(i); }

    // All is checked before a file is touched.
    void check_sizes() const {
        for (size_t i = 0; i < members_.size(); ++i) {
            if (!has_files(i)) continue;
            check_size(file_of(i, ".xyz"), place_of(restart_->members[i].run, "output-place"));
            check_size(file_of(i, ".csv"), place_of(restart_->members[i].run, "log-place"));
        }
        if (exchange_) check_size(swaps_path(), place_of(restart_->run, "swaps-place"));
    }

    void open_files() {
        folder_.emplace(options_.output);
        if (restart_)
            check_sizes();
        else
            remove_old_restart(options_.many_restart_path());
        for (size_t i = 0; i < members_.size(); ++i) {
            if (!has_files(i)) {
                files_.push_back(nullptr);
                continue;
            }
            const auto place = [&](const char* key) {
                return restart_ ? std::optional(place_of(restart_->members[i].run, key)) : std::nullopt;
            };
            files_.push_back(std::make_unique<Files>(Files{MemberFile(file_of(i, ".xyz"), place("output-place")),
                                                           MemberFile(file_of(i, ".csv"), place("log-place"))}));
            if (!restart_) files_.back()->log.add(concat(kMdLogHeader, "\n"));
        }
        if (!exchange_) return;
        swaps_.emplace(swaps_path(), restart_ ? std::optional(place_of(restart_->run, "swaps-place")) : std::nullopt);
        if (restart_) return;
        std::string header = "step";
        for (size_t i = 0; i < members_.size(); ++i) header += concat(",replica_at_", i);
        swaps_->add(header + "\n0" + csv_of(exchange_->replicas()) + "\n");
    }

    void report() {
        const bool writes_frame = step_ % options_.output_every == 0, writes_log = step_ % options_.log_every == 0;
        if (!writes_frame && !writes_log) return;
        run_over(session_->team(), members_.size(), [&](size_t i) {
            if (!files_[i] || !dynamics_->goes_on(i)) return;
            const MolecularDynamics& dynamics = *dynamics_->at(i);
            if (writes_frame) {
                Snapshot snapshot;
                snapshot.take(dynamics);
                std::ostringstream text;
                write_extxyz(text, frame_of(snapshot, dynamics.particles(), head_));
                files_[i]->trajectory.add(text.view());
            }
            if (writes_log) files_[i]->log.add(md_log_numbers(dynamics) + "\n");
        });
    }

    // A structure that broke leaves; the others go on. Replicas need each other.
    void report_ended(ProgressLine& progress) {
        for (size_t i = 0; i < members_.size(); ++i) {
            if (dynamics_->goes_on(i) || is_told_[i]) continue;
            is_told_[i] = true;
            std::string text = concat(members_[i].name, ": ", dynamics_->ended(i));
            if (const MolecularDynamics* const dynamics = dynamics_->at(i); dynamics && dynamics->recent().size() > 0) {
                std::ostringstream frames;
                for (size_t k = 0; k < dynamics->recent().size(); ++k)
                    write_extxyz(frames, frame_of(dynamics->recent()[k], dynamics->particles(), head_));
                write_text(file_of(i, ".last.xyz"), frames.str());
                text += "; the last frames are in " + file_of(i, ".last.xyz");
            }
            if (files_[i]) files_[i]->trajectory.flush(), files_[i]->log.flush();
            if (exchange_) fail(Status::system, text, "; ", last_checkpoint());
            progress.pause();
            std::cerr << "mlff: " << text << "; the others go on\n";
        }
        ended_count_ = members_.size() - dynamics_->count_going_on();
    }

    // The others have already taken the step in which one broke, so there is nothing to save.
    std::string last_checkpoint() const {
        if (last_saved_ < 0) return "there is no restart file yet";
        return concat("the restart file ", options_.many_restart_path(), " is of step ", last_saved_);
    }

    // On the way out with an error, which is not replaced by another.
    void flush_all() {
        const auto flush = [](MemberFile& file) {
            try {
                file.flush();
            } catch (const std::exception&) {}
        };
        for (const auto& files : files_)
            if (files) flush(files->trajectory), flush(files->log);
        if (swaps_) flush(*swaps_);
    }

    int64_t exchange_every() const { return options_.exchange_every.value_or(100); }
    std::string exchange_text() const {
        if (!exchange_) return "";
        std::ostringstream text;
        text << std::setprecision(17) << "every " << exchange_every() << " steps at";
        for (const double temperature : exchange_->temperatures()) text << " " << temperature;
        return text.str();
    }
    void swap_replicas() {
        exchange_->exchange(*dynamics_, step_);
        swaps_->add(concat(step_, csv_of(exchange_->replicas()), "\n"));
    }
    void print_acceptance() const {
        std::cout << "swaps accepted, by pair of temperatures in K:\n" << std::fixed;
        for (size_t pair = 0; pair + 1 < members_.size(); ++pair) {
            const ExchangeCounts& counts = exchange_->counts(pair);
            std::cout << std::setprecision(2) << std::setw(10) << exchange_->temperatures()[pair] << std::setw(10)
                      << exchange_->temperatures()[pair + 1] << std::setw(10) << counts.accepted << " of "
                      << std::setw(6) << counts.attempted << std::setprecision(1) << std::setw(8)
                      << 100 * counts.ratio() << " %\n";
        }
        std::cout << "round trips of replicas: " << exchange_->round_trips() << "\n";
    }
    std::string acceptance_csv() const {
        std::ostringstream text;
        text << "lower_K,higher_K,attempted,accepted,ratio\n" << std::setprecision(8);
        for (size_t pair = 0; pair + 1 < members_.size(); ++pair) {
            const ExchangeCounts& counts = exchange_->counts(pair);
            text << exchange_->temperatures()[pair] << "," << exchange_->temperatures()[pair + 1] << ","
                 << counts.attempted << "," << counts.accepted << "," << counts.ratio() << "\n";
        }
        return text.str();
    }

    // Frames and logs first: a restart file never knows of what is not on disk.
    void save() {
        if (step_ == last_saved_) return;
        ManyRestart restart;
        restart.run["step"] = std::to_string(step_);
        if (exchange_) {
            restart.run["exchange"] = exchange_text();
            restart.run["exchange-state"] = exchange_->state();
            restart.run["swaps-place"] = std::to_string(swaps_->flush());
            write_text((fs::path(options_.output) / "acceptance.csv").string(), acceptance_csv());
        }
        for (size_t i = 0; i < members_.size(); ++i) {
            restart.ended.push_back(dynamics_->ended(i));
            restart.members.emplace_back();
            if (!dynamics_->goes_on(i)) continue;
            restart.members[i] = {dynamics_->at(i)->state(), members_[i].options.choices()};
            restart.members[i].run["output-place"] = std::to_string(files_[i]->trajectory.flush());
            restart.members[i].run["log-place"] = std::to_string(files_[i]->log.flush());
        }
        folder_->sync();
        write_many_restart(options_.many_restart_path(), restart);
        last_saved_ = step_;
    }

    const MdOptions& options_;
    std::optional<ReplicaExchange> exchange_;
    std::vector<ManyMember> members_;
    std::optional<ManyRestart> restart_;
    std::unique_ptr<Sessions> sessions_;
    Session* session_ = nullptr;
    std::optional<SessionBatch> forces_;
    std::optional<ManyDynamics> dynamics_;
    std::string head_;                           // "" if the model has only one
    std::vector<std::unique_ptr<Files>> files_;  // nullptr: it has ended before
    std::optional<MemberFile> swaps_;
    std::optional<SyncedFolder> folder_;
    std::vector<bool> is_told_;  // that it ended
    size_t ended_count_ = 0;
    int64_t step_ = 0, last_saved_ = -1;
};

}  // namespace

int run_many_md(const MdOptions& options) { return ManyRun(options).go(); }

}  // namespace mlff::app
