// SPDX-License-Identifier: MIT
#include "md_watch.h"

#include <charconv>

#include "core/elements.h"
#include "core/error.h"

namespace mlff::app {
namespace {

std::optional<int64_t> entry_of(const Restart& restart, const std::string& key) {
    const auto found = restart.run.find(key);
    if (found == restart.run.end()) return {};
    const std::string& text = found->second;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 0)
        fail(Status::format, "the restart file has no whole number ", key);
    return number;
}

void set_whole_number(Frame& frame, const char* key, int64_t number) {
    frame.info.push_back({key, InfoValue{std::vector<int64_t>{number}, {}}});
}

}  // namespace

MdWatch::MdWatch(const MdOptions& options, const SessionForces& forces, std::string head, const Restart* restart)
    : options_(options), forces_(forces), head_(std::move(head)) {
    if (!options.harvest.empty()) harvest_ = std::make_unique<HarvestFolder>(options.harvest);
    std::optional<int64_t> last_candidate;
    frames_before_ = harvest_ ? harvest_->frame_count() : 0;
    if (harvest_ && restart && restart->run.contains("harvest") && restart->run.at("harvest") == options.harvest) {
        last_candidate = entry_of(*restart, "harvest-last");
        frames_before_ = entry_of(*restart, "harvest-before").value_or(frames_before_);
    }
    watcher_.emplace(options.watch_rules(), last_candidate);
}

bool MdWatch::needs_look(int64_t step) const {
    const WatchReading& reading = forces_.reading();
    return watcher_->must_stop(reading) || (has_room() && watcher_->is_candidate(reading, step));
}

bool MdWatch::look(const MolecularDynamics& dynamics) {
    const WatchReading& reading = forces_.reading();
    const int64_t step = dynamics.step_count();
    if (has_room() && watcher_->is_candidate(reading, step)) {
        watcher_->note_candidate(step);
        ++(harvest_->add(frame_of_now(dynamics)) ? harvested_ : duplicates_);
    }
    if (!watcher_->must_stop(reading)) return true;
    const int32_t element = dynamics.particles().atomic_numbers[static_cast<size_t>(reading.worst_atom)];
    why_stopped_ =
        concat("the expected error of the force on atom ", reading.worst_atom, " (", element_symbol(element), ") is ",
               reading.sigma_max, " eV/A at step ", step, ", above --stop-sigma ", *options_.stop_sigma);
    return false;
}

Frame MdWatch::frame_of_now(const MolecularDynamics& dynamics) const {
    const Particles& atoms = dynamics.particles();
    const SystemView system = atoms.view();
    const WatchReading& reading = forces_.reading();
    Frame frame;
    frame.atomic_numbers = atoms.atomic_numbers;
    frame.positions = atoms.positions;
    frame.periodic = system.periodic;
    if (system.cell != Mat3{}) frame.cell = system.cell;
    set_whole_number(frame, "step", dynamics.step_count());
    frame.set_info("time", static_cast<double>(dynamics.step_count()) * dynamics.time_step());
    frame.set_info("temperature", dynamics.temperature());
    frame.set_info("sigma_max", reading.sigma_max);
    set_whole_number(frame, "worst_atom", reading.worst_atom);
    set_whole_number(frame, "atoms_outside", reading.atoms_outside);
    frame.set_info("model", options_.model.model);
    if (system.total_charge != 0) frame.set_info("total_charge", system.total_charge);
    if (system.spin_multiplicity != 1) frame.set_info("total_spin", system.spin_multiplicity);
    if (!head_.empty()) frame.set_info("head", head_);
    const std::span<const double> sigmas = forces_.sigma_forces();
    frame.set_column("sigma_forces", 1, std::vector<double>(sigmas.begin(), sigmas.end()));
    return frame;
}

void MdWatch::save(Restart& restart) {
    if (!harvest_) return;
    harvest_->sync();
    restart.run["harvest"] = options_.harvest;
    restart.run["harvest-before"] = std::to_string(frames_before_);
    if (const auto last = watcher_->last_candidate()) restart.run["harvest-last"] = std::to_string(*last);
}

std::string MdWatch::summary() const {
    if (!harvest_) return "";
    return concat("harvested ", harvested_, harvested_ == 1 ? " frame" : " frames", " into ",
                  HarvestFolder::frames_path(options_.harvest), ", ", duplicates_, " near duplicates left out",
                  has_room() ? "" : concat("; --harvest-frames ", options_.harvest_frames, " is reached"));
}

}  // namespace mlff::app
