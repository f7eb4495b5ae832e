// SPDX-License-Identifier: MIT
// Zip archives that say what they are told to say, true or not.
#pragma once

#include <zlib.h>

#include <optional>
#include <string>
#include <vector>

#include "byte_writer.h"

namespace mlff::test {

inline uint32_t crc_of(std::string_view contents) {
    return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(contents.data()), contents.size()));
}

// A raw deflate stream, as zip holds it.
inline std::string deflated(std::string_view contents) {
    z_stream stream{};
    deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
    std::string result(deflateBound(&stream, static_cast<uLong>(contents.size())), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
    stream.avail_in = static_cast<uInt>(contents.size());
    stream.next_out = reinterpret_cast<Bytef*>(result.data());
    stream.avail_out = static_cast<uInt>(result.size());
    deflate(&stream, Z_FINISH);
    result.resize(stream.total_out);
    deflateEnd(&stream);
    return result;
}

// One member. What is left empty is written as it truly is.
struct ZipMember {
    std::string name;
    std::string contents;
    bool is_deflated = false;
    bool has_late_sizes = false;  // flag bit 3: zero sizes in the local header, as torch writes
    bool has_wide_sizes = false;  // sizes and offset in a zip64 field
    uint16_t flags = 0;
    std::string local_extra = {};
    std::string directory_extra = {};
    std::string comment = {};
    std::optional<uint16_t> method = {};
    std::optional<uint32_t> crc = {};
    std::optional<uint64_t> size = {};
    std::optional<uint64_t> stored_size = {};
    std::optional<uint64_t> header_offset = {};
    std::optional<std::string> local_name = {};
    std::optional<std::string> data = {};  // instead of the contents, perhaps deflated
};

// The end of the archive, likewise.
struct ZipEnd {
    bool is_zip64 = false;
    std::string comment = {};
    uint32_t disk = 0;
    std::optional<uint64_t> count = {};
    std::optional<uint64_t> directory_size = {};
    std::optional<uint64_t> directory_offset = {};
    std::optional<uint64_t> zip64_offset = {};
};

inline std::string make_zip(const std::vector<ZipMember>& members, const ZipEnd& end = {}) {
    ByteWriter file, directory;
    for (const ZipMember& member : members) {
        const std::string data = member.data.value_or(member.is_deflated ? deflated(member.contents) : member.contents);
        const uint64_t size = member.size.value_or(member.contents.size());
        const uint64_t stored_size = member.stored_size.value_or(data.size());
        const uint64_t offset = member.header_offset.value_or(file.size());
        const uint32_t crc = member.crc.value_or(crc_of(member.contents));
        const uint16_t method = member.method.value_or(member.is_deflated ? 8 : 0);
        const uint16_t flags = member.flags | (member.has_late_sizes ? 8 : 0);
        const bool late = member.has_late_sizes, wide = member.has_wide_sizes;
        const std::string local_name = member.local_name.value_or(member.name);

        file.u32(0x04034b50).u16(20).u16(flags).u16(method).u16(0).u16(0);
        file.u32(late ? 0 : crc).u32(late ? 0 : stored_size).u32(late ? 0 : size);
        file.u16(local_name.size()).u16(member.local_extra.size()).text(local_name).text(member.local_extra).text(data);

        std::string extra = member.directory_extra;
        if (wide) extra += ByteWriter().u16(1).u16(24).u64(size).u64(stored_size).u64(offset).bytes();
        constexpr uint64_t kWide = 0xffffffff;
        directory.u32(0x02014b50).u16(20).u16(20).u16(flags).u16(method).u16(0).u16(0);
        directory.u32(crc).u32(wide ? kWide : stored_size).u32(wide ? kWide : size);
        directory.u16(member.name.size()).u16(extra.size()).u16(member.comment.size()).u16(0).u16(0).u32(0);
        directory.u32(wide ? kWide : offset).text(member.name).text(extra).text(member.comment);
    }
    const uint64_t count = end.count.value_or(members.size());
    const uint64_t size = end.directory_size.value_or(directory.size());
    const uint64_t offset = end.directory_offset.value_or(file.size());
    file.text(directory.bytes());
    const uint64_t end64 = end.zip64_offset.value_or(file.size());
    if (end.is_zip64) {
        file.u32(0x06064b50)
            .u64(44)
            .u16(45)
            .u16(45)
            .u32(end.disk)
            .u32(end.disk)
            .u64(count)
            .u64(count)
            .u64(size)
            .u64(offset);
        file.u32(0x07064b50).u32(0).u64(end64).u32(1);
    }
    const bool wide = end.is_zip64;
    file.u32(0x06054b50)
        .u16(wide ? 0 : end.disk)
        .u16(wide ? 0 : end.disk)
        .u16(wide ? 0xffff : count)
        .u16(wide ? 0xffff : count);
    file.u32(wide ? 0xffffffff : size).u32(wide ? 0xffffffff : offset).u16(end.comment.size()).text(end.comment);
    return file.bytes();
}

}  // namespace mlff::test
