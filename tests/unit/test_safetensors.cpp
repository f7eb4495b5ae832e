// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>

#include "../sanitized.h"
#include "byte_writer.h"
#include "capture_binding.h"
#include "core/error.h"
#include "formats/safetensors.h"
#include "model_files.h"

using namespace mlff;
using namespace mlff::test;

namespace {

using Reals = std::vector<double>;
using Integers = std::vector<int64_t>;

constexpr DType kWritable[] = {DType::float64,     DType::float32,     DType::float16, DType::bfloat16,
                               DType::float8_e4m3, DType::float8_e5m2, DType::int64,   DType::int32,
                               DType::int16,       DType::int8,        DType::uint64,  DType::uint32,
                               DType::uint16,      DType::uint8,       DType::boolean, DType::complex64};

std::string file_of(const std::string& header, const std::string& data) {
    return little_endian(header.size(), 8) + header + data;
}

std::string repeated(const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
}

std::string row_major_bytes(const Tensor& tensor) {
    std::string bytes(static_cast<size_t>(tensor.element_count()) * dtype_size(tensor.dtype), '?');
    tensor.copy_bytes_to(reinterpret_cast<std::byte*>(bytes.data()));
    return bytes;
}

void check_refused(const std::string& what, const std::string& bytes, const std::string& words,
                   Status status = Status::format) {
    CAPTURE(what);
    std::string message = "no error";
    try {
        read_safetensors(as_bytes(bytes), "x.safetensors");
    } catch (const Error& error) {
        CHECK(error.status() == status);
        message = error.what();
        CHECK(message.find("x.safetensors") == 0);
    }
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("safetensors: all types and strides survive writing and reading") {
    const TemporaryDirectory directory;
    const std::string path = directory.file("x.safetensors");
    std::string storage;
    for (int i = 0; i < 24 * 16; ++i) storage.push_back(static_cast<char>(i * 37));
    for (char& byte : storage) byte &= 1;  // bytes that are fine for flags too
    Safetensors contents;
    for (const DType dtype : kWritable) {
        const std::string name(dtype_name(dtype));
        const auto add = [&](const std::string& kind, Integers shape, Integers strides, int64_t offset) {
            contents.tensors.emplace_back(name + "." + kind,
                                          make_tensor(dtype, shape, strides, offset, as_bytes(storage), name));
        };
        add("plain", {2, 3}, {3, 1}, 1);
        add("transposed", {3, 2}, {1, 3}, 0);
        add("expanded", {2, 5}, {1, 0}, 3);
        add("scalar", {}, {}, 2);
        add("empty", {0, 4}, {4, 1}, 0);
        add("odd", {1}, {1}, 7);
        contents.tensors.emplace_back(name + ".big", contents.tensors.back().second);
        contents.tensors.back().second.is_big_endian = true;
    }
    contents.metadata = {{"format", "test"},
                         {"quotes", "\"\\\n\t"},
                         {"Gr\xc3\xb6\xc3\x9f"
                          "e",
                          ""}};
    write_safetensors(path, contents);

    const std::string bytes = read_bytes(path);
    CHECK(looks_like_safetensors(as_bytes(bytes)));
    const Safetensors again = read_safetensors(as_bytes(bytes), path);
    CHECK(again.metadata == contents.metadata);
    REQUIRE(again.tensors.size() == contents.tensors.size());
    for (const auto& [name, tensor] : contents.tensors) {
        CAPTURE_BINDING(name);
        const Tensor* found = again.find(name);
        REQUIRE(found);
        CHECK(found->dtype == tensor.dtype);
        CHECK(found->shape == tensor.shape);
        CHECK(found->is_contiguous());
        CHECK(!found->is_big_endian);
        CHECK(row_major_bytes(*found) == row_major_bytes(tensor));
        const auto at = static_cast<size_t>(found->storage.data() - as_bytes(bytes).data());
        CHECK(at % dtype_size(tensor.dtype) == 0);
    }
    CHECK(again.find("other") == nullptr);
    write_safetensors(directory.file("y.safetensors"), again);
    CHECK(read_bytes(directory.file("y.safetensors")) == bytes);
}

TEST_CASE("safetensors: a file of the reference implementation") {
    const std::string path = std::string(MLFF_TEST_DATA_DIR) + "/safetensors/from_pypi.safetensors";
    const std::string bytes = read_bytes(path);
    const Safetensors contents = read_safetensors(as_bytes(bytes), path);
    CHECK(contents.metadata == std::map<std::string, std::string>{{"note", "written by safetensors 0.8.0"},
                                                                  {"gr\xc3\xb6\xc3\x9f"
                                                                   "e",
                                                                   "\"quoted\"\n"}});
    CHECK(contents.tensors.size() == 8);
    CHECK(contents.find("weight")->shape == Integers{2, 3});
    CHECK(contents.find("weight")->to_doubles() == Reals{0, 1.5, -2, 3, 4, 5e30f});
    CHECK(contents.find("energy")->item() == -0.1);
    CHECK(contents.find("flags")->to_integers() == Integers{1, 0, 1});
    CHECK(contents.find("empty")->shape == Integers{0, 3});
    CHECK(contents.find("half")->to_doubles() == Reals{1.5, -2});
    CHECK(contents.find("counts")->to_integers() == Integers{-1, int64_t{1} << 40});
    CHECK(contents.find("small")->to_integers() == Integers{-1, 7});
    CHECK(contents.find("transposed")->to_integers() == Integers{0, 3, 1, 4, 2, 5});
}

TEST_CASE("safetensors: no tensors, and no metadata") {
    const TemporaryDirectory directory;
    write_safetensors(directory.file("x"), {});
    CHECK(read_bytes(directory.file("x")) == file_of("{}      ", ""));
    CHECK(read_safetensors(as_bytes(file_of("{}", "")), "x").tensors.empty());
    CHECK(read_safetensors(as_bytes(file_of("{\"__metadata__\":{}}  \n", "")), "x").metadata.empty());
}

TEST_CASE("safetensors: what cannot be written leaves nothing behind") {
    const TemporaryDirectory directory;
    const std::string path = directory.file("x.safetensors");
    const std::string storage(16, '\0');
    const Tensor good = make_tensor(DType::float32, {4}, {1}, 0, as_bytes(storage), "t");
    const auto refused = [&](const Safetensors& contents) {
        try {
            write_safetensors(path, contents);
        } catch (const Error& error) {
            CHECK(error.status() == Status::argument);
            CHECK(std::string(error.what()).find(path) == 0);
            return !std::filesystem::exists(path);
        }
        return false;
    };
    CHECK(refused({{{"a", good}, {"a", good}}, {}}));
    CHECK(refused({{{"__metadata__", good}}, {}}));
    CHECK(refused({{{"a", make_tensor(DType::complex128, {1}, {1}, 0, as_bytes(storage), "t")}}, {}}));
    CHECK(refused({{{"\xff", good}}, {}}));
    CHECK(refused({{}, {{"key", "\xff"}}}));
    CHECK_THROWS_AS(write_safetensors(directory.file("no such directory/x"), {}), Error);
    write_bytes(path, "precious");
    CHECK_THROWS_AS(write_safetensors(path, {{{"a", good}, {"a", good}}, {}}), Error);
    CHECK(read_bytes(path) == "precious");
    write_safetensors(path, {{{"a", good}}, {}});
    CHECK(read_bytes(path).size() > 16);
    int files = 0;
    for ([[maybe_unused]] const auto& file :
         std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()))
        ++files;
    CHECK(files == 1);
}

TEST_CASE("safetensors: broken files are refused") {
    const auto entry = [](const std::string& offsets, const std::string& shape = "[2]",
                          const std::string& dtype = "\"F32\"") {
        return "{\"a\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
    };
    const std::string data(8, 'x');
    CHECK(read_safetensors(as_bytes(file_of(entry("[0,8]"), data)), "x").tensors.size() == 1);

    check_refused("empty", "", "too short");
    check_refused("seven bytes", "1234567", "too short");
    check_refused("header longer than the file", little_endian(100, 8) + "{}", "claims 100 bytes");
    check_refused("header longer than anything", little_endian(~uint64_t{0}, 8) + "{}",
                  "claims 18446744073709551615 bytes");
    check_refused("no JSON", file_of("{\"a\"", ""), "malformed JSON");
    check_refused("two JSON values", file_of("{}{}", ""), "malformed JSON");
    check_refused("zero bytes after the header", file_of(std::string("{}\0", 3), ""), "malformed JSON");
    check_refused("JSON that is not UTF-8", file_of("{\"\xff\":1}", ""), "malformed JSON");
    check_refused("a number that is none", file_of("{\"a\":1e999}", ""), "malformed JSON");
    check_refused("an array", file_of("[]", ""), "not a JSON object");
    check_refused("deep JSON", file_of("{\"a\":" + std::string(100'000, '['), ""), "levels deep");
    check_refused("deep JSON objects",
                  file_of(
                      [] {
                          std::string text;
                          for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
                          return text;
                      }(),
                      ""),
                  "levels deep");
    check_refused("a key twice", file_of("{\"a\":1,\"a\":2}", ""), "'a' occurs twice");
    check_refused("a key twice in an entry", file_of("{\"a\":{\"dtype\":1,\"dtype\":2}}", ""), "'dtype' occurs twice");
    check_refused("metadata that is a list", file_of("{\"__metadata__\":[]}", ""), "__metadata__ is not");
    check_refused("metadata with a number", file_of("{\"__metadata__\":{\"k\":1}}", ""), "metadata 'k' is not text");
    check_refused("entry that is text", file_of("{\"a\":\"F32\"}", data), "lacks dtype, shape or data_offsets");
    check_refused("entry without offsets", file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", data),
                  "lacks dtype, shape or data_offsets");
    check_refused("unknown type", file_of(entry("[0,8]", "[2]", "\"F3\""), data), "dtype F3, which mlff does not read",
                  Status::unsupported);
    check_refused("type that is a number", file_of(entry("[0,8]", "[2]", "32"), data), "malformed");
    check_refused("one offset", file_of(entry("[0]"), data), "malformed");
    check_refused("three offsets", file_of(entry("[0,8,8]"), data), "malformed");
    check_refused("negative offset", file_of(entry("[-8,0]"), data), "malformed");
    check_refused("offset with a fraction", file_of(entry("[0,8.0]"), data), "malformed");
    check_refused("huge offset", file_of(entry("[0,18446744073709551615]"), data), "malformed");
    check_refused("offset beyond 64 bits", file_of(entry("[0,18446744073709551616]"), data), "malformed");
    check_refused("offset outside the file", file_of(entry("[0,9]"), data), "lies outside the file");
    check_refused("end before begin", file_of(entry("[8,0]"), data), "lies outside the file");
    check_refused("negative extent", file_of(entry("[0,8]", "[-2]"), data), "malformed");
    check_refused("shape that is a number", file_of(entry("[0,8]", "2"), data), "malformed");
    check_refused("too small for its shape", file_of(entry("[0,8]", "[3]"), data), "reaches outside its storage");
    check_refused("too large for its shape", file_of(entry("[0,8]", "[1]"), data), "does not fill its 8 bytes");
    check_refused("a scalar of two", file_of(entry("[0,8]", "[]"), data), "does not fill its 8 bytes");
    check_refused("overflowing shape", file_of(entry("[0,8]", "[4611686018427387903,4611686018427387903]"), data),
                  "reaches outside its storage");
    check_refused("overflowing empty shape", file_of(entry("[0,0]", "[4611686018427387903,4611686018427387903,0]"), ""),
                  "reaches outside");
    check_refused("bytes after the last tensor", file_of(entry("[0,8]"), data + "x"), "bytes after the last tensor");
    check_refused("bytes before the first tensor", file_of(entry("[1,9]"), data + "x"), "gap or overlaps");
    const auto two = [](const std::string& first, const std::string& second) {
        return "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + first +
               "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + second + "}}";
    };
    CHECK(read_safetensors(as_bytes(file_of(two("[4,8]", "[0,4]"), data)), "x").tensors[0].first == "b");
    check_refused("a gap", file_of(two("[0,4]", "[5,9]"), data + "x"), "gap or overlaps");
    check_refused("an overlap", file_of(two("[0,4]", "[3,7]"), data), "gap or overlaps");
    check_refused("the same bytes twice", file_of(two("[0,4]", "[0,4]"), data), "gap or overlaps");
}

TEST_CASE("safetensors: a header of many tensors takes a time that grows with their number") {
    const auto file_with = [](int count) {
        std::string header = "{";
        for (int i = 0; i < count; ++i)
            header +=
                (i ? ",\"" : "\"") + std::to_string(i) + "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}";
        return file_of(header + "}", "");
    };
    const std::string file = file_with(40'000);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(read_safetensors(as_bytes(file), "x").tensors.size() == 40'000);
    CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() <
          (test::kIsSanitized ? 60 : 10));  // two minutes without sanitizers where it grows with the square
    check_refused("too many tensors", file_with(100'002), "the limit is 100000");
    check_refused("too many values", file_of("[0" + repeated(",0", 4'000'000) + "]", ""), "more than 4000000 values");
}

TEST_CASE("safetensors: cut off at any byte") {
    const std::string path = std::string(MLFF_TEST_DATA_DIR) + "/safetensors/from_pypi.safetensors";
    const std::string whole = read_bytes(path);
    for (size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        CHECK_THROWS_AS(read_safetensors(as_bytes(whole.substr(0, size)), "x"), Error);
    }
}
