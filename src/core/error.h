// SPDX-License-Identifier: MIT
// The only exception type of the library. src/api turns it into a status and a message.
#pragma once

#include <initializer_list>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "core/utf8.h"

namespace mlff {

enum class Status : int {  // the values of mlff_status in mlff.h
    ok = 0,
    argument = 1,
    file = 2,
    format = 3,
    unsupported = 4,
    system = 5,
    device = 6,
    memory = 7,
    internal = 8,
};

class Error : public std::runtime_error {
public:
    Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
    Status status() const { return status_; }

private:
    Status status_;
};

// One part of a message and the function that writes it. This generates code once per type, not once per combination of
// types, which would be a sixth of the library.
struct TextPart {
    const void* value;
    void (*write)(std::ostream& stream, const void* value);
};

template <class Part>
TextPart text_part(const Part& part) {
    if constexpr (std::is_array_v<Part>)  // a literal
        return {part, [](std::ostream& stream, const void* value) { stream << static_cast<const char*>(value); }};
    else if constexpr (std::is_function_v<Part>)  // std::fixed
        return {reinterpret_cast<const void*>(&part), [](std::ostream& stream, const void* value) {
                    stream << reinterpret_cast<Part*>(const_cast<void*>(value));
                }};
    else
        return {std::addressof(part),
                [](std::ostream& stream, const void* value) { stream << *static_cast<const Part*>(value); }};
}

__attribute__((noinline)) inline std::string join_parts(std::initializer_list<TextPart> parts) {
    std::ostringstream text;
    text.exceptions(
        std::ios_base::badbit);  // throw when out of memory; by default a stream ignores it and truncates the text
    for (const TextPart& part : parts) part.write(text, part.value);
    return text.str();
}

// concat("atom ", 7, " of ", path): joins everything that has an operator<< into one string.
template <class... Parts>
std::string concat(const Parts&... parts) {
    return join_parts({text_part(parts)...});
}

// Makes a message safe to print. Messages quote file contents, which may be long or contain control characters. The
// result is one line of moderate length; the beginning (the path) and the end (the reason) are kept.
__attribute__((noinline)) inline std::string as_message(std::string text) {
    constexpr size_t kHead = 1000, kTail = 500;
    if (text.size() > kHead + kTail) {
        const auto is_inside_character = [&](size_t at) {
            return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
        };
        size_t head = kHead, tail = text.size() - kTail;
        while (head > 0 && is_inside_character(head)) --head;
        while (tail < text.size() && is_inside_character(tail)) ++tail;
        text = text.substr(0, head) + " ... " + text.substr(tail);
    }
    return printable(text);
}

[[noreturn]] __attribute__((noinline)) inline void fail_with(Status status, std::initializer_list<TextPart> parts) {
    throw Error(status, as_message(join_parts(parts)));
}

template <class... Parts>
[[noreturn]] void fail(Status status, const Parts&... parts) {
    fail_with(status, {text_part(parts)...});
}

}  // namespace mlff
