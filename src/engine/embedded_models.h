// SPDX-License-Identifier: MIT
// Models whose files are built into the library.
#pragma once

#include <memory>
#include <vector>

#include "core/mapped_file.h"

namespace mlff {

// The trained student: the bytes of models/student/student.safetensors at build time.
Bytes embedded_student();
Bytes embedded_student_trust();  // its trust meter

// A small MACE model for tests of backends (models/self-test), in our safetensors layout. Every call unpacks it.
std::shared_ptr<const std::vector<std::byte>> embedded_self_test_model();

}  // namespace mlff
