/* SPDX-License-Identifier: MIT
 *
 * mlff: machine-learned force fields behind a small C interface (C99).
 *
 * Units: angstrom, eV, eV/angstrom, eV/angstrom^3. Arrays are row-major and belong to the caller.
 * Every call returns a status; after a failure mlff_last_error() says why, in one sentence.
 * The library never prints, aborts, exits, or changes the environment of the host program.
 *
 *     mlff_model *model;   mlff_session *session;   double energy, forces[3 * ATOMS];
 *     mlff_system water = {sizeof water, ATOMS, numbers, positions, NULL, {0, 0, 0}};
 *     mlff_result result = {sizeof result, &energy, forces};
 *     mlff_model_load("builtin", &model);
 *     mlff_session_create(model, NULL, &session);
 *     mlff_session_evaluate(session, &water, &result);
 */
#ifndef MLFF_MLFF_H
#define MLFF_MLFF_H

#include <stddef.h>
#include <stdint.h>

#if defined(MLFF_STATIC)
#define MLFF_API
#elif defined(__GNUC__)
#define MLFF_API __attribute__((visibility("default")))
#else
#define MLFF_API
#endif

/* Grows with every incompatible change; equals the SOVERSION of the shared library. */
#define MLFF_ABI_VERSION 0

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t mlff_status;
enum {
    MLFF_OK = 0,
    MLFF_ERROR_ARGUMENT = 1,    /* a NULL, a wrong struct_size, an option that makes no sense */
    MLFF_ERROR_FILE = 2,        /* a file cannot be opened, read or written */
    MLFF_ERROR_FORMAT = 3,      /* a file is damaged, hostile or not what it says it is */
    MLFF_ERROR_UNSUPPORTED = 4, /* understood, but this build or this model cannot do it */
    MLFF_ERROR_SYSTEM = 5, /* the atoms: an unknown element, a flat cell, a NaN position, a result that is not finite */
    MLFF_ERROR_DEVICE = 6, /* no such GPU, or the GPU or the process of a Python model failed */
    MLFF_ERROR_MEMORY = 7, /* out of memory; the session still works */
    MLFF_ERROR_INTERNAL = 8 /* a fault of ours: please report it */
};

/* A short name for a status ("MLFF_ERROR_FILE"); never NULL. */
MLFF_API const char* mlff_status_name(mlff_status status);
/* Why the last failing call on this thread failed. Never NULL; valid until the next failing call on it. */
MLFF_API const char* mlff_last_error(void);
/* "0.1.0", and 10000 * major + 100 * minor + patch. */
MLFF_API const char* mlff_version_string(void);
MLFF_API int32_t mlff_version(void);
/* The ABI of the library that was loaded; compare it with MLFF_ABI_VERSION. */
MLFF_API int32_t mlff_abi_version(void);

/* Log messages, off until a callback is set; NULL turns them off again. The callback may be called from
 * any thread that calls mlff, must not call mlff itself, and gets one line without a line feed. */
typedef int32_t mlff_log_level;
enum { MLFF_LOG_WARNING = 1, MLFF_LOG_INFO = 2, MLFF_LOG_DEBUG = 3 };
typedef void (*mlff_log_callback)(mlff_log_level level, const char* message, void* user_data);
MLFF_API mlff_status mlff_set_log_callback(mlff_log_callback callback, mlff_log_level most_verbose, void* user_data);
/* One line to that callback, for libraries on top of this one. */
MLFF_API mlff_status mlff_log_write(mlff_log_level level, const char* message);

/* ---- Models: read-only after loading; any number of threads and sessions may share one. ---- */

typedef struct mlff_model mlff_model;

typedef int32_t mlff_dtype;
enum { MLFF_DTYPE_FLOAT32 = 1, MLFF_DTYPE_FLOAT64 = 2 };

