/* SPDX-License-Identifier: MIT
 * The C interface from C99: right results, NULL everywhere, calls in the wrong order, structs of the wrong size.
 * Usage: test_c_api GOLDEN_DIR */
#include <math.h>
#include <mlff/mlff.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;
static int checks = 0;

#define CHECK(condition)                                                                                       \
    do {                                                                                                       \
        ++checks;                                                                                              \
        if (!(condition)) {                                                                                    \
            ++failures;                                                                                        \
            printf("%s:%d: failed: %s (last error: %s)\n", __FILE__, __LINE__, #condition, mlff_last_error()); \
        }                                                                                                      \
    } while (0)
/* Written so that NaN fails. */
#define CHECK_CLOSE(found, expected, tolerance) CHECK(fabs((found) - (expected)) <= (tolerance))

static const int32_t numbers[3] = {8, 1, 1};
static const double positions[9] = {0, 0, 0, 0.96, 0, 0, -0.24, 0.93, 0};
static const double cell[9] = {5, 0, 0, 0, 6, 0, 0, 0, 7};

static mlff_system water(void) {
    mlff_system system;
    memset(&system, 0, sizeof system);
    system.struct_size = sizeof system;
    system.atom_count = 3;
    system.atomic_numbers = numbers;
    system.positions = positions;
    return system;
}

static mlff_result no_result(void) {
    mlff_result result;
    memset(&result, 0, sizeof result);
    result.struct_size = sizeof result;
    return result;
}

static void test_version(void) {
    int major, minor, patch;
    CHECK(sscanf(mlff_version_string(), "%d.%d.%d", &major, &minor, &patch) == 3);
    CHECK(mlff_version() == 10000 * major + 100 * minor + patch);
    CHECK(mlff_abi_version() == MLFF_ABI_VERSION);
    CHECK(strcmp(mlff_status_name(MLFF_ERROR_FILE), "MLFF_ERROR_FILE") == 0);
    CHECK(mlff_status_name(12345) != NULL);
    CHECK(mlff_last_error() != NULL);
}

static void test_model(const char* golden_dir) {
    mlff_model* model = (mlff_model*)&failures;
    mlff_model_info info;
    int32_t elements[200];
    int64_t count = 0;
    char path[4096];

    CHECK(mlff_model_load("/no/such/file.model", &model) == MLFF_ERROR_FILE);
    CHECK(model == NULL);
    CHECK(strstr(mlff_last_error(), "/no/such/file.model") != NULL);
    CHECK(mlff_model_load(NULL, &model) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_model_load("analytic", NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_model_load(golden_dir, &model) == MLFF_ERROR_FILE); /* a directory */

    CHECK(mlff_model_load("analytic", &model) == MLFF_OK);
    memset(&info, 0, sizeof info);
    CHECK(mlff_model_get_info(model, &info) == MLFF_ERROR_ARGUMENT); /* struct_size 0 */
    info.struct_size = sizeof info;
    CHECK(mlff_model_get_info(model, &info) == MLFF_OK);
    CHECK(info.is_runnable == 1 && info.head_count == 1 && info.cutoff_angstrom > 0 && info.layer_count == 0);
    CHECK(mlff_model_get_elements(model, elements, 200, &count) == MLFF_OK);
    CHECK(count == info.element_count && elements[0] == 1 && elements[7] == 8);
    elements[1] = -7;
    CHECK(mlff_model_get_elements(model, elements, 1, &count) == MLFF_OK && elements[1] == -7 && count > 1);
    CHECK(mlff_model_get_elements(model, NULL, 0, &count) == MLFF_OK);
    CHECK(mlff_model_get_elements(model, NULL, 3, &count) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_model_get_elements(model, elements, -1, &count) == MLFF_ERROR_ARGUMENT);
    CHECK(strcmp(mlff_model_head_name(model, 0), "Default") == 0);
    CHECK(mlff_model_head_name(model, 1) == NULL && mlff_model_head_name(model, -1) == NULL);
    CHECK(strcmp(mlff_model_energy_unit(model), "eV") == 0 && strcmp(mlff_model_length_unit(model), "angstrom") == 0);
    CHECK(strstr(mlff_model_description_json(model), "\"class\"") != NULL);
    CHECK(strcmp(mlff_model_why_not_runnable(model), "") == 0);
    mlff_model_free(model);
    mlff_model_free(NULL);

    CHECK(mlff_model_get_info(NULL, &info) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_model_get_elements(NULL, elements, 200, &count) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_model_class_name(NULL) == NULL && mlff_model_head_name(NULL, 0) == NULL);
    CHECK(mlff_model_description_json(NULL) == NULL && mlff_model_why_not_runnable(NULL) == NULL);
    CHECK(mlff_model_energy_unit(NULL) == NULL && mlff_model_length_unit(NULL) == NULL);

    snprintf(path, sizeof path, "%s/p07_nonlinear_mh.model", golden_dir);
    CHECK(mlff_model_load(path, &model) == MLFF_OK);
    CHECK(mlff_model_get_info(model, &info) == MLFF_OK);
    CHECK(info.head_count == 2 && info.layer_count == 2 && info.element_count == 4 && info.dtype == MLFF_DTYPE_FLOAT64);
    CHECK_CLOSE(info.cutoff_angstrom, 5.0, 1e-12);
    CHECK(strcmp(mlff_model_class_name(model), "ScaleShiftMACE") == 0);
    CHECK(strcmp(mlff_model_head_name(model, 1), "omol") == 0);
    mlff_model_free(model);

    CHECK(mlff_model_cache_path(NULL, path, sizeof path) == MLFF_ERROR_ARGUMENT &&
          mlff_model_cache_path("x", NULL, 9) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_model_cache_path("no-such-model-anywhere", path, sizeof path) == MLFF_ERROR_FILE);
    CHECK(strstr(mlff_last_error(), "mlff model add FILE --name no-such-model-anywhere") != NULL);
    CHECK(mlff_model_cache_path("smal", path, sizeof path) == MLFF_ERROR_FILE &&
          strstr(mlff_last_error(), "did you mean 'small'?") != NULL);
    CHECK(mlff_model_cache_path("../x", path, sizeof path) == MLFF_ERROR_ARGUMENT);

    snprintf(path, sizeof path, "%s/p20_state_dict.pt", golden_dir);
    CHECK(mlff_model_load(path, &model) == MLFF_ERROR_UNSUPPORTED && model == NULL);
    CHECK(strstr(mlff_last_error(), "torch.save(model") != NULL);
}

static void test_session(void) {
    mlff_model* model = NULL;
    mlff_session* session = NULL;
    mlff_session_options options;
    mlff_session_info info;
    mlff_system system = water();
    mlff_result result = no_result();
    double energy = 0, forces[9], stress[6], virial[9], atom_energies[3], atom_virials[27], sum = 0;
    int i, k;

    CHECK(mlff_session_create(NULL, NULL, &session) == MLFF_ERROR_ARGUMENT && session == NULL);
    CHECK(mlff_model_load("analytic", &model) == MLFF_OK);
    CHECK(mlff_session_create(model, NULL, NULL) == MLFF_ERROR_ARGUMENT);
    memset(&options, 0, sizeof options);
    CHECK(mlff_session_create(model, &options, &session) == MLFF_ERROR_ARGUMENT); /* struct_size 0 */
    options.struct_size = sizeof options;
    options.precision = 99;
    CHECK(mlff_session_create(model, &options, &session) == MLFF_ERROR_ARGUMENT);
    options.precision = MLFF_PRECISION_AUTO;
    options.device = "toaster";
    CHECK(mlff_session_create(model, &options, &session) == MLFF_ERROR_ARGUMENT && session == NULL);
    CHECK(strstr(mlff_last_error(), "toaster") != NULL);
    options.device = "cpu";
    options.thread_count = 2;
    CHECK(mlff_session_create(model, &options, &session) == MLFF_OK);
    mlff_model_free(model); /* the session keeps what it needs */

    CHECK(strcmp(mlff_session_device(session), "cpu") == 0 && mlff_session_device_reason(session) != NULL);
    CHECK(mlff_session_device(NULL) == NULL && mlff_session_device_reason(NULL) == NULL);

    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK); /* nothing wanted */
    result.energy = &energy;
    result.forces = forces;
    result.virial = virial;
    result.atom_energies = atom_energies;
    result.atom_virials = atom_virials;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK);
    CHECK(isfinite(energy) && energy < 0);
    CHECK_CLOSE(atom_energies[0] + atom_energies[1] + atom_energies[2], energy, 1e-12);
    for (k = 0; k < 3; ++k) CHECK_CLOSE(forces[k] + forces[3 + k] + forces[6 + k], 0.0, 1e-12);
    for (k = 0; k < 9; ++k) {
        sum = 0;
        for (i = 0; i < 3; ++i) sum += atom_virials[9 * i + k];
        CHECK_CLOSE(sum, virial[k], 1e-12);
    }

    result.stress = stress;
    energy = 7;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_SYSTEM); /* a molecule has no stress */
    CHECK(energy == 7);
    system.cell = cell;
    system.periodic[0] = system.periodic[1] = system.periodic[2] = 1;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK);
    CHECK_CLOSE(stress[0], -virial[0] / 210.0, 1e-14);
    CHECK_CLOSE(stress[3], -virial[5] / 210.0, 1e-14);

    /* Wrong input. */
    CHECK(mlff_session_evaluate(NULL, &system, &result) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_session_evaluate(session, NULL, &result) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_session_evaluate(session, &system, NULL) == MLFF_ERROR_ARGUMENT);
    system.struct_size = 8;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_ARGUMENT);
    system.struct_size = sizeof system;
    result.struct_size = 0;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_ARGUMENT);
    result.struct_size = sizeof result;
    system.cell = NULL;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_ARGUMENT);
    system.cell = cell;
    system.periodic[1] = 2;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_ARGUMENT);
    system.periodic[1] = 1;
    system.positions = NULL;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_ARGUMENT);
    system.positions = positions;
    system.atom_count = -3;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_ARGUMENT);
    system.atom_count = 0;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK && energy == 0);

    memset(&info, 0, sizeof info);
    CHECK(mlff_session_get_info(session, &info) == MLFF_ERROR_ARGUMENT);
    info.struct_size = sizeof info;
    CHECK(mlff_session_get_info(session, &info) == MLFF_OK);
    CHECK(info.precision == MLFF_PRECISION_FP64 && info.thread_count == 2 && info.evaluation_count == 4);
    CHECK(mlff_session_get_info(NULL, &info) == MLFF_ERROR_ARGUMENT);
    mlff_session_free(session);
    mlff_session_free(NULL);
}

