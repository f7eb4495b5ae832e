// SPDX-License-Identifier: MIT
// Where tests find model files, and where they put their own.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../sanitized.h"

namespace mlff::test {

inline std::string read_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// An empty directory that goes away with all it holds.
class TemporaryDirectory {
public:
    TemporaryDirectory() {
        static std::atomic<int> counter{0};
        path_ = std::filesystem::temp_directory_path() /
                ("mlff-test-" + std::to_string(::getpid()) + "-" + std::to_string(counter++));
        std::filesystem::create_directories(path_);
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    std::string file(const std::string& name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

struct Golden {
    std::string name;
    std::string model_path;
    nlohmann::json facts;  // what the reference says; see README.md beside the files

    std::string container() const { return facts.at("container").get<std::string>(); }
};

// All goldens, by name, of the repository and of the larger set if it is there.
inline const std::map<std::string, Golden>& goldens() {
    static const std::map<std::string, Golden> all = [] {
        std::map<std::string, Golden> found;
        for (const std::filesystem::path directory : {MLFF_GOLDEN_DIR, MLFF_SHARED_GOLDEN_DIR}) {
            if (!std::filesystem::is_directory(directory)) continue;
            for (const auto& file : std::filesystem::directory_iterator(directory)) {
                if (file.path().extension() != ".json") continue;
                nlohmann::json facts = nlohmann::json::parse(std::ifstream(file.path()));
                if (!facts.is_object() || !facts.contains("model_file")) continue;  // the index
                const auto model = directory / facts["model_file"].get<std::string>();
                const std::string name = file.path().stem().string();
                if (std::filesystem::exists(model)) found.emplace(name, Golden{name, model.string(), std::move(facts)});
            }
        }
        return found;
    }();
    return all;
}

// nullptr if this golden is not here.
inline const Golden* find_golden(const std::string& name) {
    const auto found = goldens().find(name);
    return found == goldens().end() ? nullptr : &found->second;
}

inline std::string names_of_goldens() {
    std::string names;
    for (const auto& [name, golden] : goldens()) names += (names.empty() ? "" : " ") + name;
    return names;
}

}  // namespace mlff::test
