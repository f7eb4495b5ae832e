// SPDX-License-Identifier: MIT
#include "engine/embedded_models.h"

#include <zlib.h>

#include "core/embed_file.h"
#include "core/error.h"

MLFF_EMBED_FILE(mlff_student, MLFF_STUDENT_FILE)
MLFF_EMBED_FILE(mlff_student_trust, MLFF_STUDENT_TRUST_FILE)
MLFF_EMBED_FILE(mlff_self_test, MLFF_SELF_TEST_FILE)

namespace mlff {

Bytes embedded_student() { return MLFF_EMBEDDED(mlff_student); }
Bytes embedded_student_trust() { return MLFF_EMBEDDED(mlff_student_trust); }

std::shared_ptr<const std::vector<std::byte>> embedded_self_test_model() {
    const Bytes packed = MLFF_EMBEDDED(mlff_self_test);
    // The last four bytes of a gzip file are the unpacked size, little-endian.
    uint32_t size = 0;
    for (size_t i = 0; i < 4; ++i) size |= std::to_integer<uint32_t>(packed[packed.size() - 4 + i]) << (8 * i);
    auto bytes = std::make_shared<std::vector<std::byte>>(size);
    z_stream stream{};
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(bytes->data());
    stream.avail_out = size;
    constexpr int kGzip = 16;
    if (inflateInit2(&stream, MAX_WBITS + kGzip) != Z_OK) throw std::bad_alloc();
    const int status = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    if (status != Z_STREAM_END || stream.avail_out != 0)
        fail(Status::internal, "the model 'self-test' inside the library is damaged");
    return bytes;
}

}  // namespace mlff
