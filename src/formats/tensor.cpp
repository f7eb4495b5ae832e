// SPDX-License-Identifier: MIT
#include "formats/tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "formats/little_endian.h"

namespace mlff {
namespace {

struct DTypeTraits {
    std::string_view name;
    size_t size;
};
constexpr std::array<DTypeTraits, 17> kTraits = {{{"float64", 8},
                                                  {"float32", 4},
                                                  {"float16", 2},
                                                  {"bfloat16", 2},
                                                  {"float8_e4m3", 1},
                                                  {"float8_e5m2", 1},
                                                  {"int64", 8},
                                                  {"int32", 4},
                                                  {"int16", 2},
                                                  {"int8", 1},
                                                  {"uint64", 8},
                                                  {"uint32", 4},
                                                  {"uint16", 2},
                                                  {"uint8", 1},
                                                  {"bool", 1},
                                                  {"complex64", 8},
                                                  {"complex128", 16}}};
constexpr size_t kMaxDimensions = 32;
constexpr int64_t kMaxRepeatedElements = int64_t{1} << 20;

// Decodes a small binary floating-point number: sign, exponent, fraction. `has_infinity` is false for float8_e4m3,
// whose largest exponent encodes ordinary numbers and one NaN.
double small_float(unsigned bits, int exponent_bits, int fraction_bits, bool has_infinity) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
    const double sign = (bits >> (exponent_bits + fraction_bits)) & 1 ? -1.0 : 1.0;
    const bool top = exponent == (1 << exponent_bits) - 1;
    if (top && has_infinity) return fraction ? std::nan("") : sign * HUGE_VAL;
    if (top && fraction == (1 << fraction_bits) - 1) return std::nan("");
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
    return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

template <class T>
T load(const std::byte* at, bool is_big_endian) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return is_big_endian == (std::endian::native == std::endian::big) ? value : byte_swapped(value);
}

double load_real(DType dtype, const std::byte* at, bool big) {
    switch (dtype) {
        case DType::float64: return load<double>(at, big);
        case DType::float32: return load<float>(at, big);
        case DType::float16: return small_float(load<uint16_t>(at, big), 5, 10, true);
        case DType::bfloat16: return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(at, big)) << 16);
        case DType::float8_e4m3: return small_float(load<uint8_t>(at, big), 4, 3, false);
        case DType::float8_e5m2: return small_float(load<uint8_t>(at, big), 5, 2, true);
        default: return std::nan("");
    }
}

int64_t load_integer(DType dtype, const std::byte* at, bool big) {
    switch (dtype) {
        case DType::int64: return load<int64_t>(at, big);
        case DType::int32: return load<int32_t>(at, big);
        case DType::int16: return load<int16_t>(at, big);
        case DType::int8: return load<int8_t>(at, big);
        case DType::uint64: return static_cast<int64_t>(load<uint64_t>(at, big));
        case DType::uint32: return load<uint32_t>(at, big);
        case DType::uint16: return load<uint16_t>(at, big);
        case DType::uint8: return load<uint8_t>(at, big);
        default: return load<uint8_t>(at, big) != 0;
    }
}

bool is_complex(DType dtype) { return dtype == DType::complex64 || dtype == DType::complex128; }

// Calls visit(pointer to element) in row-major order.
template <class Visit>
void for_each_element(const Tensor& tensor, Visit visit) {
    if (tensor.element_count() == 0) return;
    const auto size = static_cast<int64_t>(dtype_size(tensor.dtype));
    const std::byte* first = tensor.storage.data() + tensor.offset * size;
    const size_t rank = tensor.shape.size();
    std::array<int64_t, kMaxDimensions> index{};
    int64_t at = 0;
    for (;;) {
        visit(first + at * size);
        size_t axis = rank;
        for (;; --axis) {
            if (axis == 0) return;
            at += tensor.strides[axis - 1];
            if (++index[axis - 1] < tensor.shape[axis - 1]) break;
            at -= tensor.strides[axis - 1] * tensor.shape[axis - 1];
            index[axis - 1] = 0;
        }
    }
}

}  // namespace

size_t dtype_size(DType dtype) { return kTraits[static_cast<size_t>(dtype)].size; }
std::string_view dtype_name(DType dtype) { return kTraits[static_cast<size_t>(dtype)].name; }
bool is_floating(DType dtype) { return dtype <= DType::float8_e5m2; }

int64_t Tensor::element_count() const {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    return count;
}

bool Tensor::is_contiguous() const {
    int64_t expected = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
        if (shape[axis] != 1 && strides[axis] != expected) return false;
        expected *= shape[axis];
    }
    return true;
}

