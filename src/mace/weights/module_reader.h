// SPDX-License-Identifier: MIT
// Reading a module tree with every size checked: each complaint names the module and the tensor.
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

namespace mlff::mace {

// What loading one file may take. Modules can share a storage or be shared themselves, so that a small file can be
// loaded as a huge model: limits of single tensors do not help against that. Files of mace-torch take a fraction of it.
class LoadBudget {
public:
    static constexpr int64_t kNumbers = int64_t{1} << 22;  // and one for each byte that the file stores
    static constexpr int64_t kTerms = int64_t{1} << 20;    // of contractions, and one for every four bytes

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
    // The budget must outlive the reader and those made by it.
    ModuleReader(const Module& module, std::string path, LoadBudget& budget)
        : module_(&module), path_(std::move(path)), budget_(&budget) {}

    std::string_view class_name() const { return module_->class_name(); }
    bool is(std::string_view name) const { return class_name() == name; }
    const Module& module() const { return *module_; }
    const std::string& path() const { return path_; }

    std::optional<ModuleReader> find(std::string_view child) const;
    ModuleReader at(std::string_view child) const;
    std::vector<ModuleReader> children() const;  // in file order
    // Refuses a child that is not in the list: what it computes is not known here.
    void expect_children(std::initializer_list<std::string_view> known) const;

    bool has_tensor(std::string_view name) const { return module_->find_tensor(name) != nullptr; }
    // Checked: real numbers, finite and such that float holds them, not more than the file has.
    const Tensor& tensor(std::string_view name) const;
    std::vector<double> values(std::string_view name) const;
    std::vector<double> values(std::string_view name, const std::vector<int64_t>& shape) const;
    // Before memory is taken for what follows from the file; values() does so itself. Throws Error{format} if the file
    // asks for too much.
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

// A JSON value as a whole number in a range; `what` begins the message.
std::optional<int> json_integer(const JsonValue& value, int smallest, int largest);

}  // namespace mlff::mace
