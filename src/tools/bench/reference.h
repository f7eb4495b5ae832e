// SPDX-License-Identifier: MIT
// The reference for a model's results, in fp64: plain loops for small systems, and the CPU backend for larger ones,
// where plain loops would take minutes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/session.h"
#include "formats/extxyz.h"
#include "tools/bench/results.h"

namespace mlff::bench {

// The deviation of energy and forces of one system from the reference.
struct Accuracy {
    double meV_per_atom = 0;  // of the energy
    double force_rmse = 0;    // eV/angstrom, of the components
    Check forces;             // the largest one, within the bounds of `mlff verify` for the session's precision

    // Adds them to a row, in this order.
    void add_to(Row& row) const;
};

class Reference {
public:
    static constexpr int64_t kMostOfPlainLoops = 100;  // atoms
    static constexpr int64_t kMostOfCpu = 2'000;       // that the CPU backend in fp64 is compared with plain loops for
    static constexpr int64_t kMostAtoms = 100'000;

    // For a native model, it computes with that model. For mace-torch and students in PyTorch (`python:mace:FILE`,
    // `python:student:FILE`), with the native model of that file. Other Python models have none.
    Reference(const std::string& model_name, std::shared_ptr<const Model> model, SessionOptions options);

    const std::string& why_none() const { return why_none_; }  // "" if there is one
    // Adds the accuracy to the row or, if the system is too large for the reference, a reason to `left_out`. Does
    // nothing if there is no reference.
    void compare(Session& session, const Frame& frame, const std::string& what, Row& row,
                 std::vector<std::string>& left_out);
    Accuracy accuracy_of(Session& session, const Frame& frame);

private:
    bool is_cpu_fp64(const Session& session) const;
    Session& session_for(const Session& compared, const Frame& frame);

    std::shared_ptr<const Model> model_;
    SessionOptions options_;
    bool is_python_ = false;
    std::string why_none_;
    std::unique_ptr<Session> plain_, fast_;  // the second is made when it is needed
};

}  // namespace mlff::bench
