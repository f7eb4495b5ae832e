// SPDX-License-Identifier: MIT
// The trained student that is part of the library: the bytes of models/student/student.safetensors at build time.
#pragma once

#include "core/mapped_file.h"

namespace mlff {

Bytes embedded_student();

}  // namespace mlff
