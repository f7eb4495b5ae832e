// SPDX-License-Identifier: MIT
// Zip archives in memory, read as data. Nothing is unpacked to disk.
//
// The central directory is used only after it has been checked against the local headers: entries lie inside the file,
// do not overlap, and have distinct names. The CRC of an entry is verified when it is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/mapped_file.h"

namespace mlff {

struct ZipEntry {
    std::string name;
    uint64_t header_offset = 0;  // of the local header
    uint64_t data_offset = 0;
    uint64_t compressed_size = 0;
    uint64_t size = 0;
    uint32_t crc32 = 0;
    bool is_deflated = false;  // else stored
};

// True if the bytes start like a zip archive.
bool looks_like_zip(Bytes bytes);

class ZipArchive {
public:
    // Keeps a view of `bytes`. Throws Error{format}; messages begin with `name_for_errors`.
    ZipArchive(Bytes bytes, std::string name_for_errors);

    const std::vector<ZipEntry>& entries() const { return entries_; }
    const ZipEntry* find(std::string_view name) const;

    // The bytes of a stored entry, in place. Throws for a deflated entry.
    Bytes stored(const ZipEntry& entry) const;
    // The contents of any entry, inflated if necessary.
    std::vector<std::byte> read(const ZipEntry& entry) const;

private:
    void read_directory();
    void locate_data(ZipEntry& entry) const;
    void refuse_overlaps(uint64_t directory_offset) const;
    void refuse_bombs() const;
    void check_crc(const ZipEntry& entry, Bytes contents) const;
    template <class... Parts>
    [[noreturn]] void broken(const Parts&... parts) const;

    Bytes bytes_;
    std::string name_;
    std::vector<ZipEntry> entries_;
    bool has_checksums_ = false;  // torch can write archives without checksums: then all are zero
    std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace mlff
