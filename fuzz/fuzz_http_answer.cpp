// SPDX-License-Identifier: MIT
// Reads arbitrary bytes as the answer of a web server. Redirects that are followed lead to https, or stay on this
// machine, and mean the same when they are read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "tools/fetch/address.h"
#include "tools/fetch/answer.h"

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

void follow(const char* from, const std::string& location) {
    try {
        const mlff::fetch::Address begin = mlff::fetch::parse_address(from);
        const mlff::fetch::Address target = mlff::fetch::redirected(begin, location);
        require(target.scheme == "https" || (target.is_loopback && begin.is_loopback));
        require(begin.is_loopback || !target.is_loopback);
        require(target.authority.find('@') == std::string::npos && target.rest.starts_with('/'));
        const mlff::fetch::Address again = mlff::fetch::parse_address(target.text());
        require(again.text() == target.text() && again.authority == target.authority &&
                again.is_loopback == target.is_loopback);
        require(target.file_name().find('/') == std::string::npos);
    } catch (const mlff::Error&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const size_t header = mlff::fetch::header_size(text);
    require(header <= size);
    try {
        const mlff::fetch::Answer answer = mlff::fetch::parse_answer(text.substr(0, header));
        require(answer.status >= 100 && answer.status <= 999 && answer.length >= -1 && answer.range_begin >= -1 &&
                answer.total >= -1);
        follow("https://example.org/folder/file?query", answer.location);
        follow("http://127.0.0.1:8000/folder/file", answer.location);
    } catch (const mlff::Error&) {}
    return 0;
}
