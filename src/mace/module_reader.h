// SPDX-License-Identifier: MIT
// Reading a module tree with every size checked: each complaint names the module and the tensor.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "formats/module_tree.h"
#include "mace/irreps.h"

namespace mlff::mace {

class ModuleReader {
public:
    ModuleReader(const Module& module, std::string path) : module_(&module), path_(std::move(path)) {}

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
    // Checked: real numbers, finite, not larger than what the file holds.
    const Tensor& tensor(std::string_view name) const;
    std::vector<double> values(std::string_view name) const;
    std::vector<double> values(std::string_view name, const std::vector<int64_t>& shape) const;

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
};

// A JSON value as a whole number in a range; `what` begins the message.
std::optional<int> json_integer(const JsonValue& value, int smallest, int largest);

}  // namespace mlff::mace
