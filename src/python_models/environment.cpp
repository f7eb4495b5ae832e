// SPDX-License-Identifier: MIT
#include "python_models/environment.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"

namespace mlff::python {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// The folder of libmlff.so, or of the program that contains libmlff.
fs::path folder_of_library() {
    Dl_info where{};
    std::error_code ignored;
    if (!dladdr(reinterpret_cast<void*>(&folder_of_library), &where) || !where.dli_fname) return ".";
    // A program's own name may be relative to its starting folder.
    const bool is_program = !std::string(where.dli_fname).ends_with(".so") &&
                            std::string(where.dli_fname).find(".so.") == std::string::npos;
    const fs::path file =
        is_program ? fs::read_symlink("/proc/self/exe", ignored) : fs::canonical(where.dli_fname, ignored);
    return file.parent_path();
}

bool is_environment(const fs::path& folder) { return access((folder / "bin" / "python3").c_str(), X_OK) == 0; }

struct Search {
    std::string looked_at;  // for the error message
    fs::path found;

    void look(const std::string& origin, const fs::path& folder) {
        if (!found.empty()) return;
        looked_at += concat(looked_at.empty() ? "" : ", ", origin, " (", folder.string(), ")");
        if (is_environment(folder)) found = folder;
    }
    void look_for_name(const std::string& origin, const std::string& name) {
        for (const fs::path& folder : environment_folders()) look(origin, folder / name);
    }
    void look_for_name_or_path(const std::string& origin, const std::string& text) {
        if (text.find('/') == std::string::npos)
            look_for_name(origin, text);
        else
            look(origin, text);
    }
};

}  // namespace

std::vector<fs::path> environment_folders() {
    std::vector<fs::path> folders;
    const auto add = [&](const fs::path& prefix) {
        fs::path folder = (prefix / MLFF_ENVIRONMENTS_DIR).lexically_normal();
        if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(std::move(folder));
    };
    const fs::path here = folder_of_library();
    std::error_code ignored;
    // libmlff.so and bin/mlff are at different depths below the prefix.
    for (const char* up : {MLFF_PREFIX_FROM_LIBRARY, MLFF_PREFIX_FROM_PROGRAM})
        if (fs::is_directory(here / up / MLFF_ENVIRONMENTS_DIR, ignored)) add(here / up);
    if (const std::string home = variable("HOME"); !home.empty()) add(fs::path(home) / ".local");
    add("/usr/local");
    return folders;
}

fs::path find_environment(const ModelName& model) {
    Search search;
    if (!model.environment.empty()) {
        search.look_for_name_or_path("env=" + model.environment, model.environment);
    } else if (const std::string wanted = variable("MLFF_PYTHON_ENV"); !wanted.empty()) {
        search.look_for_name_or_path("MLFF_PYTHON_ENV", wanted);
    } else {
        if (!model.default_environment.empty())
            search.look_for_name("the environment '" + model.default_environment + "' of scripts/install",
                                 model.default_environment);
        if (model.default_environment == "mace")  // the other has all that this one has
            search.look_for_name("the environment 'mace-cueq'", "mace-cueq");
        if (const std::string active = variable("VIRTUAL_ENV"); !active.empty()) search.look("VIRTUAL_ENV", active);
    }
    if (search.found.empty())
        fail(Status::unsupported, "model '", model.text, "': no Python environment was found; looked at ",
             search.looked_at.empty() ? "nothing" : search.looked_at,
             "; create one with scripts/install --python, or give one with env= or MLFF_PYTHON_ENV");
    std::error_code ignored;
    return fs::absolute(search.found, ignored);
}

std::vector<fs::path> known_environments() {
    std::vector<fs::path> folders;
    const auto add = [&](const fs::path& folder) {
        std::error_code ignored;
        if (!is_environment(folder)) return;
        if (const fs::path whole = fs::absolute(folder, ignored);
            std::find(folders.begin(), folders.end(), whole) == folders.end())
            folders.push_back(whole);
    };
    if (const std::string wanted = variable("MLFF_PYTHON_ENV"); !wanted.empty()) {
        Search search;
        search.look_for_name_or_path("MLFF_PYTHON_ENV", wanted);
        if (!search.found.empty()) add(search.found);
    }
    for (const fs::path& folder : environment_folders()) {
        std::error_code none;
        std::vector<fs::path> installed;
        for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none))
            installed.push_back(entry->path());
        std::sort(installed.begin(), installed.end());
        for (const fs::path& one : installed) add(one);
    }
    if (const std::string active = variable("VIRTUAL_ENV"); !active.empty()) add(active);
    return folders;
}

fs::path find_python_library() {
    if (const std::string given = variable("MLFF_PYTHON_LIBRARY"); !given.empty()) {
        std::error_code ignored;
        if (!fs::exists(given, ignored))
            fail(Status::unsupported, "MLFF_PYTHON_LIBRARY is ", given, ", which does not exist");
        return fs::absolute(given, ignored);
    }
    const fs::path here = folder_of_library();
    std::string looked_at;
    for (const fs::path& place : {here, here / "mlff", here / MLFF_MODULES_FROM_PROGRAM}) {
        std::error_code ignored;
        if (const fs::path file = place / "libmlff_python.so"; fs::exists(file, ignored))
            return fs::canonical(file, ignored);
        looked_at += (looked_at.empty() ? "" : ", ") + place.lexically_normal().string();
    }
    fail(Status::unsupported,
         "Python models need libmlff_python.so, but this mlff was built without it, or it has been moved since it was "
         "installed; looked in ",
         looked_at, " (python3-dev and pybind11-dev are needed to build it)");
}

fs::path find_host_program() {
    const fs::path here = find_python_library().parent_path();
    for (const fs::path& place : {here, here / MLFF_PROGRAMS_FROM_MODULES}) {
        const fs::path file = place / "mlff-python-host";
        if (access(file.c_str(), X_OK) == 0) return file.lexically_normal();
    }
    fail(Status::unsupported,
         "the program mlff-python-host, which runs Python models, is not next to libmlff_python.so in ", here.string());
}

}  // namespace mlff::python
