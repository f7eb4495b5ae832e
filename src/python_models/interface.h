// SPDX-License-Identifier: MIT
// What libmlff_python.so gives to those that load it: libmlff in the host's own process, or the program
// mlff-python-host in one of its own. Plain C types only, and a version that both sides compare: libmlff itself never
// links Python.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mlff::python {

constexpr uint32_t kInterfaceVersion = 1;
constexpr const char* kInterfaceSymbol = "mlff_python_interface";

extern "C" {

// Where a call writes its text: the reply (JSON) if it returns 0, else the message of the error.
struct TextSink {
    void (*write)(void* to, const char* text, size_t size);
    void* to;
};

// Lines of Python's standard output, standard error, warnings and logging; levels as in mlff.h. May be called from any
// thread.
typedef void (*LogLine)(void* to, int level, const char* line);

struct SystemArrays {
    int64_t atom_count;
    const int32_t* atomic_numbers;  // [atom_count]
    const double* positions;        // [atom_count][3], angstrom
    double cell[9];                 // lattice vectors in rows; zero where there is none
    uint8_t periodic[3];
    double total_charge;
    double spin_multiplicity;
};

struct ResultArrays {       // nullptr = not wanted
    double* energy;         // [1], eV
    double* forces;         // [atom_count][3], eV/angstrom
    double* virial;         // [9] = -dE/dstrain, eV
    double* atom_energies;  // [atom_count], eV
};

// Every function may be called from any thread, and returns 0 or a value of mlff_status.
struct Interface {
    uint32_t version;            // kInterfaceVersion
    const char* python_version;  // "3.11"
    // Makes the interpreter of this process that of the environment (a folder with bin/python3), or finds it so.
    // `options`: {"environment": path}
    int (*start)(const char* options, LogLine log, void* log_to, TextSink text);
    // Loads the model of a request (see teachers.py) and describes it.
    int (*load)(const char* request, void** teacher, TextSink text);
    // Chooses device, precision and head. Needed before evaluate().
    int (*prepare)(void* teacher, const char* request, TextSink text);
    int (*evaluate)(void* teacher, const struct SystemArrays* system, const struct ResultArrays* results,
                    TextSink text);
    void (*unload)(void* teacher);
};

typedef const Interface* InterfaceFunction(void);
}

}  // namespace mlff::python