/* The domain hears from itself: `user_data` is how many rows it has sent, which come back in reverse order. */
static int32_t return_rows(const void* sent, void* received, size_t row_bytes, void* user_data) {
    const int count = *(const int*)user_data;
    int i;
    if (count < 0) return 5;
    for (i = 0; i < count; ++i)
        memcpy((char*)received + (size_t)i * row_bytes, (const char*)sent + (size_t)(count - 1 - i) * row_bytes,
               row_bytes);
    return 0;
}

/* Calls the session that is calling it, which must be refused. */
static mlff_session* session_that_asks;
static int refusals;
static int32_t ask_again(const void* sent, void* received, size_t row_bytes, void* user_data) {
    mlff_system nothing;
    mlff_result result;
    memset(&nothing, 0, sizeof nothing);
    nothing.struct_size = sizeof nothing;
    memset(&result, 0, sizeof result);
    result.struct_size = sizeof result;
    if (mlff_session_evaluate(session_that_asks, &nothing, &result) == MLFF_ERROR_ARGUMENT &&
        strstr(mlff_last_error(), "in use") != NULL)
        ++refusals;
    return return_rows(sent, received, row_bytes, user_data);
}

/* A periodic system as one domain. Ghosts are images of three atoms, in their order: atom 3 + 3 * i + k copies atom k.
 * Every other ghost is copied by the library, the rest by the exchange. */
