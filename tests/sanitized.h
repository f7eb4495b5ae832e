// SPDX-License-Identifier: MIT
#pragma once

namespace mlff::test {

// Sanitizers make everything slower; tests of time allow for it, and tests that repeat themselves do so less often.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace mlff::test
