// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "byte_writer.h"
#include "core/error.h"
#include "formats/tensor.h"

using namespace mlff;
using namespace mlff::test;

namespace {

using Reals = std::vector<double>;
using Integers = std::vector<int64_t>;

Tensor vector_of(DType dtype, const std::string& bytes) {
    const auto count = static_cast<int64_t>(bytes.size() / dtype_size(dtype));
    return make_tensor(dtype, {count}, {1}, 0, as_bytes(bytes), "t");
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
    std::string bytes;
    for (T value : values) {
        char raw[sizeof(T)];
        std::memcpy(raw, &value, sizeof(T));
        if constexpr (std::endian::native == std::endian::big) std::reverse(raw, raw + sizeof(T));
        bytes.append(raw, sizeof(T));
    }
    return bytes;
}

double small(DType dtype, unsigned bits) {
    const std::string bytes = little_endian(bits, static_cast<int>(dtype_size(dtype)));
    return make_tensor(dtype, {}, {}, 0, as_bytes(bytes), "t").item();
}

std::string row_major_bytes(const Tensor& tensor) {
    std::string bytes(static_cast<size_t>(tensor.element_count()) * dtype_size(tensor.dtype), '?');
    tensor.copy_bytes_to(reinterpret_cast<std::byte*>(bytes.data()));
    return bytes;
}

std::string refusal(DType dtype, Integers shape, Integers strides, int64_t offset, const std::string& bytes) {
    try {
        make_tensor(dtype, std::move(shape), std::move(strides), offset, as_bytes(bytes), "here");
    } catch (const Error& error) {
        CHECK(error.status() == Status::format);
        CHECK(std::string(error.what()).find("here ") == 0);
        return error.what();
    }
    return {};
}

const std::string kTwelve = bytes_of<int32_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});

}  // namespace

TEST_CASE("tensor: names and sizes of the types") {
    for (const auto& [dtype, name, size] : {std::tuple(DType::float64, "float64", 8u),
                                            {DType::float32, "float32", 4u},
                                            {DType::float16, "float16", 2u},
                                            {DType::bfloat16, "bfloat16", 2u},
                                            {DType::float8_e4m3, "float8_e4m3", 1u},
                                            {DType::float8_e5m2, "float8_e5m2", 1u},
                                            {DType::int64, "int64", 8u},
                                            {DType::int32, "int32", 4u},
                                            {DType::int16, "int16", 2u},
                                            {DType::int8, "int8", 1u},
                                            {DType::uint64, "uint64", 8u},
                                            {DType::uint32, "uint32", 4u},
                                            {DType::uint16, "uint16", 2u},
                                            {DType::uint8, "uint8", 1u},
                                            {DType::boolean, "bool", 1u},
                                            {DType::complex64, "complex64", 8u},
                                            {DType::complex128, "complex128", 16u}}) {
        CHECK(dtype_name(dtype) == name);
        CHECK(dtype_size(dtype) == size);
        CHECK(is_floating(dtype) == (std::string_view(name).find("float") != std::string_view::npos));
    }
}

TEST_CASE("tensor: values of every type") {
    CHECK(vector_of(DType::float64, bytes_of<double>({0.1, -1e300})).to_doubles() == Reals{0.1, -1e300});
    CHECK(vector_of(DType::float32, bytes_of<float>({0.1f, -3})).to_doubles() == Reals{0.1f, -3});
    CHECK(vector_of(DType::int64, bytes_of<int64_t>({INT64_MIN, 5})).to_integers() == Integers{INT64_MIN, 5});
    CHECK(vector_of(DType::int32, bytes_of<int32_t>({INT32_MIN, 5})).to_integers() == Integers{INT32_MIN, 5});
    CHECK(vector_of(DType::int16, bytes_of<int16_t>({-300, 5})).to_integers() == Integers{-300, 5});
    CHECK(vector_of(DType::int8, bytes_of<int8_t>({-3, 5})).to_integers() == Integers{-3, 5});
    CHECK(vector_of(DType::uint64, bytes_of<uint64_t>({7, INT64_MAX})).to_integers() == Integers{7, INT64_MAX});
    CHECK(vector_of(DType::uint32, bytes_of<uint32_t>({UINT32_MAX})).to_integers() == Integers{UINT32_MAX});
    CHECK(vector_of(DType::uint16, bytes_of<uint16_t>({UINT16_MAX})).to_integers() == Integers{UINT16_MAX});
    CHECK(vector_of(DType::uint8, bytes_of<uint8_t>({200})).to_integers() == Integers{200});
    CHECK(vector_of(DType::boolean, bytes_of<uint8_t>({0, 1, 2})).to_integers() == Integers{0, 1, 1});
    CHECK(vector_of(DType::int16, bytes_of<int16_t>({-300})).to_doubles() == Reals{-300});
    CHECK(vector_of(DType::uint64, bytes_of<uint64_t>({uint64_t{1} << 63})).to_doubles() == Reals{std::ldexp(1.0, 63)});
    CHECK_THROWS_AS(vector_of(DType::uint64, bytes_of<uint64_t>({uint64_t{1} << 63})).to_integers(), Error);
    CHECK(std::isnan(vector_of(DType::float64, bytes_of<double>({std::nan("")})).item()));
    CHECK(vector_of(DType::float32, bytes_of<float>({-HUGE_VALF})).item() == -HUGE_VAL);
}

