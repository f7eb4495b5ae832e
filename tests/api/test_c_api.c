/* SPDX-License-Identifier: MIT
 * The C interface from C99: right results, NULL everywhere, calls in the wrong order, structs of the wrong size.
 * Usage: test_c_api GOLDEN_DIR */
#include <math.h>
#include <mlff/mlff.h>
#include <stddef.h>
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
    CHECK(info.reach_angstrom == info.cutoff_angstrom);
    /* A caller compiled before `member_count` was there: nothing is written beyond its struct. */
    info.struct_size = offsetof(mlff_model_info, member_count);
    info.cutoff_angstrom = info.reach_angstrom = -1;
    CHECK(mlff_model_get_info(model, &info) == MLFF_OK && info.cutoff_angstrom > 0 && info.reach_angstrom == -1);
    info.struct_size -= 1;
    CHECK(mlff_model_get_info(model, &info) == MLFF_ERROR_ARGUMENT);
    info.struct_size = sizeof info;
    CHECK(mlff_model_get_info(model, &info) == MLFF_OK);
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

    CHECK(mlff_model_d3_name("a+zbl,b", "pbe:zero", path, sizeof path) == MLFF_OK);
    CHECK(strcmp(path, "a+zbl+d3:pbe:zero,b+d3:pbe:zero") == 0);
    CHECK(mlff_model_d3_name("X.model", "s8=0.7,a1=0.4", path, 24) == MLFF_ERROR_ARGUMENT);
    CHECK(strcmp(mlff_last_error(), "capacity is 24, the name of the sum needs 25") == 0);
    CHECK(mlff_model_d3_name("X.model", "s8=0.7,a1=0.4", path, 25) == MLFF_OK);
    CHECK(strcmp(path, "X.model+d3:s8=0.7,a1=0.4") == 0);
    CHECK(mlff_model_d3_name("X.model+d3:pbe", "pbe", path, sizeof path) == MLFF_ERROR_ARGUMENT);
    CHECK(strstr(mlff_last_error(), "has the term d3:pbe already") != NULL);
    CHECK(mlff_model_d3_name(NULL, "pbe", path, sizeof path) == MLFF_ERROR_ARGUMENT &&
          mlff_model_d3_name("a", NULL, path, sizeof path) == MLFF_ERROR_ARGUMENT &&
          mlff_model_d3_name("a", "pbe", NULL, 9) == MLFF_ERROR_ARGUMENT &&
          mlff_model_d3_name("a", "pbe", path, -1) == MLFF_ERROR_ARGUMENT);
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
    enum { ATOMS = 81, MEMBERS = 3 };
    mlff_model* model = NULL;
    mlff_session* session = NULL;
    mlff_session_options options;
    mlff_domain domain;
    mlff_gpu_address address = {sizeof address, {0}};
    mlff_system system = water();
    mlff_result result = no_result();
    int32_t all_numbers[ATOMS], neighbors[3 * ATOMS];
    double all_positions[3 * ATOMS], forces[3 * ATOMS], expected_forces[9], virial[9], expected_virial[9], stress[6],
        energy = 0, expected = 0, energy_deviations[MEMBERS - 1], force_deviations[(MEMBERS - 1) * 3 * ATOMS],
        sigma_energy = -1, sigma_forces[3], expected_errors[3], novelties[3], domain_errors[3] = {-1, -1, -1},
        domain_novelties[3] = {-1, -1, -1};
    int64_t first[4] = {0, ATOMS - 1, 2 * (ATOMS - 1), 3 * (ATOMS - 1)};
    const int32_t sent[4] = {2, 0, 0, 1}; /* comes back as 1, 0, 0, 2 */
    int32_t ghost_source[ATOMS - 3];
    const int32_t outside = 3;
    const double no_cell[9] = {0};
    int i, k, member, image = 0, returned = 4;

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
    result.expected_errors = expected_errors;
    result.novelties = novelties;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK);

    memset(&domain, 0, sizeof domain);
    result.expected_errors = result.novelties = NULL;
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
    for (i = MLFF_ROWS_SHARED; i <= MLFF_ROWS_IN_WINDOW; ++i) {
        domain.row_transport = i;
        CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT &&
              strstr(mlff_last_error(), "the session is on 'cpu'") != NULL);
    }
    domain.row_transport = MLFF_ROWS_THROUGH_HOST;
    memset(&address, 0, sizeof address);
    CHECK(mlff_session_get_gpu_address(session, &address) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "struct_size") != NULL);
    address.struct_size = sizeof address;
    CHECK(mlff_session_get_gpu_address(session, &address) == MLFF_ERROR_UNSUPPORTED);
    CHECK(mlff_session_get_window_address(session, &address) == MLFF_ERROR_UNSUPPORTED);
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
    result.expected_errors = domain_errors; /* those of own atoms */
    result.novelties = domain_novelties;
    result.struct_size = offsetof(mlff_result, expected_errors); /* of callers who do not know of them */
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_OK && domain_errors[0] == -1);
    result.struct_size = sizeof result;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_OK);
    for (i = 0; i < 3; ++i) {
        CHECK(expected_errors[i] > 1e-4 && novelties[i] > 1e-4);
        CHECK_CLOSE(domain_errors[i], expected_errors[i], 1e-6 * expected_errors[i]);
        CHECK_CLOSE(domain_novelties[i], novelties[i], 1e-6 * novelties[i]);
    }
    result.expected_errors = result.novelties = NULL;
    domain.ghost_count = -1;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_ARGUMENT);
    domain.ghost_count = ATOMS - 3;
    result.force_deviations = force_deviations;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_UNSUPPORTED); /* no committee */
    mlff_session_free(session);

    /* The spread of a committee, from deviations. */
    CHECK(mlff_model_load("builtin,builtin+zbl,self-test", &model) == MLFF_OK);
    CHECK(mlff_session_create(model, &options, &session) == MLFF_OK);
    mlff_model_free(model);
    domain.list_version = 2;
    result = no_result();
    result.sigma_energy_per_atom = &sigma_energy;
    result.sigma_forces = sigma_forces;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK);
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_UNSUPPORTED &&
          strstr(mlff_last_error(), "ask for deviations") != NULL);
    result = no_result();
    result.energy_deviations = energy_deviations;
    result.force_deviations = force_deviations;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_ARGUMENT &&
          strstr(mlff_last_error(), "only domains have them") != NULL);
    energy_deviations[0] = 47;
    result.struct_size = offsetof(mlff_result, energy_deviations); /* of callers who do not know of them */
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_OK && energy_deviations[0] == 47);
    result.struct_size = sizeof result;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_OK);
    CHECK(sigma_energy > 1);
    CHECK_CLOSE(sqrt(energy_deviations[0] * energy_deviations[0] + energy_deviations[1] * energy_deviations[1]) / 3,
                sigma_energy, 1e-10 * sigma_energy);
    for (i = 0; i < 3; ++i) {
        double square = 0;
        for (member = 0; member < MEMBERS - 1; ++member)
            for (k = 0; k < 3; ++k) {
                double sum = 0;
                for (image = 0; image < 27; ++image)
                    sum += force_deviations[3 * ATOMS * member + 9 * image + 3 * i + k];
                square += sum * sum;
            }
        CHECK(sigma_forces[i] > 1e-3);
        CHECK_CLOSE(sqrt(square), sigma_forces[i], 1e-10);
    }
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

