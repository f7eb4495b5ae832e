// SPDX-License-Identifier: MIT
#include "formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/bytes_text.h"
#include "core/error.h"
#include "formats/little_endian.h"

namespace mlff {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryHeader = 0x02014b50;
constexpr uint32_t kEndRecord = 0x06054b50;
constexpr uint32_t kEnd64Record = 0x06064b50;
constexpr uint32_t kEnd64Locator = 0x07064b50;
constexpr size_t kEndRecordSize = 22;
constexpr size_t kEnd64RecordSize = 56;
constexpr size_t kEnd64LocatorSize = 20;
constexpr size_t kDirectoryHeaderSize = 46;
constexpr size_t kLocalHeaderSize = 30;
constexpr uint64_t kMaxEntries = 1'000'000;
// torch compresses only source text. The total inflated size may be at most this, plus a multiple of the file size.
constexpr uint64_t kMaxInflatedSize = uint64_t{1} << 24;
constexpr uint64_t kMaxInflatedRatio = 32;

// The end record is at the end of the file, followed only by a comment of at most 65535 bytes.
size_t find_end_record(Bytes bytes) {
    if (bytes.size() < kEndRecordSize) return std::string::npos;
    const size_t last = bytes.size() - kEndRecordSize;
    const size_t first = last > 0xffff ? last - 0xffff : 0;
    for (size_t at = last + 1; at-- > first;)
        if (load_le<uint32_t>(bytes, at) == kEndRecord &&
            at + kEndRecordSize + load_le<uint16_t>(bytes, at + 20) == bytes.size())
            return at;
    return std::string::npos;
}

}  // namespace

bool looks_like_zip(Bytes bytes) {
    return bytes.size() >= 4 &&
           (load_le<uint32_t>(bytes, 0) == kLocalHeader || load_le<uint32_t>(bytes, 0) == kEndRecord);
}

template <class... Parts>
void ZipArchive::broken(const Parts&... parts) const {
    fail(Status::format, name_, ": damaged zip archive: ", parts...);
}

ZipArchive::ZipArchive(Bytes bytes, std::string name_for_errors) : bytes_(bytes), name_(std::move(name_for_errors)) {
    read_directory();
}

