// SPDX-License-Identifier: MIT
// The model cache: model files in a folder of the user, and an index of their names. Nothing here downloads:
// tools/fetch does, for 'mlff model fetch'.
//
//     index.json         {"format": "mlff model cache", "version": 1, "models": {NAME: {"file", "sha256", ...}}}
//     NAME-xxxx.model    A model file. Its name contains a part of its checksum, so new contents get a new file, and
//                        replacing the index switches to it atomically.
//     .lock              Locked by a process while it changes the folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mlff {

struct CachedModel {
    std::string file;        // name in the folder
    std::string sha256;      // 64 hexadecimal digits
    int64_t size = 0;        // bytes
    std::string licence;     // given by the user, or that of a released model; may be ""
    std::string theory;      // level of theory, the same
    std::string source;      // original file name, without folders, or the address it came from
    std::string added;       // "2026-11-15T23:00:00Z"
    std::string class_name;  // "ScaleShiftMACE"
    std::vector<int> elements;
    std::string why_not_runnable;  // "" if mlff itself can run it
    bool operator==(const CachedModel&) const = default;
};

using ModelIndex = std::map<std::string, CachedModel>;  // by name

// The text is not trusted: everything is checked. Throws Error{format}; the message begins with `where`.
ModelIndex parse_model_index(std::string_view text, const std::string& where);
std::string model_index_text(const ModelIndex& models);

class ModelCache {
public:
    ModelCache();                             // $MLFF_MODELS, $XDG_DATA_HOME/mlff/models or ~/.local/share/mlff/models
    explicit ModelCache(std::string folder);  // "": an empty cache that cannot be written

    const std::string& folder() const { return folder_; }
    // If the folder does not exist, the cache is empty. A damaged index throws Error{format} with its path.
    ModelIndex list() const;
    bool contains(const std::string& name) const;
    // Checks the size and SHA-256 of a model's file and returns its path. Throws Error with the model's name.
    std::string verified_path(const std::string& name) const;
    // Throws Error{file} if the file is missing, Error{format} if its size or SHA-256 differs.
    void verify(const std::string& name, const CachedModel& model) const;

    struct Note {
        std::string licence, theory;
        bool replace = false;     // false: a name that exists already is refused
        std::string source = {};  // "" = the name of the file
        bool takes_file = false;  // the file is in the folder already, and is renamed instead of copied
    };
    // Copies a model file into the folder. Several processes may call it at the same time. Licence and theory of a
    // released model are those of the table if the note has none.
    CachedModel add(const std::string& path, const std::string& name, const Note& note) const;
    void remove(const std::string& name) const;

private:
    std::string path_of(const std::string& file) const { return folder_ + "/" + file; }
    void write_index(const ModelIndex& models) const;
    std::string folder_;
};

// 1 to 64 letters, digits, '.', '_' and '-', not beginning with '.' or '-'.
bool is_model_name(const std::string& name);

// Returns `name` if there is such a file, otherwise the verified path of the cached model. Throws Error that names both
// places. Do not call it for names of is_model_without_file().
std::string find_model_file(const std::string& name);
// "builtin", "python:...", sums, committees and other names that stand for no file.
bool is_model_without_file(const std::string& name);
// Several models with '+' between them, unless there is a file of that name. Names of Python models are none.
bool is_sum_name(const std::string& name);

}  // namespace mlff