static void test_domain(void) {
    enum { ATOMS = 81 };
    mlff_model* model = NULL;
    mlff_session* session = NULL;
    mlff_session_options options;
    mlff_domain domain;
    mlff_gpu_address address = {sizeof address, {0}};
    mlff_system system = water();
    mlff_result result = no_result();
    int32_t all_numbers[ATOMS], neighbors[3 * ATOMS];
    double all_positions[3 * ATOMS], forces[3 * ATOMS], expected_forces[9], virial[9], expected_virial[9], stress[6],
        energy = 0, expected = 0;
    int64_t first[4] = {0, ATOMS - 1, 2 * (ATOMS - 1), 3 * (ATOMS - 1)};
    const int32_t sent[4] = {2, 0, 0, 1}; /* comes back as 1, 0, 0, 2 */
    int32_t ghost_source[ATOMS - 3];
    const int32_t outside = 3;
    const double no_cell[9] = {0};
    int i, k, image = 0, returned = 4;

    for (i = 0; i < 27; ++i) { /* the image without a shift is first */
        const int number = i == 0 ? 13 : (i <= 13 ? i - 1 : i);
        const int shift[3] = {number / 9 - 1, number / 3 % 3 - 1, number % 3 - 1};
        for (k = 0; k < 9; ++k) all_positions[9 * image + k] = positions[k] + shift[k % 3] * cell[4 * (k % 3)];
        for (k = 0; k < 3; ++k) all_numbers[3 * image + k] = numbers[k];
        ++image;
    }
    for (k = 0; k < 3; ++k)
        for (i = 0; i < ATOMS - 1; ++i) neighbors[k * (ATOMS - 1) + i] = i < k ? i : i + 1;
    for (i = 0; i < ATOMS - 3; ++i) {
        const int32_t row_of_atom[3] = {1 + i / 6 % 2, 0, 3};
        ghost_source[i] = i % 2 == 0 ? -1 - i % 3 : row_of_atom[i % 3];
    }

    CHECK(mlff_model_load("builtin", &model) == MLFF_OK);
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.device = "cpu";
    options.precision = MLFF_PRECISION_FP64;
    options.thread_count = 1;
    CHECK(mlff_session_create(model, &options, &session) == MLFF_OK);
    mlff_model_free(model);
    system.cell = cell;
    system.periodic[0] = system.periodic[1] = system.periodic[2] = 1;
    result.energy = &expected;
    result.forces = expected_forces;
    result.virial = expected_virial;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK);

    memset(&domain, 0, sizeof domain);
    result.energy = &energy;
    result.forces = forces;
    result.virial = virial;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT); /* struct_size 0 */
    domain.struct_size = sizeof domain;
    domain.owned_count = 3;
    domain.ghost_count = ATOMS - 3;
    domain.atomic_numbers = all_numbers;
    domain.positions = all_positions;
    domain.first = first;
    domain.neighbors = neighbors;
    domain.sent_count = domain.received_count = 4;
    domain.sent = sent;
    domain.ghost_source = ghost_source;
    domain.user_data = &returned;
    domain.list_version = 1;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT); /* no function */
    domain.exchange = return_rows;
    CHECK(mlff_session_evaluate_domain(NULL, &domain, &result) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_session_evaluate_domain(session, NULL, &result) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_session_evaluate_domain(session, &domain, NULL) == MLFF_ERROR_ARGUMENT);
    result.stress = stress;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT);
    result.stress = NULL;
    domain.periodic[1] = 1;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "periodic[1] is set but cell is NULL") != NULL);
    domain.cell = no_cell;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_SYSTEM);
    domain.cell = cell;
    domain.periodic[0] = domain.periodic[1] = domain.periodic[2] = 1;
    domain.sent_count = -1;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "sent_count is -1") != NULL);
    domain.sent_count = 4;
    domain.sent = NULL;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "sent is NULL") != NULL);
    domain.sent = &outside;
    domain.sent_count = 1;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "is that of atom 3") != NULL);
    domain.sent = sent;
    domain.sent_count = 4;
    domain.ghost_source = NULL;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "ghost_source is NULL") != NULL);
    domain.ghost_source = ghost_source;
    domain.received_count = 3;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "has received row 3, but") != NULL);
    domain.received_count = 4;
    domain.row_transport = 7;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "row_transport is 7") != NULL);
    domain.row_transport = MLFF_ROWS_SHARED;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "the session is on 'cpu'") != NULL);
    domain.row_transport = MLFF_ROWS_THROUGH_HOST;
    memset(&address, 0, sizeof address);
    CHECK(mlff_session_get_gpu_address(session, &address) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "struct_size") != NULL);
    address.struct_size = sizeof address;
    CHECK(mlff_session_get_gpu_address(session, &address) == MLFF_ERROR_UNSUPPORTED);
    CHECK(mlff_session_get_gpu_address(session, NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_session_reach_gpu(session, &address) == MLFF_ERROR_UNSUPPORTED);
    returned = -1; /* the function fails */
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "returned 5") != NULL);
    returned = 4;
    session_that_asks = session;
    domain.exchange = ask_again;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_OK && refusals > 0);
    domain.exchange = return_rows;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_OK);
    CHECK_CLOSE(energy, expected, 1e-10 * fabs(expected));
    for (k = 0; k < 9; ++k) {
        double sum = 0;
        for (i = 0; i < 27; ++i) sum += forces[9 * i + k];
        CHECK_CLOSE(sum, expected_forces[k], 1e-10);
        CHECK_CLOSE(virial[k], expected_virial[k], 1e-10);
    }
    domain.ghost_count = -1;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT);
    mlff_session_free(session);
}

