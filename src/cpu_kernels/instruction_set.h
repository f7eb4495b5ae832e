// SPDX-License-Identifier: MIT
// How kernels are compiled for one instruction set. kernels_avx512.cpp, kernels_avx2.cpp and kernels_baseline.cpp each
// include the same kernels in their own namespace and target region. Anything included before that region is compiled
// for any processor.
#pragma once

// A register passed to or returned by a function that is not inlined may lose its upper lanes: g++ 12 clears them
// before it returns. So every function that takes or returns registers must be inlined, and the compiler rejects those
// that it cannot inline. The test kernel_symbols checks the object files.
#define MLFF_INLINE inline __attribute__((always_inline))

#if defined(__clang__)
#define MLFF_BEGIN_TARGET(features) \
    MLFF_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define MLFF_END_TARGET MLFF_PRAGMA(clang attribute pop)
#else
#define MLFF_BEGIN_TARGET(features) MLFF_PRAGMA(GCC push_options) MLFF_PRAGMA(GCC target(features))
#define MLFF_END_TARGET MLFF_PRAGMA(GCC pop_options)
#endif
#define MLFF_PRAGMA(text) _Pragma(#text)
