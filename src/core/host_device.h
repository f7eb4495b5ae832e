// SPDX-License-Identifier: MIT
// Marks functions shared by CPU and GPU code. One source gives both the same results, bit for bit.
#pragma once

#ifdef __CUDACC__
#define MLFF_HOST_DEVICE __host__ __device__
#else
#define MLFF_HOST_DEVICE
#endif