typedef struct mlff_model_info {
    size_t struct_size;     /* set to sizeof(mlff_model_info) before the call */
    double cutoff_angstrom; /* how far an atom sees in one layer */
    int32_t layer_count;    /* message-passing layers; 0 for a pair potential */
    int32_t element_count;  /* see mlff_model_get_elements */
    int32_t head_count;     /* see mlff_model_head_name; at least 1 */
    mlff_dtype dtype;       /* of the parameters in the file */
    int64_t parameter_count;
    int32_t is_runnable;      /* 1 if a session can be made; 0: mlff_model_why_not_runnable says why */
    int32_t descriptor_count; /* numbers for each atom in mlff_result.descriptors; 0: the model has none */
    int32_t member_count;     /* of a committee, whose results have a spread; 0: the model is none */
    double reach_angstrom;    /* how far the ghosts of a domain must reach: cutoff_angstrom, or more where terms of the
                               * model find their neighbours themselves; 0: not known */
    int32_t has_trust_meter;  /* 1: results may have expected_errors and novelties */
    double alarm_error;       /* eV/angstrom: above it an atom counts as outside, see docs/trust.md; 0 without a trust
                               * meter */
} mlff_model_info;

/* Loads a model: a path to a MACE file (.model, TorchScript archive), to a checkpoint of SevenNet (.pth), to a file of
 * Nequix (.nqx) or to our .safetensors container, to a PaiNN .safetensors file, "builtin" (the default: see `mlff model
 * list`), "analytic" (a pair potential for demonstrations), "self-test" (a small MACE model with seeded weights, to
 * test an installation), or the name of a model in the model cache (`mlff model add`), where there is no file of that
 * name. "A+B" is the sum of models, such as "X.model+d3:pbe"; "A,B,C" is a committee: its results are the mean of its
 * members, and have a spread. So is a file that lists members. docs/command-line.md has all names. Nothing in a file is
 * executed, but names that begin with "python:" run Python programs: docs/python-teachers.md. On failure *model is
 * NULL. */
MLFF_API mlff_status mlff_model_load(const char* path, mlff_model** model);
/* The path of a model in the model cache, after its size and SHA-256 were found to be those of the index: writes at
 * most `capacity` bytes with the zero at the end; MLFF_ERROR_ARGUMENT if that is too few. */
MLFF_API mlff_status mlff_model_cache_path(const char* name, char* path, int64_t capacity);
/* The name of a model with dispersion (DFT-D3) added to it, or to each member of a committee: "X.model" and
 * "pbe:zero" give "X.model+d3:pbe:zero". Writes at most `capacity` bytes with the zero at the end;
 * MLFF_ERROR_ARGUMENT if that is too few, or if the model has dispersion already. */
MLFF_API mlff_status mlff_model_d3_name(const char* name, const char* d3, char* sum, int64_t capacity);
/* Sessions keep what they need: a model may be freed before its sessions. NULL is allowed. */
MLFF_API void mlff_model_free(mlff_model* model);
MLFF_API mlff_status mlff_model_get_info(const mlff_model* model, mlff_model_info* info);
/* Atomic numbers the model knows, ascending; writes at most `capacity` of them, the full count to *count. */
MLFF_API mlff_status mlff_model_get_elements(const mlff_model* model, int32_t* elements, int64_t capacity,
                                             int64_t* count);
/* These strings live as long as the model; NULL if the model is NULL or the index is out of range. */
MLFF_API const char* mlff_model_head_name(const mlff_model* model, int32_t index);
MLFF_API const char* mlff_model_class_name(const mlff_model* model);       /* "ScaleShiftMACE" */
MLFF_API const char* mlff_model_why_not_runnable(const mlff_model* model); /* "" if it is runnable */
MLFF_API const char* mlff_model_energy_unit(const mlff_model* model);      /* "eV" */
MLFF_API const char* mlff_model_length_unit(const mlff_model* model);      /* "angstrom" */
/* All that is known about the model, as JSON; the keys are those of `mlff model info --json -`. */
MLFF_API const char* mlff_model_description_json(const mlff_model* model);

/* ---- Sessions: scratch memory, threads and device stream; one thread at a time. ----
 *
 * A process that is made by fork() has no threads but one: in it, sessions of several threads that were made before are
 * refused with MLFF_ERROR_ARGUMENT (and may be freed). Make one in each process. */

typedef struct mlff_session mlff_session;

typedef int32_t mlff_precision;
enum {
    MLFF_PRECISION_AUTO = 0,  /* mixed where the model has it, else fp64 */
    MLFF_PRECISION_MIXED = 1, /* features and messages in float; geometry, energies and forces in double */
    MLFF_PRECISION_FP64 = 2,  /* all in double */
    MLFF_PRECISION_FP32 = 3,  /* all in float; Python models only */
    MLFF_PRECISION_FAST = 4 /* mixed, with half-precision products and, for PaiNN, rows; MACE and PaiNN on GPUs only */
};

