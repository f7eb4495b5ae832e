// SPDX-License-Identifier: MIT
#include "tools/fetch/fetch_model.h"

#include <filesystem>
#include <span>

#include "core/error.h"
#include "core/mapped_file.h"
#include "core/sha256.h"

namespace mlff::fetch {
namespace {

ModelCache::Note note_of(const ModelRequest& request) {
    return {request.licence, request.theory, request.replace, request.address.text()};
}

// A part belongs to what is downloaded, not to where it comes from: another server can continue it.
std::string part_path(const ModelCache& cache, const ModelRequest& request) {
    const std::string address = request.address.text();
    const std::string key = request.sha256.empty() ? sha256_hex(std::as_bytes(std::span(address))) : request.sha256;
    return concat(cache.folder(), "/.", request.name, "-", key.substr(0, 16), ".part");
}

void check_sha256(const PartFile& part, const ModelRequest& request) {
    if (request.sha256.empty()) return;
    const std::string found = sha256_hex(MappedFile::open(part.path())->bytes());
    if (found != request.sha256)
        fail(Status::format, request.address.text(), ": this is not the file that was asked for: its SHA-256 is ",
             found, ", expected ", request.sha256);
}

// The model in the cache whose file is the wanted one, under another name; "" if there is none.
std::string same_file(const ModelCache& cache, const ModelRequest& request) {
    if (request.sha256.empty()) return "";
    for (const auto& [name, model] : cache.list()) {
        if (name == request.name || model.sha256 != request.sha256) continue;
        try {
            return cache.verified_path(name);
        } catch (const Error&) {  // damaged: it is downloaded instead
        }
    }
    return "";
}

CachedModel download_into(const ModelCache& cache, PartFile& part, const ModelRequest& request,
                          const DownloadOptions& options) {
    const bool is_continued = part.size() > 0;
    download(request.address, part, options);
    part.sync();
    try {
        check_sha256(part, request);
    } catch (const Error& error) {
        if (!is_continued || error.status() != Status::format) throw;
        options.tell("what was left of an earlier download does not fit; downloading all of it again");
        part.clear();
        download(request.address, part, options);
        part.sync();
        check_sha256(part, request);
    }
    ModelCache::Note note = note_of(request);
    note.takes_file = true;
    try {
        return cache.add(part.path(), request.name, note);
    } catch (const Error& error) {
        fail(error.status(), request.address.text(), ": what came is not stored: ", error.what());
    }
}

}  // namespace

CachedModel fetch_model(const ModelCache& cache, const ModelRequest& request, const DownloadOptions& options) {
    if (cache.folder().empty()) fail(Status::file, "the model cache has no folder: set MLFF_MODELS, or HOME");
    std::error_code error;
    std::filesystem::create_directories(cache.folder(), error);
    if (error)
        fail(Status::file, cache.folder(), ": the folder of the model cache cannot be made (", error.message(), ")");
    if (const std::string path = same_file(cache, request); !path.empty()) {
        options.tell("the model cache has this file already, under another name");
        return cache.add(path, request.name, note_of(request));
    }
    bool has_told = false;
    auto part = PartFile::open(part_path(cache, request), [&] {
        if (!has_told) options.tell("another process is downloading it; waiting");
        has_told = true;
        return !options.is_stopped();
    });
    if (!part) throw Stopped{};
    try {
        if (!request.replace && cache.contains(request.name)) {  // what another process has just done
            part->remove();
            return cache.list().at(request.name);
        }
        return download_into(cache, *part, request, options);
    } catch (const Error& failure) {
        if (failure.status() == Status::format || failure.status() == Status::unsupported || part->size() == 0)
            part->remove();
        throw;
    } catch (...) {
        if (part->size() == 0) part->remove();
        throw;
    }
}

}  // namespace mlff::fetch