/* The spread of a committee, which older callers do not know of. */
static void test_hessian(void) {
    mlff_model* model = NULL;
    mlff_session *session = NULL, *mixed = NULL;
    mlff_session_options options;
    mlff_hessian_options wishes;
    mlff_hessian_report report;
    mlff_system system = water();
    double hessian[81], again[81], moved[9], forces[9], force_difference[9];
    mlff_result result = no_result();
    int i, j;

    CHECK(mlff_model_load("self-test", &model) == MLFF_OK);
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.device = "cpu";
    options.precision = MLFF_PRECISION_MIXED;
    CHECK(mlff_session_create(model, &options, &mixed) == MLFF_OK);
    options.precision = MLFF_PRECISION_FP64;
    CHECK(mlff_session_create(model, &options, &session) == MLFF_OK);
    memset(&wishes, 0, sizeof wishes);
    memset(&report, 0, sizeof report);
    wishes.struct_size = sizeof wishes;
    report.struct_size = sizeof report;
    for (i = 0; i < 81; ++i) hessian[i] = 77;
    CHECK(mlff_session_hessian(mixed, &system, NULL, hessian, NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_session_hessian(NULL, &system, NULL, hessian, NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_session_hessian(session, NULL, NULL, hessian, NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_session_hessian(session, &system, NULL, NULL, NULL) == MLFF_ERROR_ARGUMENT);
    wishes.step_angstrom = -1;
    CHECK(mlff_session_hessian(session, &system, &wishes, hessian, &report) == MLFF_ERROR_ARGUMENT);
    for (i = 0; i < 81; ++i) CHECK(hessian[i] == 77);

    CHECK(mlff_session_hessian(session, &system, NULL, hessian, NULL) == MLFF_OK);
    wishes.step_angstrom = 1e-3;
    wishes.symmetry_tolerance_angstrom = -1;
    CHECK(mlff_session_hessian(session, &system, &wishes, again, &report) == MLFF_OK);
    CHECK(report.operation_count == 1 && report.evaluation_count >= 18 && report.sum_rule_error < 1e-3);
    CHECK(report.step_error >= 0 && report.asymmetry >= 0);
    for (i = 0; i < 9; ++i)
        for (j = 0; j < 9; ++j) {
            CHECK(hessian[9 * i + j] == hessian[9 * j + i]);
            CHECK(fabs(hessian[9 * i + j] - again[9 * i + j]) <= 1e-4);
        }
    /* A row beside a difference of forces. */
    memcpy(moved, system.positions, sizeof moved);
    system.positions = moved;
    moved[3] += 2e-4;
    result.forces = force_difference;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK);
    moved[3] -= 4e-4;
    result.forces = forces;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK);
    for (i = 0; i < 9; ++i) CHECK(fabs(hessian[27 + i] + (force_difference[i] - forces[i]) / 4e-4) <= 5e-4);
    mlff_session_free(mixed);
    mlff_session_free(session);
    mlff_model_free(model);
}

static void test_committee(void) {
    mlff_model *model = NULL, *single = NULL;
    mlff_session* session = NULL;
    mlff_session_options options;
    mlff_model_info info;
    mlff_domain domain;
    mlff_system system = water();
    mlff_result result = no_result();
    double energy = 0, same_energy = 0, sigma_energy = -1, sigma_forces[3] = {-1, -1, -1}, sigma_max = -1, largest = 0;
    int i;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.device = "cpu";
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    CHECK(mlff_model_load("builtin,self-test", &model) == MLFF_OK);
    CHECK(mlff_model_get_info(model, &info) == MLFF_OK);
    CHECK(info.member_count == 2);
    info.struct_size = offsetof(mlff_model_info, member_count);
    info.member_count = 7;
    CHECK(mlff_model_get_info(model, &info) == MLFF_OK);
    CHECK(info.member_count == 7);
    CHECK(strcmp(mlff_model_class_name(model), "Committee") == 0);
    CHECK(mlff_session_create(model, &options, &session) == MLFF_OK);
    result.energy = &energy;
    result.sigma_energy_per_atom = &sigma_energy;
    result.sigma_forces = sigma_forces;
    result.sigma_max_force = &sigma_max;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK);
    for (i = 0; i < 3; ++i) {
        CHECK(sigma_forces[i] > 0 && sigma_forces[i] < 100);
        if (sigma_forces[i] > largest) largest = sigma_forces[i];
    }
    CHECK(sigma_max == largest);
    CHECK(sigma_energy > 0 && sigma_energy < 1e4);

    sigma_max = -1; /* not written where the struct ends before it */
    result.struct_size = offsetof(mlff_result, sigma_energy_per_atom);
    result.energy = &same_energy;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK);
    CHECK(same_energy == energy);
    CHECK(sigma_max == -1);
    result.struct_size = sizeof result;

    memset(&domain, 0, sizeof domain);
    domain.struct_size = sizeof domain;
    domain.exchange = return_rows;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_UNSUPPORTED);
    mlff_session_free(session);
    mlff_model_free(model);

    CHECK(mlff_model_load("builtin", &single) == MLFF_OK);
    info.struct_size = sizeof info;
    CHECK(mlff_model_get_info(single, &info) == MLFF_OK);
    CHECK(info.member_count == 0);
    CHECK(mlff_session_create(single, &options, &session) == MLFF_OK);
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_UNSUPPORTED);
    CHECK(strstr(mlff_last_error(), "no committee") != NULL);
    mlff_session_free(session);
    mlff_model_free(single);
}