typedef struct mlff_session_options { /* all zero but struct_size = the defaults */
    size_t struct_size;
    const char* device; /* "auto", "cpu", "reference" (plain fp64 loops), "cuda", "cuda:1"; NULL = "auto" */
    mlff_precision precision;
    int32_t thread_count;           /* 0 = one for each core this process may use */
    const char* head;               /* one of the model's heads; NULL = the only one */
    double neighbor_skin_angstrom;  /* > 0: keep neighbour candidates while no pair can have been missed; 0 = the
                                     * default: none on the CPU, 1 on the GPU */
    int32_t exact_radial;           /* 1: no tables of radial functions; slower, and exact to rounding in fp64 */
    int64_t gpu_memory_limit_bytes; /* the most that atoms and edges may take on a GPU, beside the model;
                                     * 0 = what is free */
    int32_t is_trajectory;          /* 1: atoms move little from call to call, as in dynamics. The default skin is
                                     * then 0.5 on the CPU (1 on a GPU in any case) */
} mlff_session_options;

typedef struct mlff_session_info {
    size_t struct_size;
    mlff_precision precision; /* what is used, never AUTO */
    int32_t thread_count;
    int64_t evaluation_count;     /* systems evaluated so far */
    int64_t neighbor_build_count; /* neighbour searches from scratch; the difference was saved by the skin */
    int32_t has_trust_meter;      /* 1: results may have expected_errors and novelties. 0 also where the meter of the
                                   * model was fitted to another head */
} mlff_session_info;

/* `options` may be NULL. On failure *session is NULL. */
MLFF_API mlff_status mlff_session_create(const mlff_model* model, const mlff_session_options* options,
                                         mlff_session** session);
MLFF_API void mlff_session_free(mlff_session* session);
MLFF_API mlff_status mlff_session_get_info(const mlff_session* session, mlff_session_info* info);
/* "cpu" or "cuda:0", and why it was chosen; live as long as the session. NULL if the session is NULL. */
MLFF_API const char* mlff_session_device(const mlff_session* session);
MLFF_API const char* mlff_session_device_reason(const mlff_session* session);

/* Input atoms. */
typedef struct mlff_system {
    size_t struct_size;            /* = sizeof(mlff_system) */
    int64_t atom_count;            /* 0 is allowed: energy 0 */
    const int32_t* atomic_numbers; /* [atom_count] */
    const double* positions;       /* [atom_count][3]; atoms may lie outside the cell */
    const double* cell;            /* [3][3], one lattice vector per row; NULL if nothing is periodic */
    uint8_t periodic[3];           /* 1 where that row of `cell` repeats; other rows may be zero */
    double total_charge;           /* for models that take it, else ignored, with a warning in the log, once a model */
    double spin_multiplicity;      /* 2S + 1; 0 means not given (1) */
} mlff_system;

/* Outputs. NULL = not wanted. Nothing is written on failure, but for one: where a result is not finite, all are there,
 * and MLFF_ERROR_SYSTEM names the first that is not. */
typedef struct mlff_result {
    size_t struct_size;    /* = sizeof(mlff_result) */
    double* energy;        /* [1] */
    double* forces;        /* [atom_count][3] */
    double* stress;        /* [6]: xx yy zz yz xz xy = (dE/dstrain) / volume; needs a periodic direction */
    double* virial;        /* [3][3] = -dE/dstrain */
    double* atom_energies; /* [atom_count] */
    double* atom_virials;  /* [atom_count][3][3]; their sum is the virial */
    double* descriptors;   /* [atom_count][descriptor_count of the model]: invariant features of every layer */
    /* The spread of a committee (mlff_model_info.member_count > 0): standard deviations over its members. Not in device
     * memory and not of domains: MLFF_ERROR_UNSUPPORTED. Domains have deviations instead, see below. */
    double* sigma_energy_per_atom; /* [1], eV: of the energy, divided by atom_count */
    double* sigma_forces;          /* [atom_count]: sqrt of the mean of |force of a member - mean force|^2 */
    double* sigma_max_force;       /* [1]: the largest of sigma_forces; 0 without atoms */
    /* Of a committee, of domains only (MLFF_ERROR_ARGUMENT for whole systems): see mlff_session_evaluate_domain */
    double* energy_deviations; /* [member_count - 1], eV */
    double* force_deviations;  /* [member_count - 1][owned_count + ghost_count][3] */
    /* Of a model with a trust meter (mlff_session_info.has_trust_meter). Not in device memory: MLFF_ERROR_UNSUPPORTED.
     * Of domains see mlff_session_evaluate_domain. */
    double* expected_errors; /* [atom_count], eV/angstrom: the probable error of the force on the atom */
    double* novelties;       /* [atom_count]: distance from the training atoms; above 1: unlike anything in training */
} mlff_result;

