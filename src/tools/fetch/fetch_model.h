// SPDX-License-Identifier: MIT
// A model from the network into the model cache: downloaded, checked by size and SHA-256, read as a model, renamed.
#pragma once

#include <cstdint>
#include <string>

#include "engine/model_cache.h"
#include "tools/fetch/download.h"

namespace mlff::fetch {

struct ModelRequest {
    std::string name;  // in the cache
    Address address;
    int64_t size = 0;    // 0 = not known
    std::string sha256;  // "" = not known
    std::string licence, theory;
    bool replace = false;
};

// Throws what download() throws. Only a download that may be continued leaves something in the folder, a hidden file
// .NAME-xxxx.part. Several processes may fetch the same model: one downloads, the others wait for it.
CachedModel fetch_model(const ModelCache& cache, const ModelRequest& request, const DownloadOptions& options);

}  // namespace mlff::fetch
