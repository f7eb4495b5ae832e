// SPDX-License-Identifier: MIT
// Where exceptions stop: every C function runs its body in here.
#pragma once

#include <string>

#include "core/error.h"
#include "mlff/mlff.h"

namespace mlff::api {

// The message behind mlff_last_error() on this thread.
void set_last_error(const char* message) noexcept;

// The status of the exception that is being handled; also sets the last error.
mlff_status status_of_current_exception() noexcept;

template <class Body>
mlff_status guarded(Body&& body) noexcept {
    try {
        body();
        return MLFF_OK;
    } catch (...) {
        return status_of_current_exception();
    }
}

template <class T>
void require(const T* pointer, const char* name) {
    if (!pointer) fail(Status::argument, name, " is NULL");
}

// A caller compiled against an older header passes a smaller struct, one against a newer header a larger one. `needed`
// is the size of the struct in its first version.
inline void require_size(size_t struct_size, size_t needed, const char* name) {
    if (struct_size < needed)
        fail(Status::argument, name, ".struct_size is ", struct_size, ", expected sizeof(", name, ") = ", needed);
}

}  // namespace mlff::api
