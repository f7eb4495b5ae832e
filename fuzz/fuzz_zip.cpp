// SPDX-License-Identifier: MIT
// Reads arbitrary bytes as a zip archive. Entries must lie inside it, not overlap, and have the sizes they claim.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/error.h"
#include "formats/zip.h"

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

void check_archive(mlff::Bytes bytes) {
    const mlff::ZipArchive archive(bytes, "fuzz");
    for (const mlff::ZipEntry& entry : archive.entries()) {
        require(archive.find(entry.name) == &entry);
        require(entry.data_offset <= bytes.size() && entry.compressed_size <= bytes.size() - entry.data_offset);
        for (const mlff::ZipEntry& other : archive.entries())
            require(&entry == &other || entry.header_offset >= other.data_offset + other.compressed_size ||
                    other.header_offset >= entry.data_offset + entry.compressed_size);
        try {
            require(archive.read(entry).size() == entry.size);
        } catch (const mlff::Error&) {}
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        check_archive({reinterpret_cast<const std::byte*>(data), size});
    } catch (const mlff::Error&) {}
    return 0;
}