MLFF_API mlff_status mlff_session_evaluate(mlff_session* session, const mlff_system* system, mlff_result* result);
/* The same without a copy to the host, for sessions on a GPU (MLFF_ERROR_UNSUPPORTED on others). `positions` and every
 * array of `result` are memory of the session's GPU, or managed memory; a pointer of the host is refused by name.
 * `atomic_numbers`, `cell` and `periodic` stay on the host: they choose tables, grids and launch sizes there, and
 * seldom change. The work begins when `stream` (a cudaStream_t; NULL = the default stream, none that is being captured)
 * has done what was asked of it before, and the results are complete when the call returns. A stress needs three
 * lattice vectors. An energy or virial that is not finite is an error; other results stay on the GPU and are not looked
 * at. */
MLFF_API mlff_status mlff_session_evaluate_device(mlff_session* session, const mlff_system* system, mlff_result* result,
                                                  void* stream);
/* A ragged batch: `count` systems of any sizes and as many results. All systems are checked before the first is
 * computed, and the error names the system; so a bad system leaves all results unwritten. What shows only while
 * they are computed (atoms at the same place, too little memory, a result that is not finite) leaves results of
 * systems before it written. */
MLFF_API mlff_status mlff_session_evaluate_batch(mlff_session* session, int64_t count, const mlff_system* systems,
                                                 mlff_result* results);

/* ---- Second derivatives of the energy: central differences of forces, evaluated as batches. ---- */

typedef struct mlff_hessian_options { /* all zero but struct_size: the defaults */
    size_t struct_size;
    double step_angstrom;               /* 0: 2e-4 */
    double symmetry_tolerance_angstrom; /* molecules: displacements that symmetry makes equal are evaluated once; atoms
                                         * may be so far from symmetric places. 0: 1e-6; below 0: no symmetry */
} mlff_hessian_options;

typedef struct mlff_hessian_report { /* in eV/angstrom^2 where nothing else is said */
    size_t struct_size;
    double step_error;     /* of the finite step: the largest that a few displacements showed */
    double asymmetry;      /* the largest difference between a number and its mirror image, before it was removed */
    double sum_rule_error; /* the largest sum over atoms of a row, which is 0 in theory */
    int64_t evaluation_count;
    int64_t operation_count; /* symmetry operations that were used; 1: only the identity */
    int32_t is_extrapolated; /* 1: step_error was above 3e-6 of the largest number, so all displacements were also
                              * evaluated with twice the step, and the leading error removed */
} mlff_hessian_report;

/* hessian: [3 atom_count][3 atom_count], eV/angstrom^2, symmetric; atom i has the rows 3 i to 3 i + 2. `options` and
 * `report` may be NULL. The session must have MLFF_PRECISION_FP64 (else MLFF_ERROR_ARGUMENT). Nothing is written after
 * a failure. */
MLFF_API mlff_status mlff_session_hessian(mlff_session* session, const mlff_system* system,
                                          const mlff_hessian_options* options, double* hessian,
                                          mlff_hessian_report* report);

/* ---- Domains: parts of one system that several processes evaluate at the same time, each with its own session. ----
 *
 * A domain has its own atoms and ghosts. Ghosts are copies of atoms of other domains, and periodic images, within the
 * cutoff of an own atom (within mlff_model_info.reach_angstrom, where that is more). One cutoff of ghosts is enough for
 * any number of layers: between layers the processes exchange features of atoms. A row is what one atom sends: its
 * features, or their gradients. */

