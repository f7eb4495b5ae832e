// SPDX-License-Identifier: MIT
#include "engine/model_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "committee/member_list.h"
#include "core/bytes_text.h"
#include "core/elements.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "core/output_file.h"
#include "core/sha256.h"
#include "core/user_folder.h"
#include "engine/committee_name.h"
#include "engine/families.h"
#include "engine/load_model.h"
#include "engine/released_models.h"
#include "formats/json_text.h"
#include "python_models/model_name.h"

namespace mlff {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexFormat = "mlff model cache";
constexpr int kIndexVersion = 1;
constexpr uintmax_t kLargestIndex = 16 << 20;

bool is_hexadecimal_digit(char letter) { return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f'); }
bool is_letter_or_digit(char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
}

// For names of models and their files: nothing that could lead out of the folder or look like a command-line option.
bool is_plain_name(const std::string& name, size_t longest) {
    const auto is_allowed = [](char letter) {
        return is_letter_or_digit(letter) || letter == '.' || letter == '_' || letter == '-';
    };
    return !name.empty() && name.size() <= longest && name[0] != '.' && name[0] != '-' &&
           std::all_of(name.begin(), name.end(), is_allowed);
}

std::string folder_of_user() {
    if (const std::string folder = environment_text("MLFF_MODELS"); !folder.empty()) return folder;
    const std::string data = user_data_folder();
    return data.empty() ? "" : data + "/models";
}

// Keeps other processes from changing the folder.
class FolderLock {
public:
    explicit FolderLock(const std::string& folder) {
        const std::string path = folder + "/.lock";
        descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (descriptor_ < 0)
            fail(Status::file, path, ": cannot open the lock of the model cache (", std::strerror(errno), ")");
        int locked = -1;
        do {
            locked = ::flock(descriptor_, LOCK_EX);
        } while (locked != 0 && errno == EINTR);
        if (locked == 0) return;
        const int reason = errno;
        ::close(descriptor_);
        fail(Status::file, path, ": cannot lock the model cache (", std::strerror(reason), ")");
    }
    ~FolderLock() { ::close(descriptor_); }
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;

private:
    int descriptor_ = -1;
};

// Without this, a power cut may undo the renaming of a file.
void sync_folder(const std::string& folder) {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
}

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text.data();
}

CachedModel read_entry(const JsonValue& entry, const std::string& where) {
    if (!entry.is_object()) fail(Status::format, where, " is not an object");
    const auto text = [&](const char* key) {
        if (!entry.contains(key) || !entry[key].is_string())
            fail(Status::format, where, ": '", key, "' is not there or no text");
        return entry[key].text();
    };
    CachedModel model;
    model.file = text("file");
    if (!is_plain_name(model.file, 255))
        fail(Status::format, where, ": '", model.file, "' is no name of a file in the cache");
    model.sha256 = text("sha256");
    if (model.sha256.size() != 64 || !std::all_of(model.sha256.begin(), model.sha256.end(), is_hexadecimal_digit))
        fail(Status::format, where, ": 'sha256' is not 64 hexadecimal digits");
    if (!entry.contains("size") || !entry["size"].is_number_unsigned() || entry["size"].unsigned_integer() > INT64_MAX)
        fail(Status::format, where, ": 'size' is not a number of bytes");
    model.size = entry["size"].integer();
    model.licence = text("licence");
    model.theory = text("theory");
    model.source = text("source");
    model.added = text("added");
    model.class_name = text("class");
    model.why_not_runnable = text("why_not_runnable");
    if (!entry.contains("elements") || !entry["elements"].is_array())
        fail(Status::format, where, ": 'elements' is not a list");
    for (const JsonValue& element : entry["elements"]) {
        if (!element.is_number_unsigned() || element.unsigned_integer() < 1 ||
            element.unsigned_integer() > kMaxAtomicNumber)
            fail(Status::format, where, ": 'elements' holds something that is no atomic number");
        model.elements.push_back(static_cast<int>(element.integer()));
    }
    return model;
}

JsonValue entry_json(const CachedModel& model) {
    return JsonValue::Object{{"file", model.file},         {"sha256", model.sha256},
                             {"size", model.size},         {"licence", model.licence},
                             {"theory", model.theory},     {"source", model.source},
                             {"added", model.added},       {"class", model.class_name},
                             {"elements", model.elements}, {"why_not_runnable", model.why_not_runnable}};
}

// NAME-CHECKSUM.ENDING with the first 16 digits of the checksum, and the ending of the original file if it is plain.
std::string stored_name(const std::string& name, const std::string& sha256, const std::string& source) {
    std::string ending = fs::path(source).extension().string();
    if (ending.size() < 2 || ending.size() > 16 || !std::all_of(ending.begin() + 1, ending.end(), is_letter_or_digit))
        ending = ".model";
    return name + "-" + sha256.substr(0, 16) + ending;
}

std::string folder_text(const std::string& folder) {
    return folder.empty() ? "(which has no folder: set MLFF_MODELS or HOME)" : folder;
}

// "" or "; did you mean 'small'?"
std::string suggestion(const std::string& name, const ModelIndex& cached) {
    std::vector<std::string> names;
    for (const ReleasedModel& model : released_models()) names.push_back(model.name);
    for (const auto& [other, model] : cached)
        if (std::find(names.begin(), names.end(), other) == names.end()) names.push_back(other);
    std::string text;
    for (const std::string& near : near_names(name, names)) text += (text.empty() ? "'" : " or '") + near + "'";
    return text.empty() ? "" : "; did you mean " + text + "?";
}

// Of a released model that is not in the cache.
[[noreturn]] void fail_not_fetched(const ReleasedModel& model, const std::string& name, const std::string& folder) {
    fail(Status::file, "the released model '", name, "' is not in the model cache ", folder_text(folder),
         " yet: ", how_to_get(model, name));
}

}  // namespace