/* A model with a trust meter, which older callers do not know of. */
static void test_trust(const char* golden_dir) {
    mlff_model* model = NULL;
    mlff_session* session = NULL;
    mlff_session_options options;
    mlff_model_info info;
    mlff_session_info of_session;
    mlff_domain domain;
    mlff_system system = water(), systems[2];
    mlff_result result = no_result(), results[2];
    const int64_t no_neighbors = 0;
    int no_rows = 0;
    double energy = 0, errors[3] = {-1, -1, -1}, novelties[3] = {-1, -1, -1}, again[3], batch[6];
    char path[1024];
    int i;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.device = "cpu";
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    snprintf(path, sizeof path, "%s/../painn/one_block_no_repulsion.safetensors", golden_dir);
    CHECK(mlff_model_load(path, &model) == MLFF_OK);
    CHECK(mlff_model_get_info(model, &info) == MLFF_OK);
    CHECK(info.has_trust_meter == 1 && info.alarm_error == 0.3);
    CHECK(strstr(mlff_model_description_json(model), "\"alarm_error\"") != NULL);
    info.struct_size = offsetof(mlff_model_info, has_trust_meter); /* older: nothing is written beyond its struct */
    info.has_trust_meter = 7;
    info.member_count = 7;
    info.alarm_error = -1;
    CHECK(mlff_model_get_info(model, &info) == MLFF_OK);
    CHECK(info.has_trust_meter == 7 && info.alarm_error == -1 && info.member_count == 0);
    CHECK(mlff_session_create(model, &options, &session) == MLFF_OK);
    memset(&of_session, 0, sizeof of_session);
    of_session.struct_size = sizeof of_session;
    CHECK(mlff_session_get_info(session, &of_session) == MLFF_OK && of_session.has_trust_meter == 1);
    of_session.struct_size = offsetof(mlff_session_info, has_trust_meter); /* older */
    of_session.has_trust_meter = 7;
    CHECK(mlff_session_get_info(session, &of_session) == MLFF_OK && of_session.has_trust_meter == 7);
    result.energy = &energy;
    result.expected_errors = errors;
    result.novelties = novelties;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK);
    for (i = 0; i < 3; ++i) {
        CHECK(errors[i] > 1e-4 && errors[i] < 100);
        CHECK(novelties[i] > 0 && novelties[i] < 1000);
        CHECK(novelties[i] <= 1 || errors[i] >= 0.5);
    }

    result.novelties = NULL; /* one of them alone */
    result.expected_errors = again;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK && memcmp(again, errors, sizeof errors) == 0);
    again[0] = -1; /* not written where the struct ends before it, but a spread is still refused */
    result.struct_size = offsetof(mlff_result, expected_errors);
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_OK && again[0] == -1);
    result.sigma_max_force = &energy;
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_UNSUPPORTED);
    CHECK(strstr(mlff_last_error(), "no committee") != NULL);
    result = no_result();
    result.expected_errors = errors;
    for (i = 0; i < 2; ++i) {
        systems[i] = water();
        results[i] = no_result();
        results[i].novelties = batch + 3 * i;
    }
    CHECK(mlff_session_evaluate_batch(session, 2, systems, results) == MLFF_OK);
    CHECK(memcmp(batch, novelties, sizeof novelties) == 0 && memcmp(batch + 3, novelties, sizeof novelties) == 0);

    memset(&domain, 0, sizeof domain); /* without atoms */
    domain.struct_size = sizeof domain;
    domain.first = &no_neighbors;
    domain.exchange = return_rows;
    domain.user_data = &no_rows;
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_OK);
    mlff_session_free(session);
    mlff_model_free(model);

    CHECK(mlff_model_load("self-test", &model) == MLFF_OK);
    info.struct_size = sizeof info;
    CHECK(mlff_model_get_info(model, &info) == MLFF_OK);
    CHECK(info.has_trust_meter == 0 && info.alarm_error == 0);
    CHECK(strstr(mlff_model_description_json(model), "\"trust_meter\": null") != NULL);
    CHECK(mlff_session_create(model, &options, &session) == MLFF_OK);
    CHECK(mlff_session_evaluate(session, &system, &result) == MLFF_ERROR_UNSUPPORTED);
    CHECK(strstr(mlff_last_error(), "no trust meter") != NULL);
    CHECK(mlff_session_evaluate_domain(session, &domain, &result) == MLFF_ERROR_UNSUPPORTED);
    CHECK(strstr(mlff_last_error(), "no trust meter") != NULL);
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
    CHECK(getenv("MLFF_REQUIRE_GPU") == NULL || count > 0);
    if (count == 0) return;
    CHECK(mlff_device_get_info(0, &info) == MLFF_OK && info.name[0] != '\0' && info.memory_bytes > 0);
    CHECK(info.multiprocessor_count > 0 && info.l2_cache_bytes > 0 && info.clock_kHz >= 0 && info.memory_bus_bits > 0);
    CHECK(info.shared_memory_per_block_bytes >= 48 << 10);
    CHECK(info.shared_memory_per_multiprocessor_bytes >= info.shared_memory_per_block_bytes);
    CHECK_CLOSE(info.memory_bandwidth, 2e3 * info.memory_clock_kHz * info.memory_bus_bits / 8, 1.0);
    CHECK(info.cuda_runtime_version >= 11000 && info.cuda_driver_version > 0);
    CHECK(info.core_count == 0 && info.kernels[0] == '\0');
}

