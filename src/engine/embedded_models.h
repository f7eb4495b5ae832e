// SPDX-License-Identifier: MIT
// Models that are part of the library.
#pragma once

#include <memory>
#include <vector>

#include "core/mapped_file.h"

namespace mlff {

// The trained student: the bytes of models/student/student.safetensors at build time.
Bytes embedded_student();

// A small MACE model for tests of backends (models/self-test), in our container. Unpacked by each call.
std::shared_ptr<const std::vector<std::byte>> embedded_self_test_model();

}  // namespace mlff