bool is_model_name(const std::string& name) { return is_plain_name(name, 64); }

ModelCache::ModelCache() : ModelCache(folder_of_user()) {}
ModelCache::ModelCache(std::string folder) : folder_(std::move(folder)) {}

ModelIndex parse_model_index(std::string_view text, const std::string& where) {
    const JsonValue index = parse_json(text, where);
    const auto member = [&](const char* key) { return index.contains(key) ? index[key] : JsonValue(); };
    if (member("format") != kIndexFormat) fail(Status::format, where, ": is no index of the model cache");
    if (member("version") != kIndexVersion)
        fail(Status::format, where, ": version ", member("version").dump(), " of the index, this mlff reads ",
             kIndexVersion);
    if (!index.contains("models") || !index["models"].is_object())
        fail(Status::format, where, ": 'models' is not there or no object");
    ModelIndex models;
    for (const auto& [name, entry] : index["models"].object()) {
        if (!is_model_name(name)) fail(Status::format, where, ": '", name, "' is no name of a model");
        models[name] = read_entry(entry, concat(where, ": model '", name, "'"));
    }
    return models;
}

std::string model_index_text(const ModelIndex& models) {
    JsonValue entries = JsonValue::Object();
    for (const auto& [name, model] : models) entries[name] = entry_json(model);
    return JsonValue(JsonValue::Object{{"format", kIndexFormat}, {"version", kIndexVersion}, {"models", entries}})
               .dump(1) +
           "\n";
}

ModelIndex ModelCache::list() const {
    if (folder_.empty()) return {};
    const std::string path = path_of("index.json");
    std::error_code error;
    if (!fs::exists(path, error) && !error) return {};
    const auto file = MappedFile::open(path);
    if (file->bytes().size() > kLargestIndex)
        fail(Status::format, path, ": larger than ", bytes_text(kLargestIndex), ", which no index of models is");
    return parse_model_index(file->text(), path);
}

bool ModelCache::contains(const std::string& name) const { return list().count(name) > 0; }

void ModelCache::verify(const std::string& name, const CachedModel& model) const {
    const std::string path = path_of(model.file);
    const std::string advice = concat("; remove it ('mlff model remove ", name, "') and add it again");
    std::error_code error;
    if (!fs::exists(path, error)) fail(Status::file, "model '", name, "': its file ", path, " is gone", advice);
    const auto file = MappedFile::open(path);
    if (file->bytes().size() != static_cast<size_t>(model.size))
        fail(Status::format, "model '", name, "': ", path, " is damaged: ", file->bytes().size(), " bytes, expected ",
             model.size, advice);
    if (sha256_hex(file->bytes()) != model.sha256)
        fail(Status::format, "model '", name, "': ", path,
             " is damaged: its SHA-256 is not that of the file that was added", advice);
}

std::string ModelCache::verified_path(const std::string& name) const {
    for (bool is_retry : {false, true}) {
        const auto models = list();
        const auto found = models.find(name);
        if (found == models.end()) break;
        std::error_code error;
        if (!is_retry && !fs::exists(path_of(found->second.file), error))
            continue;  // another process replaced it after we read the index: read the index again
        verify(name, found->second);
        return path_of(found->second.file);
    }
    if (!is_model_name(name))
        fail(Status::argument, "'", name,
             "' is no name of a model: expected letters, digits, '.', '_' and '-', at most 64");
    if (const ReleasedModel* released = find_released_model(name)) fail_not_fetched(*released, name, folder_);
    fail(Status::file, "there is no model '", name, "' in the model cache ", folder_text(folder_),
         "; put one there with: mlff model add FILE --name ", name, suggestion(name, list()));
}

