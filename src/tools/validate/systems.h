// SPDX-License-Identifier: MIT
// The systems to simulate: built-in structures (files in systems/), and the user's files.
#pragma once

#include <string>
#include <vector>

#include "formats/extxyz.h"

namespace mlff::validate {

struct TestSystem {
    std::string name;
    Frame frame;
};

std::vector<std::string> builtin_system_names();

// The default systems for a model with these elements: the molecules and the water box whose elements it knows, and the
// first such crystal.
std::vector<TestSystem> default_systems(const std::vector<int>& elements);

// Each name is a built-in system, or an extended XYZ file whose frames are all used. Throws Error{argument} for a name
// that is neither, and Error{system} for elements that the model does not know or a frame with too few atoms.
std::vector<TestSystem> chosen_systems(const std::vector<std::string>& names, const std::vector<int>& elements);

}  // namespace mlff::validate
