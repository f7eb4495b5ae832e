// SPDX-License-Identifier: MIT
#include "plan_warning.h"

#include <algorithm>
#include <iostream>

#include "command.h"
#include "core/error.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/host_facts.h"
#include "tools/bench/results.h"
#include "tools/plan/plan.h"

namespace mlff::app {

void PlanWarning::look_at(Session& session, const SystemView& system, const std::string& where) {
    if (is_over_ || system.atom_count <= largest_) return;
    largest_ = system.atom_count;
    if (session.device().is_gpu()) return;
    try {
        if (!is_read_) {
            // Of this session, whatever the model: its SHA-256 is computed only if there is something to say, for that
            // takes a while.
            candidates_ = plan::CalibrationStore().list();
            const plan::CalibrationKey key = plan::key_of(session, "", exact_radial_);
            std::erase_if(candidates_, [&](const plan::Calibration& found) {
                plan::CalibrationKey of = found.key;
                of.model.clear();
                return of != key;
            });
            is_read_ = true;
        }
        is_over_ = candidates_.empty();
        if (is_over_) return;
        const auto available = static_cast<double>(available_memory());
        const plan::Load load = {system.atom_count,
                                 plan::count_edges(system, session.model().summary().cutoff, session.team())};
        for (const plan::Calibration& calibration : candidates_) {
            const plan::MemoryPlan memory = plan::plan_memory(calibration, load, available);
            if (memory.fits() || calibration.key.model != plan_model_id(model_)) continue;
            std::cerr << "mlff: warning: " << where << ": " << load.atoms << " atoms need about "
                      << bench::quantity_text(memory.needed_bytes, "B") << " of memory, but only "
                      << bench::quantity_text(available, "B") << " is available; about " << memory.largest_atoms
                      << " atoms of this density fit (see mlff plan)\n";
            is_over_ = true;
            return;
        }
    } catch (const Error&) {
        is_over_ = true;  // a bad system is for the evaluation to refuse
    }
}

}  // namespace mlff::app
