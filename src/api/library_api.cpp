// SPDX-License-Identifier: MIT
#include <cstring>

#include "api/guard.h"
#include "core/log.h"
#include "gpu/runtime/gpu.h"

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

int32_t mlff_device_count(void) {
    int32_t count = 0;
    guarded([&] { count = static_cast<int32_t>(mlff::gpu_inventory().gpus.size()); });
    return count;
}

mlff_status mlff_device_get_info(int32_t index, mlff_device_info* info) {
    return guarded([&] {
        require(info, "info");
        require_size(info->struct_size, sizeof(mlff_device_info), "mlff_device_info");
        const mlff::GpuInventory& inventory = mlff::gpu_inventory();
        if (index < 0 || static_cast<size_t>(index) >= inventory.gpus.size())
            fail(Status::device, "there is no GPU ", index, ": ",
                 inventory.gpus.empty() ? inventory.why_none : "the index is too large");
        const mlff::Gpu& gpu = inventory.gpus[static_cast<size_t>(index)];
        std::strncpy(info->name, gpu.name.c_str(), sizeof info->name - 1);
        info->name[sizeof info->name - 1] = '\0';
        info->compute_capability = gpu.compute_capability;
        info->memory_bytes = gpu.memory_bytes;
    });
}

const char* mlff_device_why_none(void) {
    const char* reason = "";
    guarded([&] { reason = mlff::gpu_inventory().why_none.c_str(); });
    return reason;
}
