// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4). Uses the processor's SHA instructions where available.
#pragma once

#include <string>

#include "core/mapped_file.h"

namespace mlff {

std::string sha256_hex(Bytes bytes);           // 64 lower-case hexadecimal digits
std::string sha256_hex_portable(Bytes bytes);  // the same without SHA instructions, for tests

}  // namespace mlff
