// SPDX-License-Identifier: MIT
#include "formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "core/error.h"
#include "core/output_file.h"
#include "formats/json_text.h"
#include "formats/little_endian.h"

namespace mlff {
namespace {

constexpr uint64_t kMaxHeaderSize = 100'000'000;  // as in the reference implementation
constexpr size_t kMaxTensors = 100'000;           // models have hundreds
constexpr std::array<std::pair<std::string_view, DType>, 16> kNames = {{{"F64", DType::float64},
                                                                        {"F32", DType::float32},
                                                                        {"F16", DType::float16},
                                                                        {"BF16", DType::bfloat16},
                                                                        {"F8_E4M3", DType::float8_e4m3},
                                                                        {"F8_E5M2", DType::float8_e5m2},
                                                                        {"I64", DType::int64},
                                                                        {"I32", DType::int32},
                                                                        {"I16", DType::int16},
                                                                        {"I8", DType::int8},
                                                                        {"U64", DType::uint64},
                                                                        {"U32", DType::uint32},
                                                                        {"U16", DType::uint16},
                                                                        {"U8", DType::uint8},
                                                                        {"BOOL", DType::boolean},
                                                                        {"C64", DType::complex64}}};

std::string_view name_of(DType dtype) {
    for (const auto& [name, value] : kNames)
        if (value == dtype) return name;
    return {};
}

// A whole number >= 0 that fits 63 bits.
bool is_size(const JsonValue& value) {
    return value.is_number_unsigned() && value.unsigned_integer() < uint64_t{1} << 62;
}

Tensor read_entry(const JsonValue& entry, Bytes data, const std::string& where) {
    if (!entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
        fail(Status::format, where, " lacks dtype, shape or data_offsets");
    const JsonValue &dtype_json = entry["dtype"], &shape_json = entry["shape"], &offsets = entry["data_offsets"];
    if (!dtype_json.is_string() || !shape_json.is_array() || !offsets.is_array() || offsets.size() != 2 ||
        !is_size(offsets[0]) || !is_size(offsets[1]) || !std::all_of(shape_json.begin(), shape_json.end(), is_size))
        fail(Status::format, where, " has a malformed dtype, shape or data_offsets");
    const std::string& name = dtype_json.text();
    const auto* known =
        std::find_if(kNames.begin(), kNames.end(), [&](const auto& pair) { return pair.first == name; });
    if (known == kNames.end()) fail(Status::unsupported, where, " has dtype ", name, ", which mlff does not read");
    const auto begin = offsets[0].unsigned_integer(), end = offsets[1].unsigned_integer();
    if (begin > end || end > data.size())
        fail(Status::format, where, " (bytes ", begin, " to ", end, ") lies outside the file's ", data.size(),
             " bytes of data");
    std::vector<int64_t> shape;
    for (const JsonValue& extent : shape_json) shape.push_back(extent.integer());
    Tensor tensor = make_tensor(known->second, shape, row_major_strides(shape), 0,
                                data.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), where);
    if (static_cast<uint64_t>(tensor.element_count()) * dtype_size(tensor.dtype) != end - begin)
        fail(Status::format, where, " of shape ", shape_text(shape), " does not fill its ", end - begin, " bytes");
    return tensor;
}

}  // namespace

const Tensor* Safetensors::find(std::string_view name) const {
    for (const auto& [key, tensor] : tensors)
        if (key == name) return &tensor;
    return nullptr;
}

std::string Safetensors::text(const char* key) const {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
}

bool looks_like_safetensors(Bytes bytes) {
    return bytes.size() > 8 && load_le<uint64_t>(bytes, 0) <= bytes.size() - 8 && static_cast<char>(bytes[8]) == '{';
}

Safetensors read_safetensors(Bytes bytes, const std::string& name_for_errors) {
    if (bytes.size() < 8) fail(Status::format, name_for_errors, ": too short for a safetensors file");
    const auto header_size = load_le<uint64_t>(bytes, 0);
    if (header_size > kMaxHeaderSize || header_size > bytes.size() - 8)
        fail(Status::format, name_for_errors, ": the safetensors header claims ", header_size,
             " bytes, expected at most ", std::min<uint64_t>(kMaxHeaderSize, bytes.size() - 8));
    const JsonValue header = parse_json(text_at(bytes, 8, static_cast<size_t>(header_size)), name_for_errors);
    if (!header.is_object()) fail(Status::format, name_for_errors, ": the safetensors header is not a JSON object");
    if (header.size() > kMaxTensors + 1)
        fail(Status::format, name_for_errors, ": a safetensors file of ", header.size(), " tensors, the limit is ",
             kMaxTensors);
    const Bytes data = bytes.subspan(8 + static_cast<size_t>(header_size));

    Safetensors contents;
    for (const auto& [name, entry] : header.object()) {
        if (name == "__metadata__") {
            if (!entry.is_object()) fail(Status::format, name_for_errors, ": __metadata__ is not a JSON object");
            for (const auto& [key, value] : entry.object()) {
                if (!value.is_string()) fail(Status::format, name_for_errors, ": metadata '", key, "' is not text");
                contents.metadata[key] = value.text();
            }
            continue;
        }
        contents.tensors.emplace_back(name, read_entry(entry, data, concat(name_for_errors, ": tensor '", name, "'")));
    }
    std::stable_sort(contents.tensors.begin(), contents.tensors.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second.storage.data(), a.second.storage.size()) <
               std::pair(b.second.storage.data(), b.second.storage.size());
    });
    const std::byte* expected = data.data();
    for (const auto& [name, tensor] : contents.tensors) {
        if (tensor.storage.data() != expected)
            fail(Status::format, name_for_errors, ": tensor '", name, "' leaves a gap or overlaps the one before it");
        expected += tensor.storage.size();
    }
    if (expected != data.data() + data.size())
        fail(Status::format, name_for_errors, ": there are bytes after the last tensor");
    return contents;
}