void ZipArchive::read_directory() {
    const size_t end = find_end_record(bytes_);
    if (end == std::string::npos) broken("no end-of-directory record; the file may be cut off");
    uint64_t disk = load_le<uint16_t>(bytes_, end + 4);
    uint64_t count = load_le<uint16_t>(bytes_, end + 10);
    uint64_t size = load_le<uint32_t>(bytes_, end + 12);
    uint64_t offset = load_le<uint32_t>(bytes_, end + 16);
    uint64_t directory_limit = end;

    if (end >= kEnd64LocatorSize && load_le<uint32_t>(bytes_, end - kEnd64LocatorSize) == kEnd64Locator) {
        const uint64_t at = load_le<uint64_t>(bytes_, end - kEnd64LocatorSize + 8);
        if (at > end || end - at < kEnd64RecordSize + kEnd64LocatorSize ||
            load_le<uint32_t>(bytes_, static_cast<size_t>(at)) != kEnd64Record)
            broken("the zip64 locator points to no zip64 record");
        const auto record = static_cast<size_t>(at);
        disk = load_le<uint32_t>(bytes_, record + 16);
        count = load_le<uint64_t>(bytes_, record + 32);
        size = load_le<uint64_t>(bytes_, record + 40);
        offset = load_le<uint64_t>(bytes_, record + 48);
        directory_limit = at;
    }
    if (disk != 0) broken("it is one part of a multi-part archive");
    if (offset > directory_limit || size > directory_limit - offset) broken("the directory lies outside the file");
    if (count > kMaxEntries || count > size / kDirectoryHeaderSize)
        broken("the directory claims ", count, " entries in ", size, " bytes");

    entries_.reserve(static_cast<size_t>(count));
    auto at = static_cast<size_t>(offset);
    const auto directory_end = static_cast<size_t>(offset + size);
    for (uint64_t i = 0; i < count; ++i) {
        if (directory_end - at < kDirectoryHeaderSize || load_le<uint32_t>(bytes_, at) != kDirectoryHeader)
            broken("directory entry ", i, " of ", count, " has no valid signature");
        const uint16_t flags = load_le<uint16_t>(bytes_, at + 8);
        const uint16_t method = load_le<uint16_t>(bytes_, at + 10);
        const size_t name_size = load_le<uint16_t>(bytes_, at + 28);
        const size_t extra_size = load_le<uint16_t>(bytes_, at + 30);
        const size_t comment_size = load_le<uint16_t>(bytes_, at + 32);
        if (directory_end - at - kDirectoryHeaderSize < name_size + extra_size + comment_size)
            broken("directory entry ", i, " runs past the end of the directory");

        ZipEntry entry;
        entry.name = text_at(bytes_, at + kDirectoryHeaderSize, name_size);
        entry.crc32 = load_le<uint32_t>(bytes_, at + 16);
        entry.compressed_size = load_le<uint32_t>(bytes_, at + 20);
        entry.size = load_le<uint32_t>(bytes_, at + 24);
        entry.header_offset = load_le<uint32_t>(bytes_, at + 42);
        if (entry.name.empty() || entry.name.find('\0') != std::string::npos) broken("entry ", i, " has no valid name");
        if (flags & 1) broken("entry '", entry.name, "' is encrypted");
        if (method != 0 && method != 8)
            broken("entry '", entry.name, "' uses compression method ", method, ", expected stored (0) or deflate (8)");
        entry.is_deflated = method == 8;

        // Sizes that do not fit 32 bits are in the zip64 extra field, in this order; it contains only those.
        const size_t extra_begin = at + kDirectoryHeaderSize + name_size;
        const Bytes extra = bytes_.subspan(extra_begin, extra_size);
        uint64_t* const wide[] = {&entry.size, &entry.compressed_size, &entry.header_offset};
        for (size_t field = 0; field + 4 <= extra.size();) {
            const size_t length = load_le<uint16_t>(extra, field + 2);
            if (length > extra.size() - field - 4) break;  // padding need not be a valid field
            if (load_le<uint16_t>(extra, field) == 1) {
                size_t value = field + 4;
                for (uint64_t* number : wide) {
                    if (*number != 0xffffffff) continue;
                    if (value + 8 > field + 4 + length) broken("entry '", entry.name, "' lacks its zip64 sizes");
                    *number = load_le<uint64_t>(extra, value);
                    value += 8;
                }
                break;
            }
            field += 4 + length;
        }
        locate_data(entry);
        has_checksums_ = has_checksums_ || entry.crc32 != 0;
        entries_.push_back(std::move(entry));
        at += kDirectoryHeaderSize + name_size + extra_size + comment_size;
    }
    if (at != directory_end) broken("the directory of ", size, " bytes holds more than its ", count, " entries");
    for (size_t i = 0; i < entries_.size(); ++i)
        if (!index_.emplace(entries_[i].name, i).second) broken("two entries are called '", entries_[i].name, "'");
    refuse_overlaps(offset);
    refuse_bombs();
}

