// SPDX-License-Identifier: MIT
// The folder for files that mlff creates for the user.
#pragma once

#include <cstdlib>
#include <string>

namespace mlff {

inline std::string environment_text(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// $XDG_DATA_HOME/mlff or ~/.local/share/mlff; "" if neither variable is set.
inline std::string user_data_folder() {
    if (const std::string data = environment_text("XDG_DATA_HOME"); data.starts_with('/'))
        return data + "/mlff";  // the XDG specification says to ignore relative paths
    if (const std::string home = environment_text("HOME"); !home.empty()) return home + "/.local/share/mlff";
    return "";
}

}  // namespace mlff
