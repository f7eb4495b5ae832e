// SPDX-License-Identifier: MIT
// Marks functions that CPU and GPU code share, so that both compute the same bits from one source.
#pragma once

#ifdef __CUDACC__
#define MLFF_HOST_DEVICE __host__ __device__
#else
#define MLFF_HOST_DEVICE
#endif