void write_safetensors(const std::string& path, const Safetensors& contents) {
    std::vector<const std::pair<std::string, Tensor>*> order;
    std::set<std::string_view> names;
    for (const auto& entry : contents.tensors) {
        if (!names.insert(entry.first).second || entry.first == "__metadata__")
            fail(Status::argument, path, ": two tensors are called '", entry.first, "'");
        if (name_of(entry.second.dtype).empty())
            fail(Status::argument, path, ": safetensors has no type for tensor '", entry.first, "' of ",
                 dtype_name(entry.second.dtype));
        order.push_back(&entry);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
        return dtype_size(a->second.dtype) > dtype_size(b->second.dtype);
    });

    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!contents.metadata.empty()) header["__metadata__"] = contents.metadata;
    uint64_t offset = 0;
    for (const auto* entry : order) {
        const Tensor& tensor = entry->second;
        const uint64_t end = offset + static_cast<uint64_t>(tensor.element_count()) * dtype_size(tensor.dtype);
        header[entry->first] = {
            {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
        offset = end;
    }
    std::string text;
    try {
        text = header.dump();
    } catch (const nlohmann::json::exception& error) {
        fail(Status::argument, path, ": a tensor name or metadata is not UTF-8 text: ", error.what());
    }
    text.resize((text.size() + 7) / 8 * 8, ' ');

    OutputFile file(path);
    uint64_t header_size = text.size();
    if constexpr (std::endian::native == std::endian::big) header_size = byte_swapped(header_size);
    file.write(&header_size, sizeof header_size);
    file.write(text.data(), text.size());
    std::vector<std::byte> row_major;
    for (const auto* entry : order) {
        row_major.resize(static_cast<size_t>(entry->second.element_count()) * dtype_size(entry->second.dtype));
        entry->second.copy_bytes_to(row_major.data());
        file.write(row_major.data(), row_major.size());
    }
    file.commit();
}

}  // namespace mlff
