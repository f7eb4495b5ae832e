// SPDX-License-Identifier: MIT
// Models by name: files in a folder of the user's, with an index that says what they are. Nothing here downloads:
// tools/fetch does, for 'mlff model fetch'.
//
//     FOLDER/index.json      {"format": "mlff model cache", "version": 1, "models": {NAME: {"file", "sha256", "size",
//     ...}}} FOLDER/NAME-xxxx.model the file; its name changes with its contents, so that the index switches from one
//     to the next at once FOLDER/.lock           held by whoever changes something
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mlff {

struct CachedModel {
    std::string file;        // in the folder
    std::string sha256;      // 64 hexadecimal digits
    int64_t size = 0;        // bytes
    std::string licence;     // what the user said; "" = nothing
    std::string theory;      // level of theory, the same
    std::string source;      // the name of the file that was added, without folders, or the address it came from
    std::string added;       // "2026-11-15T23:00:00Z"
    std::string class_name;  // "ScaleShiftMACE"
    std::vector<int> elements;
    std::string why_not_runnable;  // "" if mlff itself can run it
    bool operator==(const CachedModel&) const = default;
};

using ModelIndex = std::map<std::string, CachedModel>;  // by name

// The text of an index.json that nobody vouches for. Throws Error{format}; the message begins with `where`.
ModelIndex parse_model_index(std::string_view text, const std::string& where);
std::string model_index_text(const ModelIndex& models);

class ModelCache {
public:
    ModelCache();  // the user's: $MLFF_MODELS, $XDG_DATA_HOME/mlff/models or ~/.local/share/mlff/models
    explicit ModelCache(std::string folder);  // "" = there is none

    const std::string& folder() const { return folder_; }
    // By name. A folder that is not there is an empty cache; a damaged index throws Error{format}, naming it.
    ModelIndex list() const;
    bool contains(const std::string& name) const;
    // The path of a model's file, whose size and SHA-256 were found to be those of the index. Throws Error, naming the
    // model.
    std::string verified_path(const std::string& name) const;
    // Throws Error{file} or {format} if that is not so.
    void verify(const std::string& name, const CachedModel& model) const;

    struct Note {
        std::string licence, theory;
        bool replace = false;     // a name that is taken is refused otherwise
        std::string source = {};  // "" = the name of the file
        bool takes_file = false;  // the file is in the folder already, and is renamed instead of copied
    };
    // Copies a model file into the folder; several processes may do so at a time. Licence and theory of a released
    // model are those of the table if the note has none.
    CachedModel add(const std::string& path, const std::string& name, const Note& note) const;
    void remove(const std::string& name) const;

private:
    std::string path_of(const std::string& file) const { return folder_ + "/" + file; }
    void write_index(const ModelIndex& models) const;
    std::string folder_;
};

// Letters, digits, '.', '_' and '-', at most 64, none of them '.' or '-' at the beginning.
bool is_model_name(const std::string& name);

// The file that the name of a model stands for: itself if there is such a file, else that of the cached model,
// verified. Throws Error that names both places. Not for names that are no files: "builtin", "analytic", "self-test",
// "python:...".
std::string find_model_file(const std::string& name);
bool is_model_without_file(const std::string& name);
// Several models with '+' between them, unless there is a file of that name. For names that no family has.
bool is_sum_name(const std::string& name);

}  // namespace mlff
