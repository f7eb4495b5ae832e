// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <ctime>

#include "core/error.h"
#include "formats/zip.h"
#include "zip_writer.h"

using namespace mlff;
using namespace mlff::test;

namespace {

std::string contents_of(const ZipArchive& archive, const std::string& name) {
    const ZipEntry* entry = archive.find(name);
    REQUIRE(entry);
    const auto bytes = archive.read(*entry);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Opens the archive and reads every entry; the message of the error, "" without one.
std::string error_of(const std::string& bytes) {
    try {
        const ZipArchive archive(as_bytes(bytes), "a.zip");
        for (const ZipEntry& entry : archive.entries()) archive.read(entry);
    } catch (const Error& error) {
        CHECK(error.status() == Status::format);
        return error.what();
    }
    return {};
}

void check_refused(const std::string& what, const std::string& bytes, const std::string& words) {
    CAPTURE(what);
    const std::string message = error_of(bytes);
    CAPTURE(message);
    CHECK(message.find("a.zip: damaged zip archive: ") == 0);
    CHECK(message.find(words) != std::string::npos);
}

// Repetitive but not constant, so that it compresses.
std::string sample_text(size_t size) {
    std::string text;
    for (size_t i = 0; text.size() < size; ++i) text += "line " + std::to_string(i % 97) + "\n";
    text.resize(size);
    return text;
}

const std::string kEveryByte = [] {
    std::string bytes;
    for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
    return bytes;
}();

}  // namespace

TEST_CASE("zip: stored and deflated entries come back byte for byte") {
    const std::string text = sample_text(100000);
    for (const bool is_zip64 : {false, true})
        for (const bool has_late_sizes : {false, true})
            for (const bool has_wide_sizes : {false, true}) {
                CAPTURE(is_zip64);
                CAPTURE(has_late_sizes);
                CAPTURE(has_wide_sizes);
                std::vector<ZipMember> members = {
                    {.name = "a/bytes", .contents = kEveryByte},
                    {.name = "a/nothing", .contents = "", .local_extra = "FB\x02" + std::string(3, '\0')},
                    {.name = "a/text", .contents = text, .is_deflated = true, .comment = "a comment"},
                    {.name = "a/no text",
                     .contents = "",
                     .is_deflated = true,
                     .directory_extra = "xy" + std::string("\x01\0z", 3)}};
                for (ZipMember& member : members) {
                    member.has_late_sizes = has_late_sizes;
                    member.has_wide_sizes = has_wide_sizes;
                }
                const std::string bytes = make_zip(members, {.is_zip64 = is_zip64, .comment = "made by a test"});
                CHECK(looks_like_zip(as_bytes(bytes)));
                const ZipArchive archive(as_bytes(bytes), "a.zip");
                REQUIRE(archive.entries().size() == 4);
                for (const ZipMember& member : members) {
                    CAPTURE(member.name);
                    CHECK(contents_of(archive, member.name) == member.contents);
                    CHECK(archive.find(member.name)->is_deflated == member.is_deflated);
                }
                const Bytes stored = archive.stored(*archive.find("a/bytes"));
                CHECK(stored.data() > as_bytes(bytes).data());  // a view, not a copy
                CHECK(stored.data() < as_bytes(bytes).data() + bytes.size());
                CHECK_THROWS_AS(archive.stored(*archive.find("a/text")), Error);
                CHECK(archive.find("a/other") == nullptr);
                CHECK(archive.find("") == nullptr);
            }
}

TEST_CASE("zip: an archive of nothing") {
    const std::string bytes = make_zip({});
    CHECK(looks_like_zip(as_bytes(bytes)));
    CHECK(ZipArchive(as_bytes(bytes), "a.zip").entries().empty());
    CHECK(!looks_like_zip({}));
    CHECK(!looks_like_zip(as_bytes("PK\3")));
    CHECK(!looks_like_zip(as_bytes("PK\3\5")));
}

TEST_CASE("zip: a comment may look like an end record") {
    const std::string decoy = make_zip({});
    const std::string bytes = make_zip({{.name = "a", .contents = "true"}}, {.comment = decoy + " and more"});
    CHECK(contents_of(ZipArchive(as_bytes(bytes), "a.zip"), "a") == "true");
    const std::string longest = make_zip({{.name = "a", .contents = "true"}}, {.comment = std::string(65535, 'x')});
    CHECK(contents_of(ZipArchive(as_bytes(longest), "a.zip"), "a") == "true");
}

TEST_CASE("zip: many entries") {
    std::vector<ZipMember> members;
    for (int i = 0; i < 20000; ++i)
        members.push_back({.name = "archive/data/" + std::to_string(i), .contents = std::to_string(i)});
    const std::string bytes = make_zip(members);
    const ZipArchive archive(as_bytes(bytes), "a.zip");
    CHECK(archive.entries().size() == 20000);
    CHECK(contents_of(archive, "archive/data/19999") == "19999");
}

TEST_CASE("zip: broken archives are refused") {
    const ZipMember good{.name = "a", .contents = "contents of a"};
    const ZipMember other{.name = "b", .contents = "contents of b"};
    const auto changed = [&](auto change) {
        ZipMember member = good;
        change(member);
        return make_zip({member, other});
    };
    CHECK(error_of(make_zip({good, other})) == "");
    check_refused("nothing at all", "", "no end-of-directory record");
    check_refused("text", "PK\3\4 and then something else", "no end-of-directory record");
    check_refused("bytes after the end", make_zip({good}) + "x", "no end-of-directory record");
    check_refused("wrong CRC", changed([](auto& m) { m.crc = 1; }), "do not match their CRC");
    check_refused("wrong CRC of deflated data", changed([](auto& m) { m.is_deflated = true, m.crc = 1; }),
                  "do not match their CRC");
    check_refused("encrypted", changed([](auto& m) { m.flags = 1; }), "'a' is encrypted");
    check_refused("bzip2", changed([](auto& m) { m.method = 12; }), "compression method 12");
    check_refused("no name", changed([](auto& m) { m.name = ""; }), "no valid name");
    check_refused("zero byte in a name", changed([](auto& m) { m.name = std::string("a\0b", 3); }), "no valid name");
    check_refused("two names", changed([](auto& m) { m.local_name = "c"; }), "a different name in its local header");
    check_refused("the same name twice", changed([](auto& m) { m.name = "b"; }), "two entries are called 'b'");
    check_refused("two sizes of a stored entry", changed([](auto& m) { m.size = 12; }),
                  "different compressed and uncompressed sizes");
    check_refused("larger than the file", changed([](auto& m) { m.size = m.stored_size = 100000; }),
                  "the file ends earlier");
    check_refused("as large as can be",
                  changed([](auto& m) { m.has_wide_sizes = true, m.size = m.stored_size = ~uint64_t{0}; }),
                  "the file ends earlier");
    check_refused("over the next entry", changed([](auto& m) { m.size = m.stored_size = 20; }),
                  "'a' overlaps the next entry");
    check_refused("over the directory", make_zip({{.name = "a", .contents = "x", .size = 40, .stored_size = 40}}),
                  "overlaps the next entry");
    check_refused("header outside the file", changed([](auto& m) { m.header_offset = 1u << 30; }), "no local header");
    check_refused("header far outside the file",
                  changed([](auto& m) { m.has_wide_sizes = true, m.header_offset = ~uint64_t{0} - 5; }),
                  "no local header");
    check_refused("header in the middle", changed([](auto& m) { m.header_offset = 1; }), "no local header");
    check_refused("both at one place", make_zip({good, {.name = "b", .contents = "", .header_offset = 0}}),
                  "a different name");
    check_refused("no zip64 sizes",
                  changed([](auto& m) { m.stored_size = 0xffffffff, m.directory_extra = std::string("\1\0\0\0", 4); }),
                  "lacks its zip64 sizes");
    check_refused("cut deflate stream",
                  changed([](auto& m) { m.is_deflated = true, m.data = deflated(m.contents).substr(0, 8); }),
                  "does not inflate");
    check_refused("garbage to inflate", changed([](auto& m) { m.is_deflated = true, m.data = "\xff\xff\xff\xff"; }),
                  "does not inflate");
    check_refused("inflates to more", changed([](auto& m) { m.is_deflated = true, m.size = 5; }),
                  "does not inflate to its 5 bytes");
    check_refused("inflates to less", changed([](auto& m) { m.is_deflated = true, m.size = 500; }),
                  "does not inflate to its 500 bytes");
    check_refused("bytes after the deflate stream",
                  changed([](auto& m) { m.is_deflated = true, m.data = deflated(m.contents) + "x"; }),
                  "does not inflate");
}

TEST_CASE("zip: an archive without any checksum is read") {
    const std::string bytes =
        make_zip({{.name = "a", .contents = "one", .crc = 0}, {.name = "b", .contents = "two", .crc = 0}});
    CHECK(contents_of(ZipArchive(as_bytes(bytes), "a.zip"), "b") == "two");
    check_refused("one of two",
                  make_zip({{.name = "a", .contents = "one", .crc = 0}, {.name = "b", .contents = "two"}}),
                  "their CRC");
}

TEST_CASE("zip: directories that lie are refused") {
    const std::vector<ZipMember> members = {{.name = "a", .contents = "contents of a"},
                                            {.name = "b", .contents = "contents of b"}};
    const uint64_t start = 2 * (30 + 1 + 13), size = 2 * (46 + 1);
    for (const bool is_zip64 : {false, true}) {
        CAPTURE(is_zip64);
        const auto ending = [&](auto change) {
            ZipEnd end{.is_zip64 = is_zip64};
            change(end);
            return make_zip(members, end);
        };
        CHECK(error_of(ending([](auto&) {})) == "");
        CHECK(error_of(ending([&](auto& e) { e.directory_offset = start, e.directory_size = size; })) == "");
        check_refused("one entry too many", ending([](auto& e) { e.count = 3; }), "claims 3 entries in 94 bytes");
        check_refused("one entry too few", ending([](auto& e) { e.count = 1; }), "more than its 1 entries");
        check_refused("no entry", ending([](auto& e) { e.count = 0; }), "more than its 0 entries");
        check_refused("many entries", ending([](auto& e) { e.count = 65000; }), "claims 65000 entries");
        check_refused("directory too short", ending([](auto& e) { e.directory_size = 93; }),
                      "runs past the end of the directory");
        check_refused("directory much too short", ending([](auto& e) { e.directory_size = 91; }),
                      "claims 2 entries in 91 bytes");
        check_refused("directory too long", ending([](auto& e) { e.directory_size = 95; }), "outside the file");
        check_refused("directory far outside", ending([](auto& e) { e.directory_offset = 0xfffffff0; }),
                      "outside the file");
        check_refused("directory elsewhere", ending([](auto& e) { e.directory_offset = 0; }),
                      "directory entry 0 of 2 has no valid signature");
        check_refused("directory a little before", ending([&](auto& e) { e.directory_offset = start - 1; }),
                      "has no valid signature");
        check_refused("one part of several", ending([](auto& e) { e.disk = 1; }), "multi-part");
    }
    check_refused("offset and size that wrap around",
                  make_zip(members, {.is_zip64 = true, .directory_size = ~uint64_t{0} - 10, .directory_offset = 20}),
                  "outside the file");
    check_refused("zip64 record elsewhere", make_zip(members, {.is_zip64 = true, .zip64_offset = 3}),
                  "no zip64 record");
    check_refused("zip64 record far outside", make_zip(members, {.is_zip64 = true, .zip64_offset = ~uint64_t{0}}),
                  "no zip64 record");
}

TEST_CASE("zip: bombs are refused at once") {
    const std::string zeros(30 << 20, '\0');
    const std::string small = deflated(zeros);  // 30 kB
    const std::clock_t start = std::clock();
    check_refused("thirty megabytes from thirty kilobytes",
                  make_zip({{.name = "a", .contents = "", .is_deflated = true, .size = zeros.size(), .data = small}}),
                  "would inflate from");
    check_refused("a size that nothing can have",
                  make_zip({{.name = "a",
                             .contents = "",
                             .is_deflated = true,
                             .has_wide_sizes = true,
                             .size = ~uint64_t{0},
                             .data = small}}),
                  "would inflate from");
    std::vector<ZipMember> many;
    for (int i = 0; i < 40; ++i)
        many.push_back({.name = std::to_string(i), .contents = "", .is_deflated = true, .size = 1 << 20, .data = "x"});
    check_refused("many that are small one by one", make_zip(many), "would inflate from");
    check_refused("all entries at the same bytes",
                  make_zip({{.name = "a", .contents = "x"}, {.name = "a", .contents = "", .header_offset = 0}}),
                  "two entries are called");
    CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 1);
}

