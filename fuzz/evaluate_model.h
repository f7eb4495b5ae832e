// SPDX-License-Identifier: MIT
// Evaluates a model that a fuzz target has accepted: the results are finite, or there is an Error.
#pragma once

#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/error.h"
#include "engine/session.h"
#include "mace/model.h"
#include "nequip/model.h"

namespace mlff::fuzz {

inline void evaluate_model(const std::shared_ptr<const Model>& model) {
    const ModelSummary& summary = model->summary();
    if (!summary.why_not_runnable.empty() || summary.elements.empty() || summary.layer_count > 4 ||
        summary.descriptor_count > 2000)
        return;  // would take too long
    const std::vector<int32_t> numbers = {summary.elements.front(), summary.elements.back(), summary.elements.front()};
    const std::vector<double> positions = {0, 0, 0, 0.9, 0.1, 0, -0.3, 1.1, 0.2};
    SystemView system;
    system.atom_count = 3;
    system.atomic_numbers = numbers.data();
    system.positions = positions.data();
    double energy = 0;
    std::vector<double> forces(9), descriptors(3 * static_cast<size_t>(summary.descriptor_count));
    Results results;
    results.outputs.energy = &energy;
    results.outputs.forces = forces.data();
    if (!descriptors.empty()) results.outputs.descriptors = descriptors.data();
    try {
        SessionOptions options;
        options.device = "cpu";
        options.thread_count = 1;
        options.exact_radial = true;  // building tables takes a second
        options.head = summary.fixed_head < 0 && summary.heads.size() > 1 ? summary.heads.back() : "";
        Session session(model, options);
        session.evaluate({&system, 1}, {&results, 1});
        for (const double force : forces)
            if (!std::isfinite(force)) std::abort();
        if (!std::isfinite(energy)) std::abort();
    } catch (const Error&) {}
}

// The same for a tree of modules, which MACE reads if nobody else does, as for mlff_open().
inline void evaluate_module_file(ModuleFile file) {
    try {
        if (is_nequip_file(file))
            evaluate_model(make_nequip_model(std::move(file)));
        else
            evaluate_model(make_mace_model(std::move(file)));
    } catch (const Error&) {}
}

}  // namespace mlff::fuzz
