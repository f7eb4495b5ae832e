// SPDX-License-Identifier: MIT
#include "api/guard.h"
#include "core/log.h"

using mlff::fail;
using mlff::Status;
using namespace mlff::api;

const char* mlff_status_name(mlff_status status) {
    switch (status) {
        case MLFF_OK: return "MLFF_OK";
        case MLFF_ERROR_ARGUMENT: return "MLFF_ERROR_ARGUMENT";
        case MLFF_ERROR_FILE: return "MLFF_ERROR_FILE";
        case MLFF_ERROR_FORMAT: return "MLFF_ERROR_FORMAT";
        case MLFF_ERROR_UNSUPPORTED: return "MLFF_ERROR_UNSUPPORTED";
        case MLFF_ERROR_SYSTEM: return "MLFF_ERROR_SYSTEM";
        case MLFF_ERROR_DEVICE: return "MLFF_ERROR_DEVICE";
        case MLFF_ERROR_MEMORY: return "MLFF_ERROR_MEMORY";
        case MLFF_ERROR_INTERNAL: return "MLFF_ERROR_INTERNAL";
        default: return "unknown status";
    }
}

const char* mlff_version_string(void) { return MLFF_VERSION_STRING; }

int32_t mlff_version(void) { return MLFF_VERSION_NUMBER; }

int32_t mlff_abi_version(void) { return MLFF_ABI_VERSION; }

mlff_status mlff_set_log_callback(mlff_log_callback callback, mlff_log_level most_verbose, void* user_data) {
    return guarded([&] {
        if (callback && (most_verbose < MLFF_LOG_WARNING || most_verbose > MLFF_LOG_DEBUG))
            fail(Status::argument, "log level ", most_verbose, " is not one of mlff_log_level");
        mlff::set_log_callback(callback, static_cast<mlff::LogLevel>(most_verbose), user_data);
    });
}

mlff_status mlff_log_write(mlff_log_level level, const char* message) {
    return guarded([&] {
        require(message, "message");
        if (level < MLFF_LOG_WARNING || level > MLFF_LOG_DEBUG)
            fail(Status::argument, "log level ", level, " is not one of mlff_log_level");
        mlff::log(static_cast<mlff::LogLevel>(level), message);
    });
}
