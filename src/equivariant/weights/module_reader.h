// SPDX-License-Identifier: MIT
// Reads a module tree and checks every size. Each error names the module and the tensor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "equivariant/irreps.h"
#include "formats/module_tree.h"

namespace mlff {

// Limits what loading one file may cost. Modules can share a storage or be shared themselves, so a small file can
// expand to a huge model; limits on single tensors do not prevent that. Files of mace-torch need a fraction of this
// budget.
class LoadBudget {
public:
    static constexpr int64_t kNumbers = int64_t{1} << 22;  // plus one per byte that the file stores
    static constexpr int64_t kTerms = int64_t{1} << 20;    // of contractions, plus one per four bytes

    explicit LoadBudget(const Module& root);
    [[nodiscard]] bool take_numbers(int64_t count) {
        return (numbers_left_ -= std::min(count, numbers_left_ + 1)) >= 0;
    }
    [[nodiscard]] bool take_terms(int64_t count) { return (terms_left_ -= std::min(count, terms_left_ + 1)) >= 0; }

private:
    int64_t numbers_left_ = kNumbers, terms_left_ = kTerms;
};

class ModuleReader {
public:
    // The budget must outlive the reader and all readers created by it.
    ModuleReader(const Module& module, std::string path, LoadBudget& budget)
        : module_(&module), path_(std::move(path)), budget_(&budget) {}

    std::string_view class_name() const { return module_->class_name(); }
    bool is(std::string_view name) const { return class_name() == name; }
    const Module& module() const { return *module_; }
    const std::string& path() const { return path_; }

    std::optional<ModuleReader> find(std::string_view child) const;
    ModuleReader at(std::string_view child) const;
    std::vector<ModuleReader> children() const;  // in file order
    // Rejects a child that is not in the list, because its effect is unknown.
    void expect_children(std::initializer_list<std::string_view> known) const;

    bool has_tensor(std::string_view name) const { return module_->find_tensor(name) != nullptr; }
    // Checked: real, finite, representable as float, and not more numbers than the file has.
    const Tensor& tensor(std::string_view name) const;
    std::vector<double> values(std::string_view name) const;
    std::vector<double> values(std::string_view name, const std::vector<int64_t>& shape) const;
    // Call before allocating memory whose size comes from the file; values() does so itself. Throws Error{format} if
    // the file requires too much.
    void take_numbers(int64_t count) const;
    void take_terms(int64_t count) const;

    // A tensor with one element, or a number among the attributes.
    std::optional<double> find_number(std::string_view name) const;
    double number(std::string_view name) const;
    double positive(std::string_view name) const;
    int integer(std::string_view name, int smallest, int largest) const;
    bool flag(std::string_view name, bool if_absent) const;
    const JsonValue* attribute(std::string_view name) const;  // nullptr if absent or null
    Irreps irreps(std::string_view name) const;

    template <class... Parts>
    [[noreturn]] void malformed(const Parts&... parts) const {
        fail(Status::format, path_.empty() ? "the model" : path_, ": ", parts...);
    }
    template <class... Parts>
    [[noreturn]] void unsupported(const Parts&... parts) const {
        fail(Status::unsupported, path_.empty() ? "the model" : path_, ": ", parts...);
    }

private:
    std::string joined(std::string_view name) const;

    const Module* module_;
    std::string path_;
    LoadBudget* budget_;
};

// A JSON value as a whole number in a range; nothing if it is not one.
std::optional<int> json_integer(const JsonValue& value, int smallest, int largest);

}  // namespace mlff
