// SPDX-License-Identifier: MIT
// Pickles and torch archives put together from instructions. Every function of namespace pickle gives the bytes that
// leave one value on the stack, so they nest: tuple({integer(1), text("a")}).
#pragma once

#include <bit>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "zip_writer.h"

namespace mlff::test {
namespace pickle {

using Values = std::vector<std::string>;
using Entries = std::vector<std::pair<std::string, std::string>>;  // text key, value

inline std::string joined(const Values& values) {
    std::string bytes;
    for (const std::string& value : values) bytes += value;
    return bytes;
}

inline std::string none() { return "N"; }
inline std::string boolean(bool value) { return value ? "\x88" : "\x89"; }
inline std::string integer(int64_t value) {
    if (value >= 0 && value < 256) return "K" + little_endian(static_cast<uint64_t>(value), 1);
    if (value >= INT32_MIN && value <= INT32_MAX) return "J" + little_endian(static_cast<uint64_t>(value), 4);
    return "\x8a\x08" + little_endian(static_cast<uint64_t>(value), 8);
}
inline std::string real(double value) {
    std::string bytes = little_endian(std::bit_cast<uint64_t>(value), 8);
    return "G" + std::string(bytes.rbegin(), bytes.rend());
}
inline std::string text(std::string_view value) { return "X" + little_endian(value.size(), 4) + std::string(value); }
inline std::string global(const std::string& module, const std::string& name) {
    return "c" + module + "\n" + name + "\n";
}
// "torch.nn.Module" -> module torch.nn, name Module
inline std::string global(const std::string& path) {
    return global(path.substr(0, path.rfind('.')), path.substr(path.rfind('.') + 1));
}
inline std::string tuple(const Values& values) { return values.empty() ? ")" : "(" + joined(values) + "t"; }
inline std::string list(const Values& values) { return "](" + joined(values) + "e"; }
inline std::string dict(const Entries& entries) {
    std::string bytes = "}(";
    for (const auto& [key, value] : entries) bytes += text(key) + value;
    return bytes + "u";
}
inline std::string put(int slot) {
    return "q" + little_endian(static_cast<uint64_t>(slot), 1);
}  // names the value before it
inline std::string get(int slot) { return "h" + little_endian(static_cast<uint64_t>(slot), 1); }
inline std::string call(const std::string& function, const Values& arguments) {
    return global(function) + tuple(arguments) + "R";
}
inline std::string object(const std::string& class_path, const Values& arguments = {}) {
    return global(class_path) + tuple(arguments) + "\x81";
}
inline std::string build(const std::string& value, const std::string& state) { return value + state + "b"; }
inline std::string document(const std::string& value, int protocol = 2) {
    return "\x80" + little_endian(static_cast<uint64_t>(protocol), 1) + value + ".";
}

// Bytes as protocol 2 has them: text whose code points are the bytes.
inline std::string bytes(std::string_view value) {
    std::string utf8;
    for (char letter : value) {
        const auto byte = static_cast<unsigned char>(letter);
        if (byte >= 0x80) utf8.push_back(static_cast<char>(0xc0 | (byte >> 6)));
        utf8.push_back(static_cast<char>(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte));
    }
    return call("_codecs.encode", {text(utf8), text("latin1")});
}

// ---- what torch writes ----
inline std::string integers(const std::vector<int64_t>& values) {
    Values items;
    for (int64_t value : values) items.push_back(integer(value));
    return tuple(items);
}
inline std::string storage(const std::string& type, const std::string& key, int64_t count,
                           const std::string& location = "cpu") {
    return tuple({text("storage"), global("torch." + type), text(key), text(location), integer(count)}) + "Q";
}
inline std::string tensor(const std::string& storage_bytes, const std::vector<int64_t>& shape,
                          const std::vector<int64_t>& strides, int64_t offset = 0) {
    return call("torch._utils._rebuild_tensor_v2", {storage_bytes, integer(offset), integers(shape), integers(strides),
                                                    boolean(false), call("collections.OrderedDict", {})});
}
inline std::string parameter(const std::string& tensor_bytes) {
    return call("torch._utils._rebuild_parameter", {tensor_bytes, boolean(true), call("collections.OrderedDict", {})});
}

struct ModuleParts {
    Entries parameters = {}, buffers = {}, children = {}, attributes = {};
};
inline std::string module(const std::string& class_path, const ModuleParts& parts) {
    Entries state = {{"training", boolean(false)},
                     {"_parameters", dict(parts.parameters)},
                     {"_buffers", dict(parts.buffers)},
                     {"_modules", dict(parts.children)}};
    state.insert(state.end(), parts.attributes.begin(), parts.attributes.end());
    return build(object(class_path), dict(state));
}

}  // namespace pickle

using Storages = std::vector<std::pair<std::string, std::string>>;  // key, bytes

// An archive as torch.save writes it: stored members, sizes in the directory only, zip64 records at the end.
inline std::vector<ZipMember> torch_members(const std::string& data_pkl, const Storages& storages = {}) {
    std::vector<ZipMember> members = {{.name = "archive/data.pkl", .contents = data_pkl, .has_late_sizes = true}};
    for (const auto& [key, bytes] : storages)
        members.push_back({.name = "archive/data/" + key, .contents = bytes, .has_late_sizes = true});
    members.push_back({.name = "archive/version", .contents = "3\n", .has_late_sizes = true});
    return members;
}
inline std::string torch_archive(const std::string& value, const Storages& storages = {}) {
    return make_zip(torch_members(pickle::document(value), storages), {.is_zip64 = true});
}

inline std::string floats(std::initializer_list<float> values) {
    std::string bytes;
    for (float value : values) bytes += little_endian(std::bit_cast<uint32_t>(value), 4);
    return bytes;
}
inline std::string doubles(std::initializer_list<double> values) {
    std::string bytes;
    for (double value : values) bytes += little_endian(std::bit_cast<uint64_t>(value), 8);
    return bytes;
}

}  // namespace mlff::test
