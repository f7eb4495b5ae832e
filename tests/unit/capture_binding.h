// SPDX-License-Identifier: MIT
// CAPTURE of a structured binding, which clang 14 does not let a lambda capture.
#pragma once

#include <doctest/doctest.h>

#define CAPTURE_BINDING(name)           \
    const auto& captured_##name = name; \
    CAPTURE(captured_##name)
