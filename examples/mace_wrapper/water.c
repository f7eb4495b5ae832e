/* SPDX-License-Identifier: MIT
 * Energies and forces of a water molecule, alone and in a periodic box, by the functions of mace_wrapper.h.
 *
 *     cc water.c -o water $(pkg-config --cflags --libs mace_wrapper)
 *     ./water                  with the model inside mlff
 *     ./water X.model          or: ./water small, a model of the model cache
 */
#include <mace_wrapper.h>
#include <stdio.h>
#include <string.h>

static int print(const char* what, MACEResult* result) {
    int i;
    if (!result->success) {
        fprintf(stderr, "%s: %s\n", what, result->error_msg);
        return 0;
    }
    printf("%s: %.8f eV\n", what, result->energy);
    for (i = 0; i < result->num_atoms; ++i)
        printf("%16.8f %16.8f %16.8f\n", result->forces[3 * i], result->forces[3 * i + 1], result->forces[3 * i + 2]);
    mace_free_result(result);
    return 1;
}

int main(int argc, char** argv) {
    const double positions[9] = {0, 0, 0, 0.96, 0, 0, -0.24, 0.93, 0};
    const int numbers[3] = {8, 1, 1};
    const double cell[9] = {9, 0, 0, 0, 9, 0, 0, 0, 9};
    const int pbc[3] = {1, 1, 1};
    const char *model = argc > 1 ? argv[1] : "builtin", *device = argc > 2 ? argv[2] : "cpu";
    /* model_path takes files and the model inside mlff, model_type the names of the model cache. */
    const int is_path = strpbrk(model, "/.") != NULL || strcmp(model, "builtin") == 0;
    MACEResult result;
    int is_good;

    MACEHandle mace = mace_init(is_path ? model : NULL, is_path ? NULL : model, device, 0);
    if (mace == NULL) {
        fprintf(stderr, "%s\n", mace_get_error(NULL));
        return 1;
    }
    mace_calculate(mace, positions, numbers, 3, &result);
    is_good = print("molecule", &result);
    mace_calculate_periodic(mace, positions, numbers, 3, cell, pbc, &result);
    is_good = print("periodic", &result) && is_good;
    mace_destroy(mace);
    return is_good ? 0 : 1;
}