TEST_CASE("zip: cut off at any byte") {
    for (const bool is_zip64 : {false, true}) {
        const std::string whole =
            make_zip({{.name = "d/a", .contents = "stored"},
                      {.name = "d/b", .contents = sample_text(200), .is_deflated = true, .has_late_sizes = true}},
                     {.is_zip64 = is_zip64, .comment = "end"});
        REQUIRE(error_of(whole) == "");
        for (size_t size = 0; size < whole.size(); ++size) {
            CAPTURE(size);
            CHECK(error_of(whole.substr(0, size)) != "");  // the end is missing
            const std::string copy(whole, size);           // the beginning is missing
            if (size > 0) CHECK(error_of(copy) != "");
        }
    }
}

TEST_CASE("zip: a changed byte never changes the contents unnoticed") {
    const std::vector<ZipMember> members = {{.name = "d/a", .contents = "stored"},
                                            {.name = "d/b", .contents = sample_text(300), .is_deflated = true}};
    const std::string whole = make_zip(members, {.is_zip64 = true});
    for (size_t at = 0; at < whole.size(); ++at)
        for (const int change : {1, 4, 128, 255}) {
            std::string bytes = whole;
            bytes[at] = static_cast<char>(bytes[at] ^ change);
            try {
                const ZipArchive archive(as_bytes(bytes), "a.zip");
                for (const ZipMember& member : members) {
                    if (!archive.find(member.name)) continue;
                    CAPTURE(at);
                    const std::string found = contents_of(archive, member.name);
                    CHECK(found == member.contents);
                }
            } catch (const Error&) {  // noticed
            }
        }
}
