// SPDX-License-Identifier: MIT
#include "tools/bench/reference.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "python_models/model_name.h"
#include "tools/validate/differences.h"
#include "tools/verify/evaluation.h"
#include "tools/verify/verification.h"

namespace mlff::bench {

void Accuracy::add_to(Row& row) const {
    row.figures.emplace_back("meV/atom error of the energy", meV_per_atom);
    row.figures.emplace_back("eV/A RMSE of the forces", force_rmse);
    row.checks.push_back(forces);
}

Reference::Reference(const std::string& model_name, std::shared_ptr<const Model> model, SessionOptions options)
    : model_(std::move(model)), options_(std::move(options)), is_python_(python::is_python_name(model_name)) {
    options_.device = "reference";
    options_.precision = Precision::fp64;
    options_.optimizations = {};
    try {
        if (is_python_) {
            const python::ModelName name = python::parse_model_name(model_name);
            if (name.path.empty()) {
                why_none_ = "a calculator has no reference but itself";
                return;
            }
            if (!name.head.empty()) options_.head = name.head;
            model_ = load_model(name.path);
        }
        plain_ = std::make_unique<Session>(model_, options_);
    } catch (const Error& error) {
        if (!is_python_ && error.status() != Status::unsupported)
            throw;  // mace-torch may support files that native MACE does not
        why_none_ = error.what();
    }
}

bool Reference::is_cpu_fp64(const Session& session) const {
    return !is_python_ && session.device().kind == Device::Kind::cpu && session.precision() == Precision::fp64;
}

void Reference::compare(Session& session, const Frame& frame, const std::string& what, Row& row,
                        std::vector<std::string>& left_out) {
    if (!why_none_.empty()) return;
    const int64_t most = is_cpu_fp64(session) ? kMostOfCpu : kMostAtoms;
    std::string why = concat("more than ", most);
    if (frame.atom_count() <= most) {
        try {
            return accuracy_of(session, frame).add_to(row);
        } catch (const Error& error) {  // the times are right all the same
            if (error.status() != Status::memory) throw;
            why = error.what();
        }
    }
    left_out.push_back(concat("errors of energies and forces of ", what, ": ", why));
}

// The CPU backend is not compared with itself. Radial functions are exact, as in plain loops.
Session& Reference::session_for(const Session& compared, const Frame& frame) {
    if (is_cpu_fp64(compared) || frame.atom_count() <= kMostOfPlainLoops) return *plain_;
    if (!fast_) {
        SessionOptions options = options_;
        options.device = "cpu";
        options.exact_radial = true;
        fast_ = std::make_unique<Session>(model_, options);
    }
    return *fast_;
}

Accuracy Reference::accuracy_of(Session& session, const Frame& frame) {
    const verify::Evaluation found = verify::evaluate(session, frame),
                             expected = verify::evaluate(session_for(session, frame), frame);
    validate::Differences components;
    for (size_t i = 0; i < found.forces.size(); ++i) components.add(found.forces[i] - expected.forces[i]);
    const double limit =
        verify::bounds_of(session.precision()).forces * std::max(1.0, verify::largest_size(expected.forces));
    return {1e3 * std::abs(found.energy - expected.energy) / static_cast<double>(frame.atom_count()), components.rms(),
            validate::at_most("forces against the fp64 reference",
                              verify::largest_difference(found.forces, expected.forces), limit, "eV/A")};
}

}  // namespace mlff::bench
