// SPDX-License-Identifier: MIT
// What mlff md does with what a model says of its own forces: frames for a harvest, and the end of a run that cannot be
// trusted any more.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "dynamics/molecular_dynamics.h"
#include "dynamics/restart.h"
#include "dynamics/session_forces.h"
#include "dynamics/watcher.h"
#include "harvest_folder.h"
#include "md_options.h"

namespace mlff::app {

class MdWatch {
public:
    // `forces` are watched. `head` is "" if the model has only one.
    MdWatch(const MdOptions& options, const SessionForces& forces, std::string head, const Restart* restart);

    // Whether this step needs a look(): cheap, for every step.
    bool needs_look(int64_t step) const;
    // Harvests the atoms of this step if they are worth it. False: the run has to stop, and why_stopped() says why.
    bool look(const MolecularDynamics& dynamics);
    const std::string& why_stopped() const { return why_stopped_; }

    // Before a restart file is written: all frames are on disk, and the file gets what the next part of the run needs.
    void save(Restart& restart);
    std::string summary() const;  // "" if nothing is harvested

private:
    bool has_room() const { return harvest_ && harvest_->frame_count() - frames_before_ < options_.harvest_frames; }
    Frame frame_of_now(const MolecularDynamics& dynamics) const;

    const MdOptions& options_;
    const SessionForces& forces_;
    std::string head_;
    std::optional<Watcher> watcher_;
    std::unique_ptr<HarvestFolder> harvest_;
    int64_t frames_before_ = 0;  // in the folder when the run began, with its first part
    int64_t harvested_ = 0, duplicates_ = 0;
    std::string why_stopped_;
};

}  // namespace mlff::app
