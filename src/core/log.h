// SPDX-License-Identifier: MIT
// Logging. Lines go only to the callback that the host program sets.
#pragma once

#include <string>

namespace mlff {

enum class LogLevel : int { warning = 1, info = 2, debug = 3 };  // the values of mlff_log_level

using LogCallback = void (*)(int level, const char* message, void* user_data);

void set_log_callback(LogCallback callback, LogLevel most_verbose, void* user_data);
void log(LogLevel level, const std::string& message);
bool is_logged(LogLevel level);  // lets callers skip formatting messages that are not logged

}  // namespace mlff