std::vector<double> Tensor::to_doubles() const {
    if (is_complex(dtype)) fail(Status::format, "found a complex tensor, expected real numbers");
    std::vector<double> values(static_cast<size_t>(element_count()));
    if (dtype == DType::float32 && is_contiguous() && !is_big_endian) {  // nearly all weights
        const std::byte* from = storage.data() + static_cast<size_t>(offset) * sizeof(float);
        for (size_t i = 0; i < values.size(); ++i) {
            float value;
            std::memcpy(&value, from + i * sizeof value, sizeof value);
            values[i] = double{value};
        }
        return values;
    }
    const bool real = is_floating(dtype);
    double* to = values.data();
    for_each_element(*this, [&](const std::byte* at) {
        if (real)
            *to++ = load_real(dtype, at, is_big_endian);
        else if (dtype == DType::uint64)
            *to++ = static_cast<double>(load<uint64_t>(at, is_big_endian));
        else
            *to++ = static_cast<double>(load_integer(dtype, at, is_big_endian));
    });
    return values;
}

std::vector<int64_t> Tensor::to_integers() const {
    if (is_complex(dtype) || is_floating(dtype))
        fail(Status::format, "found a tensor of ", dtype_name(dtype), ", expected whole numbers");
    std::vector<int64_t> values;
    values.reserve(static_cast<size_t>(element_count()));
    for_each_element(*this, [&](const std::byte* at) { values.push_back(load_integer(dtype, at, is_big_endian)); });
    if (dtype == DType::uint64 && std::any_of(values.begin(), values.end(), [](int64_t value) { return value < 0; }))
        fail(Status::format, "a tensor of uint64 holds a number too large for int64");
    return values;
}

double Tensor::item() const {
    if (element_count() != 1)
        fail(Status::format, "found a tensor of shape ", shape_text(shape), ", expected one number");
    return to_doubles()[0];
}

void Tensor::copy_bytes_to(std::byte* destination) const {
    const size_t size = dtype_size(dtype);
    if (is_contiguous() && !is_big_endian) {
        const auto count = static_cast<size_t>(element_count());
        if (count > 0) std::memcpy(destination, storage.data() + static_cast<size_t>(offset) * size, count * size);
        return;
    }
    const size_t unit = is_complex(dtype) ? size / 2 : size;  // the real and imaginary parts are swapped separately
    for_each_element(*this, [&](const std::byte* at) {
        for (size_t part = 0; part < size; part += unit)
            for (size_t i = 0; i < unit; ++i) destination[part + i] = at[part + (is_big_endian ? unit - 1 - i : i)];
        destination += size;
    });
}

Tensor make_tensor(DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t offset, Bytes storage,
                   const std::string& where) {
    if (shape.size() != strides.size() || shape.size() > kMaxDimensions)
        fail(Status::format, where, " has ", shape.size(), " dimensions and ", strides.size(), " strides");
    int64_t count = 1, last = offset;
    bool overflow = offset < 0, is_empty = false;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        int64_t reach = 0;
        if (shape[axis] < 0 || strides[axis] < 0) {
            overflow = true;
            break;
        }
        is_empty |= shape[axis] == 0;
        overflow |= __builtin_mul_overflow(count, std::max<int64_t>(shape[axis], 1), &count);
        overflow |= __builtin_mul_overflow(std::max<int64_t>(shape[axis] - 1, 0), strides[axis], &reach);
        overflow |= __builtin_add_overflow(last, reach, &last);
    }
    const auto stored = static_cast<int64_t>(storage.size() / dtype_size(dtype));
    // Stride 0 repeats elements. That is allowed, but must not turn one number into a huge tensor.
    const bool is_bomb = count > stored && count > kMaxRepeatedElements;
    if (overflow || (!is_empty && (last >= stored || is_bomb)))
        fail(Status::format, where, " of shape ", shape_text(shape), " reaches outside its storage of ", stored,
             " elements");
    Tensor tensor;
    tensor.dtype = dtype;
    tensor.shape = std::move(shape);
    tensor.strides = std::move(strides);
    tensor.storage = storage;
    tensor.offset = offset;
    return tensor;
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
    std::vector<int64_t> strides(shape.size());
    int64_t stride = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
        strides[axis] = stride;
        if (__builtin_mul_overflow(stride, std::max<int64_t>(shape[axis], 1), &stride))
            stride = 0;  // make_tensor rejects it
    }
    return strides;
}

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

}  // namespace mlff