TEST_CASE("tensor: short floats") {
    CHECK(small(DType::float16, 0x3c00) == 1);
    CHECK(small(DType::float16, 0xc000) == -2);
    CHECK(small(DType::float16, 0x7bff) == 65504);
    CHECK(small(DType::float16, 0x0001) == std::ldexp(1.0, -24));
    CHECK(small(DType::float16, 0x03ff) == std::ldexp(1023.0, -24));
    CHECK(small(DType::float16, 0x0400) == std::ldexp(1.0, -14));
    CHECK(std::signbit(small(DType::float16, 0x8000)));
    CHECK(small(DType::float16, 0x7c00) == HUGE_VAL);
    CHECK(small(DType::float16, 0xfc00) == -HUGE_VAL);
    CHECK(std::isnan(small(DType::float16, 0x7e00)));
    CHECK(small(DType::bfloat16, 0x3f80) == 1);
    CHECK(small(DType::bfloat16, 0xc049) == -3.140625);
    CHECK(small(DType::bfloat16, 0x7f80) == HUGE_VAL);
    CHECK(std::isnan(small(DType::bfloat16, 0x7fc0)));
    CHECK(small(DType::bfloat16, 0x0001) == std::ldexp(1.0, -133));
    CHECK(small(DType::float8_e4m3, 0x38) == 1);
    CHECK(small(DType::float8_e4m3, 0xc0) == -2);
    CHECK(small(DType::float8_e4m3, 0x7e) == 448);  // the largest: there is no infinity
    CHECK(std::isnan(small(DType::float8_e4m3, 0x7f)));
    CHECK(std::isnan(small(DType::float8_e4m3, 0xff)));
    CHECK(small(DType::float8_e4m3, 0x01) == std::ldexp(1.0, -9));
    CHECK(small(DType::float8_e5m2, 0x3c) == 1);
    CHECK(small(DType::float8_e5m2, 0x7b) == 57344);
    CHECK(small(DType::float8_e5m2, 0x7c) == HUGE_VAL);
    CHECK(std::isnan(small(DType::float8_e5m2, 0x7d)));
    CHECK(small(DType::float8_e5m2, 0x01) == std::ldexp(1.0, -16));
}

TEST_CASE("tensor: complex numbers are kept but not converted") {
    const std::string bytes = bytes_of<float>({1, 2, 3, 4});
    const Tensor tensor = vector_of(DType::complex64, bytes);
    CHECK(tensor.element_count() == 2);
    CHECK_THROWS_AS(tensor.to_doubles(), Error);
    CHECK_THROWS_AS(tensor.to_integers(), Error);
    CHECK(row_major_bytes(tensor) == bytes);
    CHECK_THROWS_AS(vector_of(DType::float32, bytes_of<float>({1})).to_integers(), Error);
}