void ModelCache::write_index(const ModelIndex& models) const {
    const std::string text = model_index_text(models);
    OutputFile file(path_of("index.json"));
    file.write(text.data(), text.size());
    file.commit();
    sync_folder(folder_);
}

CachedModel ModelCache::add(const std::string& path, const std::string& name, const Note& note) const {
    if (!is_model_name(name))
        fail(Status::argument, "--name '", name,
             "': expected letters, digits, '.', '_' and '-', at most 64, that begin with neither '.' nor '-'");
    if (is_model_without_file(name) || name == "python")
        fail(Status::argument, "--name '", name, "' is a name that mlff has for something else");
    if (is_model_without_file(path))
        fail(Status::argument, "'", path, "' is a part of mlff already; expected a model file");
    if (folder_.empty()) fail(Status::file, "the model cache has no folder: set MLFF_MODELS, or HOME");
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) fail(Status::file, folder_, ": the folder of the model cache cannot be made (", error.message(), ")");
    const FolderLock lock(folder_);
    auto models = list();
    const auto old = models.find(name);
    if (old != models.end() && !note.replace)
        fail(Status::argument, "there is a model '", name, "' already, from ", old->second.source,
             "; --replace puts this one in its place");

    CachedModel model;
    {
        const auto source = MappedFile::open(path);
        if (is_member_list(source->text()))
            fail(Status::unsupported, path, ": a list of members stays where it is: its paths are relative to it");
        const auto loaded = load_model(fs::absolute(path).string());  // refuses files that are not models
        model.class_name = loaded->summary().class_name;
        model.elements = loaded->summary().elements;
        model.why_not_runnable = loaded->summary().why_not_runnable;
        model.size = static_cast<int64_t>(source->bytes().size());
        model.sha256 = sha256_hex(source->bytes());
        model.file = stored_name(name, model.sha256, note.source.empty() ? path : note.source);
        if (note.takes_file) {
            fs::rename(path, path_of(model.file), error);
            if (error) fail(Status::file, path, ": cannot be renamed to ", model.file, " (", error.message(), ")");
        } else {
            OutputFile copy(path_of(model.file));
            copy.write(source->bytes().data(), source->bytes().size());
            copy.commit();
        }
    }
    const ReleasedModel* released = find_released_file(model.sha256);
    model.licence = note.licence.empty() && released ? released->licence : note.licence;
    model.theory = note.theory.empty() && released ? released->theory : note.theory;
    model.source = note.source.empty() ? fs::path(path).filename().string() : note.source;
    model.added = utc_now();
    const std::string old_file = old == models.end() ? "" : old->second.file;
    const auto drop_copy = [&] {
        if (model.file != old_file) fs::remove(path_of(model.file), error);
    };
    try {
        verify(name, model);  // reads the copy back from disk
        models[name] = model;
        write_index(models);
    } catch (...) {
        drop_copy();
        throw;
    }
    if (!old_file.empty() && old_file != model.file) fs::remove(path_of(old_file), error);
    return model;
}

void ModelCache::remove(const std::string& name) const {
    const auto refuse = [&] {
        fail(Status::file, "there is no model '", name, "' in the model cache", folder_.empty() ? "" : " " + folder_);
    };
    std::error_code error;
    if (folder_.empty() || !fs::is_directory(folder_, error)) refuse();
    const FolderLock lock(folder_);
    auto models = list();
    const auto found = models.find(name);
    if (found == models.end()) refuse();
    const std::string path = path_of(found->second.file);
    models.erase(found);
    write_index(models);
    fs::remove(path, error);
}

bool is_model_without_file(const std::string& name) {
    return is_committee_name(name) || is_sum_name(name) ||
           std::any_of(model_families().begin(), model_families().end(),
                       [&](const ModelFamily& family) { return family.has_name(name); });
}

bool is_sum_name(const std::string& name) {
    std::error_code error;
    return name.find('+') != std::string::npos && !python::is_python_name(name) && !fs::exists(name, error);
}

std::string find_model_file(const std::string& name) {
    std::error_code error;
    if (!is_model_name(name) || (fs::exists(name, error) && !fs::is_directory(name, error))) return name;
    const ModelCache cache;
    const ModelIndex cached = cache.list();
    if (cached.count(name) > 0) return cache.verified_path(name);
    if (const ReleasedModel* released = find_released_model(name)) fail_not_fetched(*released, name, cache.folder());
    fail(Status::file, name, ": there is no such file in this folder, and no model of that name in the model cache ",
         folder_text(cache.folder()), suggestion(name, cached));
}

}  // namespace mlff
