// SPDX-License-Identifier: MIT
// Reads arbitrary bytes as a model file of Nequix. What can be read must survive our container and is loaded and
// evaluated.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/error.h"
#include "evaluate_model.h"
#include "formats/module_container.h"
#include "formats/nqx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const mlff::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    mlff::looks_like_nqx(bytes);
    mlff::ModuleFile file;
    try {
        file.root = mlff::read_nqx(bytes, "fuzz");
    } catch (const mlff::Error&) {
        return 0;
    }
    const mlff::Module again = mlff::unpack_module(mlff::pack_module(file.root), "fuzz");
    if (again.attributes != file.root.attributes) std::abort();
    mlff::fuzz::evaluate_module_file(std::move(file));
    return 0;
}
