// SPDX-License-Identifier: MIT
// The reference for a model's results: plain loops in fp64.
#pragma once

#include <memory>
#include <string>

#include "engine/session.h"
#include "formats/extxyz.h"
#include "tools/bench/results.h"

namespace mlff::bench {

// A native model in its reference backend. For mace-torch, `python:mace:FILE`, it is the native model of that file;
// other Python models have none.
struct Reference {
    std::unique_ptr<Session> session;  // nullptr: none
    std::string why_none;
};
Reference make_reference(const std::string& model_name, const std::shared_ptr<const Model>& model,
                         SessionOptions options);

inline constexpr int64_t kLargestCompared = 100;  // atoms; the reference is slow

// The deviation of energy and forces of one system from the reference.
struct Accuracy {
    double meV_per_atom = 0;
    Check forces;  // within the bounds of `mlff verify` for the session's precision
};
Accuracy accuracy_of(Session& session, Session& reference, const Frame& frame);

}  // namespace mlff::bench
