// SPDX-License-Identifier: MIT
// A tensor in a file: type, shape, strides and a view of its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/mapped_file.h"

namespace mlff {

enum class DType : uint8_t {
    float64,
    float32,
    float16,
    bfloat16,
    float8_e4m3,
    float8_e5m2,
    int64,
    int32,
    int16,
    int8,
    uint64,
    uint32,
    uint16,
    uint8,
    boolean,
    complex64,
    complex128,
};

size_t dtype_size(DType dtype);
std::string_view dtype_name(DType dtype);  // "float32"
bool is_floating(DType dtype);

struct Tensor {
    DType dtype = DType::float32;
    std::vector<int64_t> shape;    // empty for a scalar
    std::vector<int64_t> strides;  // in elements, as many as `shape`
    Bytes storage;                 // contains all elements (make_tensor checks this)
    int64_t offset = 0;            // of the first element, in elements
    bool is_big_endian = false;
    bool is_parameter = false;  // else a buffer

    int64_t element_count() const;
    bool is_contiguous() const;

    // Row-major copies. Real numbers of any width become double; whole numbers and flags become int64.
    std::vector<double> to_doubles() const;    // throws Error{format} for a complex tensor
    std::vector<int64_t> to_integers() const;  // throws Error{format} unless whole numbers or flags
    double item() const;                       // the only element; throws unless there is exactly one
    // Copies the elements in row-major order, little-endian, in the tensor's own type.
    void copy_bytes_to(std::byte* destination) const;
};

// Checks that shape and strides are valid and stay inside the storage. Throws Error{format}; the message begins with
// `where` ("water.model: tensor 'scale'").
Tensor make_tensor(DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t offset, Bytes storage,
                   const std::string& where);
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);
std::string shape_text(const std::vector<int64_t>& shape);  // "[3, 4]"

}  // namespace mlff
