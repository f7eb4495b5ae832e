// SPDX-License-Identifier: MIT
// Reads arbitrary bytes as the index of the model cache. Accepted entries have harmless names, and are the same after
// writing and reading.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "engine/model_cache.h"

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const mlff::ModelIndex models =
            mlff::parse_model_index(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
        for (const auto& [name, model] : models) {
            require(mlff::is_model_name(name) && model.file.find('/') == std::string::npos &&
                    !model.file.starts_with('.'));
            require(model.sha256.size() == 64 && model.size >= 0);
        }
        require(mlff::parse_model_index(mlff::model_index_text(models), "fuzz") == models);
    } catch (const mlff::Error&) {}
    return 0;
}
