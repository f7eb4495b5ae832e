// SPDX-License-Identifier: MIT
#include "tools/bench/reference.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "python_models/model_name.h"
#include "tools/verify/evaluation.h"
#include "tools/verify/verification.h"

namespace mlff::bench {

Reference make_reference(const std::string& model_name, const std::shared_ptr<const Model>& model,
                         SessionOptions options) {
    options.device = "reference";
    options.precision = Precision::fp64;
    const bool is_python = python::is_python_name(model_name);
    try {
        if (!is_python) return {std::make_unique<Session>(model, options), ""};
        const python::ModelName name = python::parse_model_name(model_name);
        if (name.kind != "mace") return {nullptr, "a calculator has no reference but itself"};
        if (!name.head.empty()) options.head = name.head;
        return {std::make_unique<Session>(load_model(name.path), options), ""};
    } catch (const Error& error) {
        if (!is_python && error.status() != Status::unsupported)
            throw;  // mace-torch may support files that native MACE does not
        return {nullptr, error.what()};
    }
}

Accuracy accuracy_of(Session& session, Session& reference, const Frame& frame) {
    const verify::Evaluation found = verify::evaluate(session, frame), expected = verify::evaluate(reference, frame);
    const double limit =
        verify::bounds_of(session.precision()).forces * std::max(1.0, verify::largest_size(expected.forces));
    return {1e3 * std::abs(found.energy - expected.energy) / static_cast<double>(frame.atom_count()),
            validate::at_most("forces against the fp64 reference",
                              verify::largest_difference(found.forces, expected.forces), limit, "eV/A")};
}

}  // namespace mlff::bench
