// SPDX-License-Identifier: MIT
// Reads tensors of a safetensors file by name and checks them: type, shape, and that numbers are finite.
#pragma once

#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/elements.h"
#include "core/error.h"
#include "formats/safetensors.h"

namespace mlff {

// Throws Error{format}; messages begin with `name`. Tensors that were never read are unknown.
class TensorReader {
public:
    TensorReader(const Safetensors& file, const std::string& name) : file_(file), name_(name) {
        for (const auto& [key, tensor] : file.tensors) left_.insert(key);
    }

    bool has(const std::string& key) const { return file_.find(key) != nullptr; }

    const Tensor& take(const std::string& key, const std::vector<int64_t>& shape) {
        const Tensor* tensor = file_.find(key);
        if (!tensor) broken(key, "is missing");
        if (tensor->shape != shape)
            broken(key, "has shape ", shape_text(tensor->shape), ", expected ", shape_text(shape));
        left_.erase(key);
        return *tensor;
    }

    std::vector<double> doubles(const std::string& key, const std::vector<int64_t>& shape) {
        const Tensor& tensor = take(key, shape);
        if (tensor.dtype != DType::float64) broken(key, "has type ", dtype_name(tensor.dtype), ", expected float64");
        return finite(key, tensor);
    }

    std::vector<double> matrix(const std::string& key, const std::vector<int64_t>& shape) {
        const Tensor& tensor = take(key, shape);
        if (tensor.dtype != DType::float64 && tensor.dtype != DType::float32)
            broken(key, "has type ", dtype_name(tensor.dtype), ", expected float32 or float64");
        parameter_count_ += tensor.element_count();
        return finite(key, tensor);
    }

    void expect_all_used() const {
        if (!left_.empty()) broken(std::string(*left_.begin()), "is unknown");
    }
    int64_t parameter_count() const { return parameter_count_; }

    template <class... Parts>
    [[noreturn]] void broken(const std::string& key, const Parts&... parts) const {
        fail(Status::format, name_, ": tensor '", key, "' ", parts...);
    }

    // Ascending, each once.
    std::vector<int> atomic_numbers(const std::string& key) {
        const Tensor* found = file_.find(key);
        const int64_t count = found && found->shape.size() == 1 ? found->shape[0] : 0;
        if (found && (count < 1 || count > kMaxAtomicNumber))
            broken(key, "has shape ", shape_text(found->shape), ", expected [1] to [", kMaxAtomicNumber, "]");
        const Tensor& tensor = take(key, {count});
        if (tensor.dtype != DType::int64) broken(key, "has type ", dtype_name(tensor.dtype), ", expected int64");
        std::vector<int> numbers;
        for (int64_t z : tensor.to_integers()) {
            if (z < 1 || z > kMaxAtomicNumber) broken(key, "holds ", z, ", which is not an atomic number");
            if (!numbers.empty() && z <= numbers.back())
                broken(key, "is not ascending: ", z, " comes after ", numbers.back());
            numbers.push_back(static_cast<int>(z));
        }
        return numbers;
    }

private:
    static constexpr double kLargestSize = 1e30;  // of any number: it and products of a few must fit a float

    std::vector<double> finite(const std::string& key, const Tensor& tensor) const {
        std::vector<double> values = tensor.to_doubles();
        for (size_t i = 0; i < values.size(); ++i)
            if (!(std::abs(values[i]) <= kLargestSize))
                broken(key, "holds ", values[i], " at index ", i, ", which is not finite or too large");
        return values;
    }

    const Safetensors& file_;
    const std::string& name_;
    std::set<std::string_view> left_;
    int64_t parameter_count_ = 0;
};

}  // namespace mlff