/* Descriptors and exact radial functions of a MACE model. */
static void test_descriptors(const char* golden_dir) {
    mlff_model* model = NULL;
    mlff_session* session = NULL;
    mlff_session_options options;
    mlff_model_info info;
    mlff_system system = water();
    mlff_result result = no_result();
    double energies[2], descriptors[3 * 64];
    char path[1024];
    int i, width, exact;

    snprintf(path, sizeof path, "%s/p09_l2_ell3.model", golden_dir);
    CHECK(mlff_model_load(path, &model) == MLFF_OK);
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    CHECK(mlff_model_get_info(model, &info) == MLFF_OK);
    width = info.descriptor_count;
    CHECK(width > 0 && width <= 64);
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.precision = MLFF_PRECISION_FP64;
    options.exact_radial = 2;
    CHECK(mlff_session_create(model, &options, &session) == MLFF_ERROR_ARGUMENT);
    for (exact = 0; exact < 2; ++exact) {
        options.exact_radial = exact;
        CHECK(mlff_session_create(model, &options, &session) == MLFF_OK);
        for (i = 0; i < 3 * width; ++i) descriptors[i] = NAN;
        result.energy = &energies[exact];
        result.descriptors = descriptors;
        CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK);
        for (i = 0; i < 3 * width; ++i) CHECK(isfinite(descriptors[i]));
        mlff_session_free(session);
    }
    CHECK(energies[0] != energies[1]);
    CHECK_CLOSE(energies[0], energies[1], 1e-8);
    mlff_model_free(model);

    CHECK(mlff_model_load("analytic", &model) == MLFF_OK);
    CHECK(mlff_session_create(model, NULL, &session) == MLFF_OK);
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_UNSUPPORTED);
    mlff_session_free(session);
    mlff_model_free(model);
}