void ZipArchive::locate_data(ZipEntry& entry) const {
    const uint64_t at = entry.header_offset;
    if (at > bytes_.size() || bytes_.size() - at < kLocalHeaderSize ||
        load_le<uint32_t>(bytes_, static_cast<size_t>(at)) != kLocalHeader)
        broken("entry '", entry.name, "' has no local header");
    const auto header = static_cast<size_t>(at);
    const size_t name_size = load_le<uint16_t>(bytes_, header + 26);
    const size_t extra_size = load_le<uint16_t>(bytes_, header + 28);
    if (bytes_.size() - header - kLocalHeaderSize < name_size + extra_size)
        broken("the local header of entry '", entry.name, "' runs past the end of the file");
    if (text_at(bytes_, header + kLocalHeaderSize, name_size) != entry.name)
        broken("entry '", entry.name, "' has a different name in its local header");
    entry.data_offset = at + kLocalHeaderSize + name_size + extra_size;
    if (entry.compressed_size > bytes_.size() - entry.data_offset)
        broken("entry '", entry.name, "' claims ", entry.compressed_size, " bytes, but the file ends earlier");
    if (!entry.is_deflated && entry.size != entry.compressed_size)
        broken("stored entry '", entry.name, "' has different compressed and uncompressed sizes");
}

void ZipArchive::refuse_overlaps(uint64_t directory_offset) const {
    std::vector<const ZipEntry*> by_offset;
    for (const ZipEntry& entry : entries_) by_offset.push_back(&entry);
    std::sort(by_offset.begin(), by_offset.end(),
              [](const ZipEntry* a, const ZipEntry* b) { return a->header_offset < b->header_offset; });
    for (size_t i = 0; i < by_offset.size(); ++i) {
        const uint64_t limit = i + 1 < by_offset.size() ? by_offset[i + 1]->header_offset : directory_offset;
        if (by_offset[i]->data_offset + by_offset[i]->compressed_size > limit)
            broken("entry '", by_offset[i]->name, "' overlaps the next entry or the directory");
    }
}

void ZipArchive::refuse_bombs() const {
    const uint64_t limit = kMaxInflatedSize + kMaxInflatedRatio * bytes_.size();
    uint64_t total = 0;
    for (const ZipEntry& entry : entries_) {
        if (!entry.is_deflated) continue;
        if (entry.size > limit - total)
            broken("entry '", entry.name, "' would inflate from ", bytes_text(entry.compressed_size), " to ",
                   bytes_text(entry.size));
        total += entry.size;
    }
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &entries_[found->second];
}

void ZipArchive::check_crc(const ZipEntry& entry, Bytes contents) const {
    if (!has_checksums_) return;
    const auto found = crc32_z(0, reinterpret_cast<const Bytef*>(contents.data()), contents.size());
    if (found != entry.crc32) broken("the contents of entry '", entry.name, "' do not match their CRC");
}

Bytes ZipArchive::stored(const ZipEntry& entry) const {
    if (entry.is_deflated) broken("entry '", entry.name, "' is compressed, expected stored");
    const Bytes contents = bytes_.subspan(static_cast<size_t>(entry.data_offset), static_cast<size_t>(entry.size));
    check_crc(entry, contents);
    return contents;
}

std::vector<std::byte> ZipArchive::read(const ZipEntry& entry) const {
    if (!entry.is_deflated) {
        const Bytes contents = stored(entry);
        return {contents.begin(), contents.end()};
    }
    std::vector<std::byte> contents(static_cast<size_t>(entry.size));
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    constexpr uint64_t kMaxOnePass = std::numeric_limits<uInt>::max();
    if (entry.size > kMaxOnePass || entry.compressed_size > kMaxOnePass)
        broken("entry '", entry.name, "' is compressed and larger than 4 GiB");
    std::byte empty{};
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes_.data() + entry.data_offset));
    stream.avail_in = static_cast<uInt>(entry.compressed_size);
    stream.next_out = reinterpret_cast<Bytef*>(contents.empty() ? &empty : contents.data());
    stream.avail_out = static_cast<uInt>(contents.size());
    const int status = inflate(&stream, Z_FINISH);
    const bool complete = status == Z_STREAM_END && stream.avail_out == 0 && stream.total_in == entry.compressed_size;
    inflateEnd(&stream);
    if (!complete) broken("entry '", entry.name, "' does not inflate to its ", entry.size, " bytes");
    check_crc(entry, contents);
    return contents;
}

}  // namespace mlff
