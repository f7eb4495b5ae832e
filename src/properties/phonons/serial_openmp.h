// SPDX-License-Identifier: MIT
// Debian's static spglib asks for the runtime of OpenMP in functions on meshes that nothing here calls. One thread is
// all they would get: the command needs no further library. Hidden, so that other libraries get the real runtime.
#pragma once

extern "C" {
__attribute__((visibility("hidden"))) void GOMP_parallel(void (*work)(void*), void* data, unsigned, unsigned) {
    work(data);
}
__attribute__((visibility("hidden"))) int omp_get_num_threads() { return 1; }
__attribute__((visibility("hidden"))) int omp_get_thread_num() { return 0; }
}
