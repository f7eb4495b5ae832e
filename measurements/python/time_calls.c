/* SPDX-License-Identifier: MIT
 * Times calls of a model through libmlff: MODEL SYSTEM CALLS. SYSTEM is a text file: the number of atoms, nine numbers
 * of the cell, then atomic number and position of each atom. Every call moves an atom a little. Prints the seconds of
 * each call and those inside the calculator, which timed.py gives as its energy. */
#include <mlff/mlff.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void check(mlff_status status) {
    if (status == MLFF_OK) return;
    fprintf(stderr, "%s\n", mlff_last_error());
    exit(1);
}

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    FILE* file = fopen(argv[2], "r");
    long atom_count = 0;
    double cell[9];
    if (!file || fscanf(file, "%ld", &atom_count) != 1) return 3;
    for (int k = 0; k < 9; ++k)
        if (fscanf(file, "%lf", cell + k) != 1) return 3;
    int32_t* numbers = malloc((size_t)atom_count * sizeof *numbers);
    double *positions = malloc(3 * (size_t)atom_count * sizeof *positions),
           *forces = malloc(3 * (size_t)atom_count * sizeof *forces);
    for (long i = 0; i < atom_count; ++i)
        if (fscanf(file, "%d %lf %lf %lf", numbers + i, positions + 3 * i, positions + 3 * i + 1,
                   positions + 3 * i + 2) != 4)
            return 3;
    fclose(file);

    mlff_model* model;
    mlff_session* session;
    check(mlff_model_load(argv[1], &model));
    mlff_session_options options = {sizeof options, "cpu"};
    options.thread_count = 1;
    check(mlff_session_create(model, &options, &session));
    double energy;
    mlff_system system = {sizeof system, atom_count, numbers, positions, cell, {1, 1, 1}};
    mlff_result result = {sizeof result, &energy, forces};
    const int calls = atoi(argv[3]), warm = 3;
    for (int call = -warm; call < calls; ++call) {
        positions[0] += 1e-4;
        const double begin = now();
        check(mlff_session_evaluate(session, &system, &result));
        const double end = now();
        if (call >= 0) printf("seconds %.9f %.9f\n", end - begin, energy);
    }
    mlff_session_free(session);
    mlff_model_free(model);
    return 0;
}
