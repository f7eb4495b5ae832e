// SPDX-License-Identifier: MIT
// What this program runs on, in words.
#pragma once

#include <string>

namespace mlff::app {

std::string processor_name();  // "model name" on x86; AArch64 kernels give numbers only: their maker and part. "" if unknown

std::string cuda_version_text(int version);  // 13000: "13.0"

std::string build_commit();  // of git, with "+" after it if files were changed; "" if it was not known when this was built

}  // namespace mlff::app
