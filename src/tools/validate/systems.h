// SPDX-License-Identifier: MIT
// What is simulated: built-in structures, whose files are in systems/, and files of the user.
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

// What a model that knows these elements is tested with when nothing is asked for: the molecules and the box of water
// that it knows, and the first crystal that it knows.
std::vector<TestSystem> default_systems(const std::vector<int>& elements);

// Each of `names` is a built-in system or an extended XYZ file, every frame of which is a system. Throws
// Error{argument} for a name that is neither, Error{system} for elements that the model does not know or a frame
// without atoms.
std::vector<TestSystem> chosen_systems(const std::vector<std::string>& names, const std::vector<int>& elements);

}  // namespace mlff::validate
