// SPDX-License-Identifier: MIT
// The safetensors format: 8 bytes little-endian header size N, N bytes of JSON
// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "text"}},
// then the data. The tensors fill the data without gaps or overlaps.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/tensor.h"

namespace mlff {

struct Safetensors {
    std::vector<std::pair<std::string, Tensor>> tensors;  // in the order of their data; views of the file's bytes
    std::map<std::string, std::string> metadata;

    const Tensor* find(std::string_view name) const;
    std::string text(const char* key) const;  // of the metadata; "" if it is not there
};

bool looks_like_safetensors(Bytes bytes);

// Keeps views of `bytes`. Throws Error{format}; messages begin with `name_for_errors`.
Safetensors read_safetensors(Bytes bytes, const std::string& name_for_errors);

// Writes tensors row-major, sorted by element size (stable), so that all are aligned. The file appears under its name
// only when it is complete. Throws Error{file | argument}.
void write_safetensors(const std::string& path, const Safetensors& contents);

}  // namespace mlff