/* A caller compiled against a later header, whose structs have grown: the array stride is theirs. */
static void test_batch_of_larger_structs(void) {
    struct {
        mlff_system system;
        double later_field;
    } systems[2];
    struct {
        mlff_result result;
        double* later_field;
    } results[2];
    double energies[2] = {0, 0}, single = 0;
    mlff_model* model = NULL;
    mlff_session* session = NULL;
    mlff_system one = water();
    mlff_result one_result = no_result();
    int i;

    CHECK(mlff_model_load("analytic", &model) == MLFF_OK && mlff_session_create(model, NULL, &session) == MLFF_OK);
    for (i = 0; i < 2; ++i) {
        systems[i].system = water();
        systems[i].system.struct_size = sizeof systems[i];
        systems[i].later_field = 1e300;
        results[i].result = no_result();
        results[i].result.struct_size = sizeof results[i];
        results[i].result.energy = &energies[i];
        results[i].later_field = NULL;
    }
    systems[1].system.atom_count = 2;
    CHECK(mlff_session_evaluate_batch(session, 2, &systems[0].system, &results[0].result) == MLFF_OK);
    one_result.energy = &single;
    CHECK(mlff_session_evaluate(session, &one, &one_result) == MLFF_OK && single == energies[0]);
    one.atom_count = 2;
    CHECK(mlff_session_evaluate(session, &one, &one_result) == MLFF_OK && single == energies[1]);

    CHECK(mlff_session_evaluate_batch(session, 0, NULL, NULL) == MLFF_OK);
    CHECK(mlff_session_evaluate_batch(session, -1, &one, &one_result) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_session_evaluate_batch(session, 1, NULL, &one_result) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_session_evaluate_batch(session, 1, &one, NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_session_evaluate_batch(NULL, 1, &one, &one_result) == MLFF_ERROR_ARGUMENT);
    systems[1].system.struct_size = sizeof(mlff_system);
    CHECK(mlff_session_evaluate_batch(session, 2, &systems[0].system, &results[0].result) == MLFF_ERROR_ARGUMENT);
    mlff_session_free(session);
    mlff_model_free(model);
}

static void test_neighbors(void) {
    mlff_neighbors* neighbors = NULL;
    mlff_neighbor_options options;
    mlff_neighbor_view view;
    mlff_system system = water();
    int64_t edge;

    memset(&options, 0, sizeof options);
    memset(&view, 0, sizeof view);
    view.struct_size = sizeof view;
    CHECK(mlff_neighbors_create(NULL, &neighbors) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_neighbors_create(&options, &neighbors) == MLFF_ERROR_ARGUMENT && neighbors == NULL);
    options.struct_size = sizeof options;
    CHECK(mlff_neighbors_create(&options, &neighbors) == MLFF_ERROR_ARGUMENT); /* cutoff 0 */
    options.cutoff_angstrom = 1.2;
    options.want_distances = options.want_vectors = options.want_reverse = 1;
    CHECK(mlff_neighbors_create(&options, &neighbors) == MLFF_OK);
    CHECK(mlff_neighbors_get_view(neighbors, &view) == MLFF_ERROR_ARGUMENT); /* update comes first */
    system.atomic_numbers = NULL;                                            /* not needed here */
    CHECK(mlff_neighbors_update(neighbors, &system) == MLFF_OK);
    CHECK(mlff_neighbors_get_view(neighbors, &view) == MLFF_OK);
    CHECK(view.atom_count == 3 && view.edge_count == 4 && view.first[1] == 2 && view.first[3] == 4);
    CHECK(view.shifts == NULL && view.distances != NULL);
    for (edge = 0; edge < view.edge_count; ++edge) {
        const double* v = view.vectors + 3 * edge;
        CHECK_CLOSE(sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]), view.distances[edge], 1e-14);
        CHECK(view.reverse[view.reverse[edge]] == edge);
    }
    CHECK(view.sender[2] == 0 && view.sender[3] == 0);
    CHECK(mlff_neighbors_update(neighbors, NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_neighbors_update(NULL, &system) == MLFF_ERROR_ARGUMENT);
    system.positions = NULL;
    CHECK(mlff_neighbors_update(neighbors, &system) == MLFF_ERROR_ARGUMENT);
    mlff_neighbors_free(neighbors);
    mlff_neighbors_free(NULL);
    options.half = 1;
    CHECK(mlff_neighbors_create(&options, &neighbors) == MLFF_ERROR_ARGUMENT); /* half lists have no reverse edges */
}

