// SPDX-License-Identifier: MIT
// Where files of the user's are kept that programs make.
#pragma once

#include <cstdlib>
#include <string>

namespace mlff {

inline std::string environment_text(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// $XDG_DATA_HOME/mlff or ~/.local/share/mlff; "" if the environment says neither.
inline std::string user_data_folder() {
    if (const std::string data = environment_text("XDG_DATA_HOME"); data.starts_with('/'))
        return data + "/mlff";  // relative ones are to be ignored
    if (const std::string home = environment_text("HOME"); !home.empty()) return home + "/.local/share/mlff";
    return "";
}

}  // namespace mlff