/* Asks the caller to exchange rows of `row_bytes` bytes with other domains. Return 0; any other value ends the
 * evaluation with MLFF_ERROR_ARGUMENT.
 *
 * `sent` has sent_count rows, those of the atoms mlff_domain.sent, in that order. Rows for one destination are
 * contiguous if `sent` is grouped by destination. Write received_count rows to `received`, in the order that
 * mlff_domain.ghost_source refers to, before the function returns. Both arrays are host memory, even if the session is
 * on a GPU (but see mlff_row_transport). They belong to the session, are valid during the call only, and may be NULL if
 * there are no rows.
 *
 * The function is called on the thread that evaluates. If all domains of a system ask for the same results, it is
 * called equally often in each, with rows of the same size, also in a domain without atoms. */
typedef int32_t (*mlff_exchange_rows)(const void* sent, void* received, size_t row_bytes, void* user_data);

typedef int32_t mlff_row_transport;
enum {
    MLFF_ROWS_THROUGH_HOST = 0, /* `exchange` gets host memory */
    MLFF_ROWS_ON_DEVICE = 1,    /* for sessions on GPUs: `exchange` gets GPU memory, for an MPI that takes it */
    MLFF_ROWS_SHARED = 2,       /* for sessions on GPUs of one machine: each reads the rows in the memory of the others.
                                 * `exchange` gets a few bytes of host memory, and returns after all domains that this
                                 * one sends to or receives from have called it. Every session must reach every other,
                                 * see mlff_session_reach_gpu */
    MLFF_ROWS_IN_WINDOW = 3     /* the same, but rows go through pinned host memory that the processes share: for GPUs
                                 * that cannot read each other's memory */
};

typedef struct mlff_domain {
    size_t struct_size;  /* = sizeof(mlff_domain) */
    int64_t owned_count; /* 0 is allowed */
    int64_t ghost_count;
    const int32_t* atomic_numbers; /* [owned_count + ghost_count] */
    const double* positions;       /* [owned_count + ghost_count][3] */
    const int64_t* first;          /* [owned_count + 1]: the neighbours of atom i are neighbors[first[i]] ...
                                    * neighbors[first[i + 1] - 1] */
    const int32_t* neighbors;      /* pairs of own atoms must be there in both directions; pairs beyond the cutoff are
                                    * ignored, so that a list with a skin may be kept */
    int64_t sent_count;            /* rows that other domains receive from this one; may be 0 */
    const int32_t* sent;    /* [sent_count]: own atoms; an atom that goes to several domains is listed once for each */
    int64_t received_count; /* rows that come from other domains; an atom with several ghosts here may come once */
    const int32_t* ghost_source; /* [ghost_count]: 0 or more: which of the rows received is that of the ghost; -1 - i:
                                    it is an image of own atom i */
    mlff_exchange_rows exchange;
    void* user_data;
    double total_charge; /* of the whole system, as in mlff_system */
    double spin_multiplicity;
    int64_t list_version; /* 0: no promise. If it is the value of the session's last domain, the caller promises that
                           * all counts, `first`, `neighbors`, `sent` and `ghost_source` are unchanged: they are not
                           * checked or copied to a GPU again. Positions and atomic numbers may differ */
    mlff_row_transport row_transport; /* the same for all domains; with MLFF_ROWS_SHARED or _IN_WINDOW, change
                                       * list_version in all domains together */
    const double* cell;  /* [3][3], lattice vectors of the whole system as in mlff_system; NULL: not given. Models with
                          * a cutoff do not use it: periodic images are ghosts */
    uint8_t periodic[3]; /* 1 where that row of `cell` repeats */
    mlff_exchange_rows exchange_back; /* NULL: not given; otherwise give it in all domains. The other way round: `sent`
                                       * has received_count rows, each for the domain that it came from in `exchange`;
                                       * write sent_count rows to `received`. MACE on GPUs in mixed precision then
                                       * exchanges smaller rows */
} mlff_domain;

