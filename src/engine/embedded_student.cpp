// SPDX-License-Identifier: MIT
#include "engine/embedded_student.h"

#include "core/embed_file.h"

MLFF_EMBED_FILE(mlff_student, MLFF_STUDENT_FILE)

mlff::Bytes mlff::embedded_student() { return MLFF_EMBEDDED(mlff_student); }
