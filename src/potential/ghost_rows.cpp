// SPDX-License-Identifier: MIT
#include "potential/ghost_rows.h"

#include <cstring>

namespace mlff {
namespace {

char* row_of(const DomainRows& rows, int64_t atom) {
    return static_cast<char*>(rows.first) + static_cast<size_t>(atom) * rows.row_bytes;
}

}  // namespace

void GhostRows::fill(const Halo& halo, int64_t owned_count, std::span<const DomainRows> rows) {
    size_t row_bytes = 0;
    for (const DomainRows& array : rows) row_bytes += array.row_bytes;
    sent_.resize_discard(halo.sent.size() * row_bytes);
    received_.resize_discard(static_cast<size_t>(halo.received_count) * row_bytes);

    char* packed = sent_.data();
    for (const int32_t atom : halo.sent)
        for (const DomainRows& array : rows) {
            std::memcpy(packed, row_of(array, atom), array.row_bytes);
            packed += array.row_bytes;
        }
    halo.exchange->exchange(sent_.data(), received_.data(), row_bytes);
    for (size_t ghost = 0; ghost < halo.source.size(); ++ghost) {
        const int64_t source = halo.source[ghost];
        size_t array_begin = 0;  // in a packed row
        for (const DomainRows& array : rows) {
            const char* found = source < 0 ? row_of(array, -1 - source)
                                           : received_.data() + static_cast<size_t>(source) * row_bytes + array_begin;
            std::memcpy(row_of(array, owned_count + static_cast<int64_t>(ghost)), found, array.row_bytes);
            array_begin += array.row_bytes;
        }
    }
}

}  // namespace mlff