/* Evaluates one domain. `energy`, `virial`, `atom_energies` [owned_count] and `descriptors` are the domain's share: sum
 * them over all domains. `forces` and `atom_virials` also have entries for ghosts: add these to the atoms that the
 * ghosts copy. `stress` must be NULL: a domain has no volume.
 *
 * The spread of a committee comes from deviations, which are shares as well: add `energy_deviations` of all domains, as
 * energies, and `force_deviations` of ghosts to the atoms that they copy, as forces. Then sigma_energy_per_atom is
 * sqrt(sum over k of energy_deviations[k]^2) / number of atoms, and sigma_forces[i] is
 * sqrt(sum over k of |force_deviations[k][i]|^2), for k from 0 to member_count - 2.
 *
 * `expected_errors` [owned_count] and `novelties` [owned_count] are those of own atoms in the whole system: there is
 * nothing to add. Expected errors take one more exchange, of host memory on GPUs too: ask for them in all domains, with
 * a pointer that is not NULL also where owned_count is 0. MLFF_ROWS_ON_DEVICE does not bring them
 * (MLFF_ERROR_UNSUPPORTED).
 *
 * Works for all native models, and for sums and committees of them: on device "cpu", and on GPUs for models that run
 * there. Python models are MLFF_ERROR_UNSUPPORTED. All domains of a system need the same
 * kind of device and the same precision. After a failure, results may be written in part, and other domains may wait
 * for this one in `exchange`: end them too. */
MLFF_API mlff_status mlff_session_evaluate_domain(mlff_session* session, const mlff_domain* domain,
                                                  mlff_result* result);

/* For MLFF_ROWS_SHARED and, with mlff_session_get_window_address, for MLFF_ROWS_IN_WINDOW. Each process sends the
 * address of its session to all others, and tries whether its own session reaches theirs: MLFF_OK, or MLFF_ERROR_DEVICE
 * and the reason. The memory stays open until the session that reached it is freed. */
typedef struct mlff_gpu_address {
    size_t struct_size;       /* = sizeof(mlff_gpu_address) */
    unsigned char bytes[128]; /* send them to the other processes as they are */
} mlff_gpu_address;
MLFF_API mlff_status mlff_session_get_gpu_address(
    mlff_session* session, mlff_gpu_address* address); /* MLFF_ERROR_UNSUPPORTED if it is on no GPU */
MLFF_API mlff_status mlff_session_get_window_address(mlff_session* session, mlff_gpu_address* address);
MLFF_API mlff_status mlff_session_reach_gpu(mlff_session* session, const mlff_gpu_address* address);

/* ---- Neighbour lists, for codes that want the search alone. ---- */

typedef struct mlff_neighbors mlff_neighbors;

typedef struct mlff_neighbor_options { /* all zero but struct_size and cutoff = a full list, all cores */
    size_t struct_size;
    double cutoff_angstrom; /* pairs with distance < cutoff */
    double skin_angstrom;   /* candidates are kept up to cutoff + skin and reused while that is exact */
    int32_t half;           /* 1: each pair once, else both directions */
    int32_t thread_count;   /* 0 = all cores */
    int32_t want_shifts, want_vectors, want_distances, want_reverse; /* 1 = fill that array */
} mlff_neighbor_options;

/* Edges grouped by receiving atom: those of atom i are first[i] ... first[i + 1] - 1. The arrays belong to
 * the handle and live until its next update. Arrays that were not wanted are NULL. */
typedef struct mlff_neighbor_view {
    size_t struct_size;
    int64_t atom_count, edge_count;
    const int64_t* first;    /* [atom_count + 1] */
    const int32_t* sender;   /* [edge_count], the neighbour */
    const int32_t* shifts;   /* [edge_count][3]: the neighbour sits at positions[sender] + shifts . cell */
    const double* vectors;   /* [edge_count][3], from the receiver to the neighbour's image */
    const double* distances; /* [edge_count] */
    const int64_t* reverse;  /* [edge_count], index of the same pair seen from the other end; full lists only */
    int32_t was_reused;      /* 1 if the last update kept its candidates */
} mlff_neighbor_view;

MLFF_API mlff_status mlff_neighbors_create(const mlff_neighbor_options* options, mlff_neighbors** neighbors);
MLFF_API void mlff_neighbors_free(mlff_neighbors* neighbors);
/* atomic_numbers may be NULL here. */
MLFF_API mlff_status mlff_neighbors_update(mlff_neighbors* neighbors, const mlff_system* system);
MLFF_API mlff_status mlff_neighbors_get_view(const mlff_neighbors* neighbors, mlff_neighbor_view* view);