static int messages_seen = 0;
static void count_message(mlff_log_level level, const char* message, void* user_data) {
    if (level <= MLFF_LOG_INFO && message[0] != '\0' && user_data == &messages_seen) ++messages_seen;
}

static void test_log(void) {
    mlff_model* model = NULL;
    int before;
    CHECK(mlff_set_log_callback(count_message, 99, &messages_seen) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_set_log_callback(count_message, MLFF_LOG_INFO, &messages_seen) == MLFF_OK);
    CHECK(mlff_model_load("analytic", &model) == MLFF_OK);
    CHECK(messages_seen > 0);
    before = messages_seen;
    CHECK(mlff_set_log_callback(NULL, 0, NULL) == MLFF_OK);
    mlff_model_free(model);
    CHECK(mlff_model_load("analytic", &model) == MLFF_OK);
    CHECK(messages_seen == before);
    mlff_model_free(model);
}

static void test_devices(void) {
    mlff_device_info info;
    const int32_t count = mlff_device_count();
    memset(&info, 0, sizeof info);
    CHECK(count >= 0);
    CHECK((count == 0) == (mlff_device_why_none()[0] != '\0'));
    CHECK(mlff_device_get_info(0, &info) != MLFF_OK); /* struct_size 0 */
    info.struct_size = sizeof info;
    CHECK(mlff_device_get_info(-1, &info) == MLFF_ERROR_DEVICE);
    CHECK(mlff_device_get_info(count, &info) == MLFF_ERROR_DEVICE);
    if (count > 0) CHECK(mlff_device_get_info(0, &info) == MLFF_OK && info.name[0] != '\0' && info.memory_bytes > 0);
}

int main(int argc, char** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s GOLDEN_DIR\n", argv[0]);
        return 2;
    }
    test_version();
    test_model(argv[1]);
    test_descriptors(argv[1]);
    test_session();
    test_domain();
    test_batch_of_larger_structs();
    test_neighbors();
    test_log();
    test_devices();
    printf("%d checks, %d failed\n", checks, failures);
    return failures == 0 && checks > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
