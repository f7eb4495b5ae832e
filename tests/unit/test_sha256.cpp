// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "byte_writer.h"
#include "core/sha256.h"

using namespace mlff;
using namespace mlff::test;

TEST_CASE("sha256: vectors of FIPS 180-4") {
    const std::pair<std::string, const char*> vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqr"
         "stu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
        {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (const auto& [text, digest] : vectors) {
        CHECK(sha256_hex(as_bytes(text)) == digest);
        CHECK(sha256_hex_portable(as_bytes(text)) == digest);
    }
}

TEST_CASE("sha256: the fast way gives what the portable one does") {
    std::mt19937_64 random(1);
    std::vector<std::byte> data(8 << 20);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random());
    const Bytes all(data);
    for (size_t size = 0; size <= 300; ++size) {
        CAPTURE(size);
        CHECK(sha256_hex(all.subspan(size % 7, size)) == sha256_hex_portable(all.subspan(size % 7, size)));
    }
    CHECK(sha256_hex(all) == sha256_hex_portable(all));
    CHECK(sha256_hex(all.subspan(1)) == sha256_hex_portable(all.subspan(1)));
    CHECK(sha256_hex(all) != sha256_hex(all.subspan(1)));
}