/* ---- Devices. ----
 *
 * Where a function takes the name of a device, it is "cpu", "cuda", "cuda:1", or "auto": the first GPU if there is one,
 * else the CPU. Streams, timers and memory watches serve one thread at a time. */

typedef struct mlff_device_info {
    size_t struct_size;
    char name[128];
    int32_t compute_capability; /* 90 for 9.0; 0: the CPU */
    int64_t memory_bytes;       /* for the CPU: what this process may use */
    /* 0 or "": not known, or the device has none */
    int64_t l2_cache_bytes;                         /* for the CPU: of one core */
    int64_t shared_memory_per_block_bytes;          /* the most that a block may ask for */
    int64_t shared_memory_per_multiprocessor_bytes; /* GPUs only, as are the others with "multiprocessor" */
    double memory_bandwidth;                        /* bytes/s, of memory clock and bus width: no program reaches it */
    int32_t multiprocessor_count;
    int32_t clock_kHz; /* the highest of multiprocessors or cores */
    int32_t memory_clock_kHz;
    int32_t memory_bus_bits;
    int32_t cuda_runtime_version; /* 13000 for 13.0: that of this library; GPUs only */
    int32_t cuda_driver_version;  /* the newest that the driver supports; GPUs only */
    int32_t core_count;           /* that this process may use; the CPU only */
    char kernels[20];             /* the instruction set that is used, "avx512"; the CPU only */
} mlff_device_info;

/* GPUs that this library can use: 0 without one, without a driver, or in a build without CUDA. */
MLFF_API int32_t mlff_device_count(void);
MLFF_API mlff_status mlff_device_get_info(int32_t index, mlff_device_info* info);
/* The same for a device by its name, which may be the CPU. */
MLFF_API mlff_status mlff_device_describe(const char* device, mlff_device_info* info);
/* Why mlff_device_count() is 0; "" if it is not. */
MLFF_API const char* mlff_device_why_none(void);

typedef struct mlff_device_memory { /* in bytes, now; -1: not known */
    size_t struct_size;
    int64_t
        total_bytes; /* of the CPU: of the machine, or of a control group (a container, a batch job) if that is less */
    int64_t free_bytes;    /* what this process could still take */
    int64_t used_bytes;    /* total - free: by all processes */
    int64_t process_bytes; /* resident memory of this process and its child processes; -1 on GPUs: CUDA does not say */
} mlff_device_memory;
MLFF_API mlff_status mlff_device_get_memory(const char* device, mlff_device_memory* memory);
/* Waits until a GPU has done all that this process asked of it. Nothing is asked of the CPU. */
MLFF_API mlff_status mlff_device_synchronize(const char* device);

/* A stream for work of the caller on a GPU, which does not wait for the default stream. Programs that also run without
 * a GPU may make one on the CPU; its handle is NULL, and it never has work. */
typedef struct mlff_stream mlff_stream;
MLFF_API mlff_status mlff_stream_create(const char* device, mlff_stream** stream);
MLFF_API void mlff_stream_free(mlff_stream* stream);
/* A cudaStream_t, for mlff_session_evaluate_device, mlff_timer_create and other libraries. It lives as long as the
 * stream. */
MLFF_API void* mlff_stream_handle(const mlff_stream* stream);
MLFF_API mlff_status mlff_stream_synchronize(mlff_stream* stream);

/* Time between two moments: by the steady clock of the CPU, or by events in a stream of a GPU, which take place when
 * all earlier work in it has finished. */
typedef struct mlff_timer mlff_timer;
/* `stream` is a cudaStream_t of that GPU; NULL = its default stream, and for the CPU. */
MLFF_API mlff_status mlff_timer_create(const char* device, void* stream, mlff_timer** timer);
MLFF_API void mlff_timer_free(mlff_timer* timer);
MLFF_API mlff_status mlff_timer_start(mlff_timer* timer); /* begins anew if it was started before */
MLFF_API mlff_status mlff_timer_stop(mlff_timer* timer);
/* From start to stop; waits for the stop on a GPU. */
MLFF_API mlff_status mlff_timer_get_seconds(const mlff_timer* timer, double* seconds);

/* ---- Measurements: what `mlff bench` uses, for any function. ---- */

