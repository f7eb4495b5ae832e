// SPDX-License-Identifier: MIT
#include "core/log.h"

#include <atomic>
#include <mutex>

namespace mlff {
namespace {

std::mutex log_mutex;  // one line at a time; after set_log_callback returns, the old callback is not called
LogCallback log_callback = nullptr;
void* log_user_data = nullptr;
std::atomic<int> log_limit{0};

}  // namespace

void set_log_callback(LogCallback callback, LogLevel most_verbose, void* user_data) {
    const std::lock_guard lock(log_mutex);
    log_callback = callback;
    log_user_data = user_data;
    log_limit = callback ? static_cast<int>(most_verbose) : 0;
}

bool is_logged(LogLevel level) { return static_cast<int>(level) <= log_limit.load(std::memory_order_relaxed); }

void log(LogLevel level, const std::string& message) {
    if (!is_logged(level)) return;
    const std::lock_guard lock(log_mutex);
    if (log_callback && static_cast<int>(level) <= log_limit)
        log_callback(static_cast<int>(level), message.c_str(), log_user_data);
}

}  // namespace mlff
