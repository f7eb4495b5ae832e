// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4), with the processor's own instructions where it has them.
#pragma once

#include <string>

#include "core/mapped_file.h"

namespace mlff {

std::string sha256_hex(Bytes bytes);           // 64 lower-case hexadecimal digits
std::string sha256_hex_portable(Bytes bytes);  // the same without special instructions, for tests

}  // namespace mlff