/* Calls functions repeatedly. All zero but struct_size = the defaults. */
typedef struct mlff_measure_options {
    size_t struct_size;
    int32_t warm_up_calls;  /* at least this many calls of each function are not counted: 0 = 3; -1 = none */
    double warm_up_seconds; /* for at least this long: 0 = 0.2; -1 = no longer than the calls take */
    int32_t least_samples;  /* 0 = 20 */
    int32_t most_samples;   /* 0 = 1000, or least_samples if that is more */
    double seconds;         /* for each function: then sampling ends, but for least_samples. 0 = 1; -1: only these */
    const char* device;     /* wait for this device after each call, within the time that is measured; NULL = do not */
} mlff_measure_options;

/* Returns 0; any other value ends the measurement with MLFF_ERROR_ARGUMENT. */
typedef int32_t (*mlff_measured_function)(void* user_data);

/* Measures `function_count` functions, each with its `user_data`. Each warms up alone; then they take turns, in the
 * opposite order every second round, so that disturbances affect all of them alike. Where there are several, one that
 * takes less than 20 ms is called once more before it is timed, so that it finds its data in the caches.
 * Writes *sample_count times in seconds for each, to samples[0 ...], samples[capacity ...] and so on. `capacity` limits
 * the number of samples; it must not be below least_samples. `options` may be NULL. */
MLFF_API mlff_status mlff_measure(int64_t function_count, const mlff_measured_function* functions,
                                  void* const* user_data, const mlff_measure_options* options, double* samples,
                                  int64_t capacity, int64_t* sample_count);

typedef struct mlff_statistics {
    size_t struct_size;
    int64_t sample_count;
    double mean, median;
    double deviation; /* standard deviation, with divisor sample_count - 1; 0 for one sample */
    double minimum, maximum;
    double p95, p99;                /* 95 % and 99 % of the samples are below */
    double median_low, median_high; /* 95 % confidence interval of the median, by bootstrap; always the same for the
                                     * same samples */
    double per_second;              /* 1 / median: calls per second, if samples are seconds; 0 if the median is 0 */
    int64_t outlier_count;          /* samples more than 3.5 (robust) standard deviations from the median */
} mlff_statistics;

/* Of samples in any unit. MLFF_ERROR_ARGUMENT if there is none, or one is not finite. */
MLFF_API mlff_status mlff_get_statistics(const double* samples, int64_t sample_count, mlff_statistics* statistics);
/* median(numerators) / median(denominators) and its 95 % confidence interval. Samples with the same index were taken
 * side by side, as those of mlff_measure: a disturbance of both does not widen the interval. */
MLFF_API mlff_status mlff_get_median_ratio(const double* numerators, const double* denominators, int64_t sample_count,
                                           double* ratio, double* low, double* high);

/* Watches memory: resident memory of this process and its child processes ("cpu"), or what is in use on a GPU, by any
 * process. */
typedef struct mlff_memory_watch mlff_memory_watch;
typedef struct mlff_memory_report {
    size_t struct_size;
    int64_t reading_count;
    int64_t first_bytes, last_bytes;
    int64_t peak_bytes;   /* the most in use since the watch began. On a GPU, and where the kernel does not keep a peak,
                           * only readings count */
    int64_t growth_bytes; /* last - first */
    int32_t is_trend;     /* 1: of 5 or more readings, more than half were above the one before, by 256 KiB in total */
    int32_t is_leak;      /* 1: a trend, or growth by more than 10 MB */
} mlff_memory_report;
/* Begins with a first reading. For the CPU, returns freed memory to the system and lets the peak of this process
 * (VmHWM) begin anew: the later of two watches decides. */
MLFF_API mlff_status mlff_memory_watch_create(const char* device, mlff_memory_watch** watch);
MLFF_API void mlff_memory_watch_free(mlff_memory_watch* watch);
/* One more reading. To find leaks: after each of several equal pieces of work, the first of which has warmed up. */
MLFF_API mlff_status mlff_memory_watch_read(mlff_memory_watch* watch);
/* Of the readings so far; at least two are needed. */
MLFF_API mlff_status mlff_memory_watch_get_report(mlff_memory_watch* watch, mlff_memory_report* report);

#ifdef __cplusplus
}
#endif

#endif
