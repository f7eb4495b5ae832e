// SPDX-License-Identifier: MIT
// What a model's numbers are held against: plain loops in fp64.
#pragma once

#include <memory>
#include <string>

#include "engine/session.h"
#include "formats/extxyz.h"
#include "tools/bench/results.h"

namespace mlff::bench {

// A native model in its reference backend. For mace-torch, `python:mace:FILE`, the native model of that file; other
// Python models have none.
struct Reference {
    std::unique_ptr<Session> session;  // nullptr: none
    std::string why_none;
};
Reference make_reference(const std::string& model_name, const std::shared_ptr<const Model>& model,
                         SessionOptions options);

inline constexpr int64_t kLargestCompared = 100;  // atoms beside the reference, which is slow

// How far energy and forces of one system are from the reference's.
struct Accuracy {
    double meV_per_atom = 0;
    Check forces;  // within the bounds of `mlff verify` for the session's precision
};
Accuracy accuracy_of(Session& session, Session& reference, const Frame& frame);

}  // namespace mlff::bench