TEST_CASE("tensor: strides and offsets") {
    const auto view = [](Integers shape, Integers strides, int64_t offset = 0) {
        return make_tensor(DType::int32, std::move(shape), std::move(strides), offset, as_bytes(kTwelve), "t");
    };
    CHECK(view({3, 4}, {4, 1}).to_integers() == Integers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    CHECK(view({3, 4}, {4, 1}).is_contiguous());
    CHECK(view({4, 3}, {1, 4}).to_integers() == Integers{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
    CHECK(!view({4, 3}, {1, 4}).is_contiguous());
    CHECK(view({2, 2}, {4, 1}, 5).to_integers() == Integers{5, 6, 9, 10});
    CHECK(view({2, 3, 2}, {6, 1, 3}).to_integers() == Integers{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11});
    CHECK(view({2, 3}, {0, 1}, 3).to_integers() == Integers{3, 4, 5, 3, 4, 5});  // expanded
    CHECK(view({2, 1, 2}, {2, 77, 1}).is_contiguous());  // the stride of a single row does not matter
    CHECK(view({2, 1, 2}, {2, 77, 1}).to_integers() == Integers{0, 1, 2, 3});
    CHECK(view({}, {}, 7).to_integers() == Integers{7});
    CHECK(view({}, {}, 7).item() == 7);
    CHECK(view({1, 1}, {1, 1}, 11).item() == 11);
    CHECK(view({0}, {1}).to_integers().empty());
    CHECK(view({3, 0, 2}, {0, 2, 1}, 12).to_integers().empty());
    CHECK(view({3, 0, 2}, {0, 2, 1}, 12).element_count() == 0);
    CHECK_THROWS_AS(view({2}, {1}).item(), Error);
    CHECK_THROWS_AS(view({0}, {1}).item(), Error);
    for (const Tensor& tensor :
         {view({3, 4}, {4, 1}), view({4, 3}, {1, 4}), view({2, 3}, {0, 1}), view({}, {}, 3), view({0}, {1})}) {
        const std::string bytes = row_major_bytes(tensor);
        const Tensor again =
            make_tensor(DType::int32, tensor.shape, row_major_strides(tensor.shape), 0, as_bytes(bytes), "t");
        CHECK(again.to_integers() == tensor.to_integers());
    }
}

TEST_CASE("tensor: big-endian data") {
    const auto big = [](DType dtype, const std::string& bytes) {
        Tensor tensor = vector_of(dtype, bytes);
        tensor.is_big_endian = true;
        return tensor;
    };
    using namespace std::string_literals;
    CHECK(big(DType::int32, "\x00\x00\x01\x02\xff\xff\xff\xfe"s).to_integers() == Integers{258, -2});
    CHECK(big(DType::float64, "\x3f\xf8\x00\x00\x00\x00\x00\x00"s).to_doubles() == Reals{1.5});
    CHECK(big(DType::float32, "\xc0\x00\x00\x00"s).to_doubles() == Reals{-2});
    CHECK(big(DType::float16, "\x3c\x00"s).to_doubles() == Reals{1});
    CHECK(big(DType::bfloat16, "\x3f\x80"s).to_doubles() == Reals{1});
    CHECK(big(DType::uint8, "\x07"s).to_integers() == Integers{7});
    CHECK(row_major_bytes(big(DType::int16, "\x01\x02\x03\x04"s)) == "\x02\x01\x04\x03");
    CHECK(row_major_bytes(big(DType::complex64, "\x01\x02\x03\x04\x05\x06\x07\x08"s)) ==
          "\x04\x03\x02\x01\x08\x07\x06\x05");
}

TEST_CASE("tensor: views that leave their storage are refused") {
    const auto refused = [](Integers shape, Integers strides, int64_t offset = 0) {
        return refusal(DType::int32, std::move(shape), std::move(strides), offset, kTwelve) != "";
    };
    const int64_t huge = int64_t{1} << 62;
    CHECK(!refused({12}, {1}));
    CHECK(refused({13}, {1}));
    CHECK(refused({12}, {1}, 1));
    CHECK(refused({2, 2}, {11, 1}));
    CHECK(!refused({2, 2}, {10, 1}));
    CHECK(refused({}, {}, 12));
    CHECK(refused({}, {}, -1));
    CHECK(refused({3}, {-1}, 5));
    CHECK(refused({-1}, {1}));
    CHECK(refused({-2, -2}, {1, 1}));
    CHECK(refused({2}, {1, 1}));
    CHECK(refused({2, 2}, {1}));
    CHECK(refused({huge, 8}, {0, 0}));
    CHECK(refused({huge, huge, 0}, {0, 0, 1}));
    CHECK(refused({2, 2}, {INT64_MAX, INT64_MAX}));
    CHECK(refused({INT64_MAX}, {INT64_MAX}));
    CHECK(refused({2}, {1}, INT64_MAX));
    CHECK(refused({INT64_MIN}, {INT64_MIN}, INT64_MIN));
    CHECK(refused(Integers(33, 1), Integers(33, 1)));
    CHECK(!refused(Integers(32, 1), Integers(32, 1)));
    CHECK(refused({1 << 21}, {0}));  // one number repeated two million times
    CHECK(!refused({1000}, {0}));
    CHECK(refusal(DType::float64, {2}, {1}, 0, std::string(15, 'x')) ==
          "here of shape [2] reaches outside its storage of 1 elements");
    CHECK(refusal(DType::float64, {}, {}, 0, "") != "");
    CHECK(refusal(DType::float64, {0}, {1}, 0, "") == "");
    CHECK(refused({5, 5}, row_major_strides({5, 5})));
}

TEST_CASE("tensor: row-major strides and shapes as text") {
    CHECK(row_major_strides({2, 3, 4}) == Integers{12, 4, 1});
    CHECK(row_major_strides({}).empty());
    CHECK(row_major_strides({2, 0, 4}) == Integers{4, 4, 1});
    CHECK(shape_text({}) == "[]");
    CHECK(shape_text({3, 4}) == "[3, 4]");
}
