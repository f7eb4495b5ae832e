/* SPDX-License-Identifier: MIT
 * A C program that uses an installed mlff: prints the energy of a water molecule, after checking a force against the
 * change of the energy. */
#include <math.h>
#include <mlff/mlff.h>
#include <stdio.h>
#include <stdlib.h>

static void check(mlff_status status) {
    if (status == MLFF_OK) return;
    fprintf(stderr, "%s: %s\n", mlff_status_name(status), mlff_last_error());
    exit(1);
}

int main(void) {
    const int32_t numbers[3] = {8, 1, 1};
    double positions[9] = {0, 0, 0, 0.9572, 0, 0, -0.239987, 0.926627, 0};
    const double step = 1e-4; /* angstrom */
    double energy, forces[9], ahead, behind;
    mlff_model* model;
    mlff_session* session;
    mlff_session_options options = {0};
    mlff_system water = {0};
    mlff_result result = {0};

    if (mlff_abi_version() != MLFF_ABI_VERSION) {
        fprintf(stderr, "header and library are of different versions\n");
        return 1;
    }
    options.struct_size = sizeof options;
    options.device = "cpu";
    options.precision = MLFF_PRECISION_FP64;
    water.struct_size = sizeof water;
    water.atom_count = 3;
    water.atomic_numbers = numbers;
    water.positions = positions;
    result.struct_size = sizeof result;

    check(mlff_model_load("builtin", &model));
    check(mlff_session_create(model, &options, &session));
    result.energy = &energy;
    result.forces = forces;
    check(mlff_session_evaluate(session, &water, &result));

    result.forces = NULL;
    result.energy = &ahead;
    positions[3] += step;
    check(mlff_session_evaluate(session, &water, &result));
    result.energy = &behind;
    positions[3] -= 2 * step;
    check(mlff_session_evaluate(session, &water, &result));
    mlff_session_free(session);
    mlff_model_free(model);

    if (!(fabs(forces[3] + (ahead - behind) / (2 * step)) <= 1e-5)) {
        fprintf(stderr, "the force %.8f is not -dE/dx = %.8f\n", forces[3], -(ahead - behind) / (2 * step));
        return 1;
    }
    printf("%.8f\n", energy);
    return 0;
}
