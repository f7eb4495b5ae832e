/* SPDX-License-Identifier: MIT
 * What programs written for the Python-based wrapper were compiled against: its declarations and nothing else. Tests
 * compile with this header and run with our library. */
#ifndef MACE_WRAPPER_H
#define MACE_WRAPPER_H

#ifdef __cplusplus
extern "C" {
#endif

typedef void* MACEHandle;

typedef struct {
    double energy;
    double* forces;
    int num_atoms;
    int success;
    char error_msg[512];
} MACEResult;

MACEHandle mace_init(const char* model_path, const char* model_type, const char* device, int enable_cueq);
void mace_calculate(MACEHandle handle, const double* positions, const int* atomic_numbers, int num_atoms,
                    MACEResult* result);
void mace_calculate_periodic(MACEHandle handle, const double* positions, const int* atomic_numbers, int num_atoms,
                             const double* cell, const int* pbc, MACEResult* result);
void mace_free_forces(double* forces);
void mace_free_result(MACEResult* result);
void mace_destroy(MACEHandle handle);
const char* mace_get_error(MACEHandle handle);

#ifdef __cplusplus
}
#endif

#endif
