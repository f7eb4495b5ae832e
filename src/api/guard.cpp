// SPDX-License-Identifier: MIT
#include "api/guard.h"

#include <cstring>
#include <new>

namespace mlff::api {
namespace {

thread_local char last_error[2048] = "";  // fixed: setting it must not fail

}  // namespace

void set_last_error(const char* message) noexcept {
    std::strncpy(last_error, message, sizeof last_error - 1);
    last_error[sizeof last_error - 1] = '\0';
}

mlff_status status_of_current_exception() noexcept {
    try {
        throw;
    } catch (const Error& error) {
        set_last_error(error.what());
        return static_cast<mlff_status>(error.status());
    } catch (const std::bad_alloc&) {
        set_last_error("out of memory");
        return MLFF_ERROR_MEMORY;
    } catch (const std::exception& error) {
        set_last_error(error.what());
        return MLFF_ERROR_INTERNAL;
    } catch (...) {
        set_last_error("an unknown exception");
        return MLFF_ERROR_INTERNAL;
    }
}

}  // namespace mlff::api

const char* mlff_last_error(void) { return mlff::api::last_error; }
