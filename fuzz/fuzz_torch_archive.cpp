// SPDX-License-Identifier: MIT
// Reads arbitrary bytes as a model file. Bytes that do not begin like a zip archive become the data.pkl of one, so that
// the fuzzer gets past the checksums; checksums of real archives are repaired for the same reason. What can be read
// must survive our container and, if it is a model, is loaded and evaluated.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "evaluate_model.h"
#include "formats/little_endian.h"
#include "formats/module_container.h"
#include "formats/torch_archive.h"
#include "formats/zip.h"
#include "zip_writer.h"

namespace {

using mlff::test::ZipMember;

void require(bool condition) {
    if (!condition) std::abort();
}

std::string archive_around(std::string_view data_pkl) {
    const std::string storage(64, '\1');
    return mlff::test::make_zip(
        {{.name = "a/data.pkl", .contents = std::string(data_pkl)},
         {.name = "a/data/0", .contents = storage},
         {.name = "a/data/1", .contents = storage, .is_deflated = true},
         {.name = "a/code/__torch__/m.py", .contents = "class C(Module):\n  __parameters__ = [\"w\", ]\n"}});
}

// Writes the right checksum into each entry of the directory at the end.
void mend_checksums(std::string& bytes) {
    const mlff::ZipArchive archive(mlff::test::as_bytes(bytes), "fuzz");
    size_t at = 0;
    for (const mlff::ZipEntry& entry : archive.entries())
        if (!entry.is_deflated) at = std::max(at, static_cast<size_t>(entry.data_offset + entry.size));
    for (const mlff::ZipEntry& entry : archive.entries()) {
        at = bytes.find("PK\1\2", at);
        if (at == std::string::npos || bytes.size() - at < 46) return;
        if (!entry.is_deflated) {
            const auto crc = mlff::test::crc_of(std::string_view(bytes).substr(static_cast<size_t>(entry.data_offset),
                                                                               static_cast<size_t>(entry.size)));
            bytes.replace(at + 16, 4, mlff::test::little_endian(crc, 4));
        }
        at += 46;
    }
}

int64_t count_elements(const mlff::Module& module) {
    int64_t count = 0;
    for (const auto& [name, tensor] : module.tensors) {
        std::string bytes(static_cast<size_t>(tensor.element_count()) * mlff::dtype_size(tensor.dtype), '\0');
        tensor.copy_bytes_to(reinterpret_cast<std::byte*>(bytes.data()));
        count += tensor.element_count();
    }
    for (const auto& [name, child] : module.children) count += 1000 + count_elements(child);
    return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string bytes(reinterpret_cast<const char*>(data), size);
    mlff::ModuleFile file;
    try {
        if (mlff::looks_like_zip(mlff::test::as_bytes(bytes)))
            mend_checksums(bytes);
        else
            bytes = archive_around(bytes);
        file = mlff::read_torch_archive(mlff::test::as_bytes(bytes), "fuzz");
    } catch (const mlff::Error&) {
        return 0;
    }
    const mlff::Module again = mlff::unpack_module(mlff::pack_module(file.root), "fuzz");
    require(again.attributes == file.root.attributes);
    require(count_elements(again) == count_elements(file.root));
    mlff::fuzz::evaluate_module_file(std::move(file));
    return 0;
}
