/* SPDX-License-Identifier: MIT
 *
 * mace_wrapper: MACE behind a few C functions (C99), the names, types and layout that programs written for the
 * Python-based wrapper of this name know. Here the model runs natively, in libmlff: no Python, no PyTorch.
 *
 *     MACEHandle mace = mace_init("X.model", NULL, "cpu", 0);
 *     MACEResult result;
 *     mace_calculate(mace, positions, numbers, atoms, &result);
 *     if (result.success) printf("%f eV\n", result.energy); else fprintf(stderr, "%s\n", result.error_msg);
 *     mace_free_result(&result);
 *     mace_destroy(mace);
 *
 * Units: eV, angstrom, eV/angstrom. A handle may be used by several threads, which then take turns; handles of their
 * own run side by side. NULL and handles that were destroyed are errors with a message, never a crash. Environment
 * variables, read by mace_init: MACE_BACKEND (native, python), MACE_PRECISION (auto, mixed, fp64, fast), MACE_HEAD,
 * MACE_THREADS, MACE_LOG (1: log on standard error).
 */
#ifndef MACE_WRAPPER_H
#define MACE_WRAPPER_H

#if defined(__GNUC__) && !defined(MLFF_STATIC)
#define MACE_WRAPPER_API __attribute__((visibility("default")))
#else
#define MACE_WRAPPER_API
#endif

/* Grows with every incompatible change; equals the SOVERSION of libmace_wrapper. */
#define MACE_WRAPPER_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

typedef void* MACEHandle;

typedef struct {
    double energy;       /* eV; NaN if it failed */
    double* forces;      /* [num_atoms][3], eV/angstrom, from malloc; NULL if it failed */
    int num_atoms;       /* 0 if it failed */
    int success;         /* 1, or 0: error_msg says why */
    char error_msg[512]; /* one sentence, always terminated; "" on success */
} MACEResult;

/* model_path: a MACE file; NULL or "": the model that the model cache holds under the name model_type ("small",
 * "medium", "large" or any other; see `mlff model fetch`). device: "cpu", "cuda" or "cuda:1"; NULL = a GPU where there
 * is one. "cuda" where there is none is an error. enable_cueq: 1 chooses cuEquivariance where MACE_BACKEND=python;
 * native kernels need none, and the log says so. NULL on failure. */
MACE_WRAPPER_API MACEHandle mace_init(const char* model_path, const char* model_type, const char* device,
                                      int enable_cueq);

/* A molecule: positions [num_atoms][3] and atomic_numbers [num_atoms]. `result` is written over, not freed first. */
MACE_WRAPPER_API void mace_calculate(MACEHandle handle, const double* positions, const int* atomic_numbers,
                                     int num_atoms, MACEResult* result);
/* The same in a cell: one lattice vector per row, pbc[k] not 0 where row k repeats. */
MACE_WRAPPER_API void mace_calculate_periodic(MACEHandle handle, const double* positions, const int* atomic_numbers,
                                              int num_atoms, const double* cell, const int* pbc, MACEResult* result);

/* Frees result.forces and forgets it: calling it again does nothing. */
MACE_WRAPPER_API void mace_free_result(MACEResult* result);
/* Frees the array alone, for programs that keep it longer than its MACEResult: one of the two, not both. */
MACE_WRAPPER_API void mace_free_forces(double* forces);
/* A calculation that another thread has begun with the handle goes on to its end; what it needs is freed then. */
MACE_WRAPPER_API void mace_destroy(MACEHandle handle);

/* The handle's last error, "" if there was none. NULL: why mace_init failed on this thread (on the last thread that
 * called it, if this one never did). Never NULL; valid until this thread asks again. */
MACE_WRAPPER_API const char* mace_get_error(MACEHandle handle);
/* The version of mlff: "0.1.0". */
MACE_WRAPPER_API const char* mace_get_version(void);

#ifdef __cplusplus
}
#endif

#endif