static const char* const bad_devices[] = {NULL, "", "toaster", "cuda:", "cuda:-1", "cuda:1x", "cuda:99"};
enum { BAD_DEVICE_COUNT = sizeof bad_devices / sizeof bad_devices[0] };
/* The last is a name, but there is no such GPU. */
static mlff_status expected_status(size_t i) {
    return i == BAD_DEVICE_COUNT - 1 ? MLFF_ERROR_DEVICE : MLFF_ERROR_ARGUMENT;
}

static void test_device_by_name(void) {
    mlff_device_info info, other;
    mlff_device_memory memory;
    size_t i;
    memset(&info, 0, sizeof info);
    memset(&memory, 0, sizeof memory);
    CHECK(mlff_device_describe("cpu", NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_device_describe("cpu", &info) == MLFF_ERROR_ARGUMENT); /* struct_size 0 */
    CHECK(mlff_device_get_memory("cpu", NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_device_get_memory("cpu", &memory) == MLFF_ERROR_ARGUMENT);
    info.struct_size = sizeof info;
    memory.struct_size = sizeof memory;
    for (i = 0; i < BAD_DEVICE_COUNT; ++i) {
        CHECK(mlff_device_describe(bad_devices[i], &info) == expected_status(i));
        CHECK(mlff_device_get_memory(bad_devices[i], &memory) == expected_status(i));
        CHECK(mlff_device_synchronize(bad_devices[i]) == expected_status(i));
    }
    CHECK(mlff_device_describe("cpu", &info) == MLFF_OK);
    CHECK(info.struct_size == sizeof info && info.name[0] != '\0' && info.kernels[0] != '\0');
    CHECK(info.core_count >= 1 && info.memory_bytes > 1 << 20 && info.l2_cache_bytes >= 0 && info.clock_kHz >= 0);
    CHECK(info.compute_capability == 0 && info.multiprocessor_count == 0 && info.memory_bandwidth == 0);
    CHECK(mlff_device_synchronize("cpu") == MLFF_OK);

    /* A program compiled against the first version of the struct: nothing behind its end is written. */
    memset(&other, 0x55, sizeof other);
    other.struct_size = offsetof(mlff_device_info, l2_cache_bytes);
    CHECK(mlff_device_describe("cpu", &other) == MLFF_OK);
    CHECK(strcmp(other.name, info.name) == 0 && other.memory_bytes == info.memory_bytes);
    CHECK(other.struct_size == offsetof(mlff_device_info, l2_cache_bytes));
    for (i = other.struct_size; i < sizeof other; ++i) CHECK(((const unsigned char*)&other)[i] == 0x55);
    other.struct_size -= 1;
    CHECK(mlff_device_describe("cpu", &other) == MLFF_ERROR_ARGUMENT);

    CHECK(mlff_device_get_memory("cpu", &memory) == MLFF_OK);
    CHECK(memory.total_bytes > 1 << 20 && memory.free_bytes > 0 && memory.free_bytes <= memory.total_bytes);
    CHECK(memory.used_bytes == memory.total_bytes - memory.free_bytes);
    CHECK(memory.process_bytes > 100000 && memory.process_bytes < memory.total_bytes);
    if (mlff_device_count() == 0) return;
    CHECK(mlff_device_get_info(0, &other) == MLFF_ERROR_ARGUMENT);
    other.struct_size = sizeof other;
    CHECK(mlff_device_get_info(0, &other) == MLFF_OK);
    CHECK(mlff_device_describe("auto", &info) == MLFF_OK && memcmp(&info, &other, sizeof info) == 0);
    CHECK(mlff_device_synchronize("cuda:0") == MLFF_OK);
    CHECK(mlff_device_get_memory("cuda:0", &memory) == MLFF_OK);
    CHECK(memory.free_bytes > 0 && memory.free_bytes < memory.total_bytes && memory.process_bytes == -1);
    CHECK(memory.used_bytes == memory.total_bytes - memory.free_bytes);
}

/* Takes time that no compiler removes. */
static volatile double sink;
static int32_t work(void* user_data) {
    const int count = *(const int*)user_data;
    int i;
    for (i = 0; i < count; ++i) sink = sink * 0.5 + i;
    return 0;
}

static void test_streams_and_timers(void) {
    const char* devices[] = {"cpu", "auto"};
    mlff_stream* stream = (mlff_stream*)&failures;
    mlff_timer* timer = (mlff_timer*)&failures;
    double seconds = -1, longer = -1;
    int count = 2000000;
    size_t i;
    CHECK(mlff_stream_create("cpu", NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_timer_create("cpu", NULL, NULL) == MLFF_ERROR_ARGUMENT);
    for (i = 0; i < BAD_DEVICE_COUNT; ++i) {
        CHECK(mlff_stream_create(bad_devices[i], &stream) == expected_status(i) && stream == NULL);
        CHECK(mlff_timer_create(bad_devices[i], NULL, &timer) == expected_status(i) && timer == NULL);
    }
    mlff_stream_free(NULL);
    mlff_timer_free(NULL);
    CHECK(mlff_stream_handle(NULL) == NULL);
    CHECK(mlff_stream_synchronize(NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_timer_start(NULL) == MLFF_ERROR_ARGUMENT && mlff_timer_stop(NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_timer_get_seconds(NULL, &seconds) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_timer_create("cpu", &failures, &timer) == MLFF_ERROR_ARGUMENT && timer == NULL);
    CHECK(strstr(mlff_last_error(), "only GPUs have streams") != NULL);
    for (i = 0; i < 2; ++i) {
        CHECK(mlff_stream_create(devices[i], &stream) == MLFF_OK);
        CHECK((mlff_stream_handle(stream) == NULL) == (i == 0 || mlff_device_count() == 0));
        CHECK(mlff_timer_create(devices[i], mlff_stream_handle(stream), &timer) == MLFF_OK);
        CHECK(mlff_timer_stop(timer) == MLFF_ERROR_ARGUMENT);
        CHECK(mlff_timer_get_seconds(timer, &seconds) == MLFF_ERROR_ARGUMENT && seconds == -1);
        CHECK(mlff_timer_start(timer) == MLFF_OK);
        CHECK(mlff_timer_get_seconds(timer, &seconds) == MLFF_ERROR_ARGUMENT && seconds == -1);
        CHECK(mlff_timer_stop(timer) == MLFF_OK);
        CHECK(mlff_timer_get_seconds(timer, NULL) == MLFF_ERROR_ARGUMENT);
        CHECK(mlff_timer_get_seconds(timer, &seconds) == MLFF_OK && seconds >= 0 && seconds < 10);
        CHECK(mlff_stream_synchronize(stream) == MLFF_OK);
        CHECK(mlff_timer_start(timer) == MLFF_OK && work(&count) == 0 && mlff_timer_stop(timer) == MLFF_OK);
        CHECK(mlff_timer_get_seconds(timer, &longer) == MLFF_OK && longer > 0 && longer < 10);
        if (i == 0) CHECK(longer > seconds);
        mlff_timer_free(timer);
        mlff_stream_free(stream);
        seconds = -1;
    }
}

static void test_statistics(void) {
    const double samples[5] = {3, 1, 2, 5, 4}, doubled[5] = {6, 2, 4, 10, 8}, bad[3] = {1, NAN, 2}, none[2] = {0, 0};
    double ratio = -1, low = -1, high = -1;
    mlff_statistics found;
    memset(&found, 0, sizeof found);
    CHECK(mlff_get_statistics(samples, 5, NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_get_statistics(samples, 5, &found) == MLFF_ERROR_ARGUMENT); /* struct_size 0 */
    found.struct_size = sizeof found;
    CHECK(mlff_get_statistics(NULL, 5, &found) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_get_statistics(samples, 0, &found) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_get_statistics(samples, -1, &found) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_get_statistics(bad, 3, &found) == MLFF_ERROR_ARGUMENT);
    CHECK(strcmp(mlff_last_error(), "statistics need finite samples") == 0 && found.sample_count == 0);
    CHECK(mlff_get_statistics(samples, 5, &found) == MLFF_OK && found.sample_count == 5);
    CHECK_CLOSE(found.mean, 3, 1e-15);
    CHECK_CLOSE(found.median, 3, 1e-15);
    CHECK_CLOSE(found.deviation, sqrt(2.5), 1e-15);
    CHECK_CLOSE(found.p95, 4.8, 1e-12);
    CHECK_CLOSE(found.p99, 4.96, 1e-12);
    CHECK(found.minimum == 1 && found.maximum == 5 && found.outlier_count == 0);
    CHECK(1 <= found.median_low && found.median_low < 3 && 3 < found.median_high && found.median_high <= 5);
    CHECK_CLOSE(found.per_second, 1.0 / 3, 1e-15);
    CHECK(mlff_get_statistics(none, 2, &found) == MLFF_OK && found.per_second == 0 && found.deviation == 0);

    CHECK(mlff_get_median_ratio(doubled, samples, 5, &ratio, &low, &high) == MLFF_OK);
    CHECK_CLOSE(ratio, 2, 1e-15);
    CHECK_CLOSE(low, 2, 1e-15); /* drawn together */
    CHECK_CLOSE(high, 2, 1e-15);
    CHECK(mlff_get_median_ratio(doubled, samples, 5, NULL, NULL, NULL) == MLFF_OK);
    CHECK(mlff_get_median_ratio(NULL, samples, 5, &ratio, &low, &high) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_get_median_ratio(doubled, NULL, 5, &ratio, &low, &high) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_get_median_ratio(doubled, samples, 0, &ratio, &low, &high) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_get_median_ratio(samples, none, 2, &ratio, &low, &high) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_get_median_ratio(bad, samples, 3, &ratio, &low, &high) == MLFF_ERROR_ARGUMENT);
}

static int32_t loads_nothing(void* user_data) {
    mlff_model* model = NULL;
    (void)user_data;
    return (int32_t)mlff_model_load("/no/such.model", &model);
}
static int32_t fails_at_the_fifth_call(void* user_data) { return ++*(int*)user_data == 5 ? 7 : 0; }

static void test_measure(void) {
    enum { CAPACITY = 30 };
    const mlff_measured_function functions[2] = {work, work}, one[1] = {fails_at_the_fifth_call},
                                 no_function[1] = {NULL}, of_mlff[1] = {loads_nothing};
    int little = 100, much = 20000, calls = 0;
    void *const user_data[2] = {&little, &much}, *const call_data[1] = {&calls};
    double samples[2 * CAPACITY];
    mlff_measure_options options;
    mlff_statistics of_little, of_much;
    int64_t count = -1, i;
    memset(&options, 0, sizeof options);
    CHECK(mlff_measure(2, functions, user_data, &options, samples, CAPACITY, &count) == MLFF_ERROR_ARGUMENT);
    options.struct_size = sizeof options;
    CHECK(mlff_measure(2, NULL, user_data, &options, samples, CAPACITY, &count) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_measure(2, functions, user_data, &options, NULL, CAPACITY, &count) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_measure(2, functions, user_data, &options, samples, CAPACITY, NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_measure(0, functions, user_data, &options, samples, CAPACITY, &count) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_measure(1, no_function, NULL, &options, samples, CAPACITY, &count) == MLFF_ERROR_ARGUMENT);
    CHECK(strcmp(mlff_last_error(), "functions[0] is NULL") == 0);
    CHECK(mlff_measure(2, functions, user_data, &options, samples, 19, &count) == MLFF_ERROR_ARGUMENT);
    CHECK(strstr(mlff_last_error(), "room for 19 samples") != NULL);
    options.seconds = NAN;
    CHECK(mlff_measure(2, functions, user_data, &options, samples, CAPACITY, &count) == MLFF_ERROR_ARGUMENT);
    options.seconds = 0;
    options.least_samples = -2;
    CHECK(mlff_measure(2, functions, user_data, &options, samples, CAPACITY, &count) == MLFF_ERROR_ARGUMENT);
    options.least_samples = 9;
    options.most_samples = 8;
    CHECK(mlff_measure(2, functions, user_data, &options, samples, CAPACITY, &count) == MLFF_ERROR_ARGUMENT);
    options.most_samples = 9;
    for (i = 1; i < BAD_DEVICE_COUNT; ++i) { /* NULL is allowed here */
        options.device = bad_devices[i];
        CHECK(mlff_measure(2, functions, user_data, &options, samples, CAPACITY, &count) == expected_status((size_t)i));
    }
    options.device = NULL;
    options.warm_up_calls = -1;
    options.warm_up_seconds = -1;
    CHECK(mlff_measure(1, one, call_data, &options, samples, CAPACITY, &count) == MLFF_ERROR_ARGUMENT);
    CHECK(calls == 5 && count == 0 && strstr(mlff_last_error(), "function 0 returned 7") != NULL);
    CHECK(mlff_measure(1, of_mlff, NULL, &options, samples, CAPACITY, &count) == MLFF_ERROR_ARGUMENT);
    CHECK(strstr(mlff_last_error(), "/no/such.model") != NULL); /* its own reason is kept */
    CHECK(mlff_measure(1, one, call_data, &options, samples, CAPACITY, &count) == MLFF_OK);
    CHECK(calls == 14 && count == 9); /* no warm-up, and nothing is called twice that is alone */
    options.warm_up_calls = 2;
    CHECK(mlff_measure(1, one, call_data, &options, samples, CAPACITY, &count) == MLFF_OK && calls == 25);

    /* The defaults; the capacity ends it. On a GPU too, where one is waited for. */
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.warm_up_seconds = 0.01;
    options.device = "auto";
    for (i = 0; i < 2 * CAPACITY; ++i) samples[i] = NAN;
    CHECK(mlff_measure(2, functions, user_data, &options, samples, CAPACITY, &count) == MLFF_OK && count == CAPACITY);
    of_little.struct_size = of_much.struct_size = sizeof of_little;
    CHECK(mlff_get_statistics(samples, count, &of_little) == MLFF_OK);
    CHECK(mlff_get_statistics(samples + CAPACITY, count, &of_much) == MLFF_OK);
    CHECK(of_little.minimum >= 0 && of_much.minimum > 0 && of_much.median > of_little.median);
}

static void test_memory_watch(void) {
    enum { PIECE = 4 << 20, PIECES = 6 };
    mlff_memory_watch* watch = (mlff_memory_watch*)&failures;
    mlff_memory_report report;
    char* pieces[PIECES];
    size_t i;
    memset(&report, 0, sizeof report);
    CHECK(mlff_memory_watch_create("cpu", NULL) == MLFF_ERROR_ARGUMENT);
    for (i = 0; i < BAD_DEVICE_COUNT; ++i)
        CHECK(mlff_memory_watch_create(bad_devices[i], &watch) == expected_status(i) && watch == NULL);
    mlff_memory_watch_free(NULL);
    CHECK(mlff_memory_watch_read(NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_memory_watch_get_report(NULL, &report) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_memory_watch_create("cpu", &watch) == MLFF_OK);
    CHECK(mlff_memory_watch_get_report(watch, NULL) == MLFF_ERROR_ARGUMENT);
    CHECK(mlff_memory_watch_get_report(watch, &report) == MLFF_ERROR_ARGUMENT); /* struct_size 0 */
    report.struct_size = sizeof report;
    CHECK(mlff_memory_watch_get_report(watch, &report) == MLFF_ERROR_ARGUMENT); /* one reading */
    for (i = 0; i < PIECES; ++i) CHECK(mlff_memory_watch_read(watch) == MLFF_OK);
    CHECK(mlff_memory_watch_get_report(watch, &report) == MLFF_OK && report.reading_count == PIECES + 1);
    CHECK(report.is_leak == 0 && report.is_trend == 0 && report.growth_bytes < 1 << 20);
    mlff_memory_watch_free(watch);

    CHECK(mlff_memory_watch_create("cpu", &watch) == MLFF_OK);
    for (i = 0; i < PIECES; ++i) {
        pieces[i] = malloc(PIECE);
        CHECK(pieces[i] != NULL);
        if (pieces[i]) memset(pieces[i], 1 + (int)i, PIECE);
        CHECK(mlff_memory_watch_read(watch) == MLFF_OK);
    }
    CHECK(mlff_memory_watch_get_report(watch, &report) == MLFF_OK);
    CHECK(report.is_leak == 1 && report.is_trend == 1);
    CHECK(report.growth_bytes == report.last_bytes - report.first_bytes);
    CHECK(report.growth_bytes > PIECES * PIECE * 0.9 && report.growth_bytes < PIECES * PIECE * 2);
    CHECK(report.peak_bytes >= report.last_bytes);
    for (i = 0; i < PIECES; ++i) free(pieces[i]);
    mlff_memory_watch_free(watch);
    if (mlff_device_count() == 0) return;
    CHECK(mlff_memory_watch_create("cuda:0", &watch) == MLFF_OK && mlff_memory_watch_read(watch) == MLFF_OK);
    CHECK(mlff_memory_watch_get_report(watch, &report) == MLFF_OK && report.first_bytes > 0 && report.is_trend == 0);
    CHECK(report.peak_bytes >= report.first_bytes && report.peak_bytes >= report.last_bytes);
    mlff_memory_watch_free(watch);
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
    test_hessian();
    test_committee();
    test_trust(argv[1]);
    test_neighbors();
    test_log();
    test_devices();
    test_device_by_name();
    test_streams_and_timers();
    test_statistics();
    test_measure();
    test_memory_watch();
    printf("%d checks, %d failed\n", checks, failures);
    return failures == 0 && checks > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
