// SPDX-License-Identifier: MIT
// The interface of libmlff_python.so, which is loaded by libmlff in the host's process, or by mlff-python-host in a
// separate one. It has only plain C types, and a version that both sides compare: libmlff itself never links Python.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mlff::python {

constexpr uint32_t kInterfaceVersion = 1;
constexpr const char* kInterfaceSymbol = "mlff_python_interface";

extern "C" {

// Receives the text of a call: the reply (JSON) if it returns 0, else the error message.
struct TextSink {
    void (*write)(void* to, const char* text, size_t size);
    void* to;
};

// Receives lines from Python's standard output, standard error, warnings and logging; levels as in mlff.h. May be
// called from any thread.
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

// Every function may be called from any thread. Returns 0 or a value of mlff_status.
struct Interface {
    uint32_t version;            // kInterfaceVersion
    const char* python_version;  // "3.11"
    // Starts the interpreter of this process in the environment (a folder with bin/python3), or checks that it already
    // runs there. `options`: {"environment": path}
    int (*start)(const char* options, LogLine log, void* log_to, TextSink text);
    // Loads the model of a request (see teachers.py), and describes it.
    int (*load)(const char* request, void** teacher, TextSink text);
    // Selects device, precision and head. Required before evaluate().
    int (*prepare)(void* teacher, const char* request, TextSink text);
    int (*evaluate)(void* teacher, const struct SystemArrays* system, const struct ResultArrays* results,
                    TextSink text);
    void (*unload)(void* teacher);
};

typedef const Interface* InterfaceFunction(void);
}

}  // namespace mlff::python
