// SPDX-License-Identifier: MIT
// Builds a Module from the inert graph of a pickle.
#pragma once

#include <functional>
#include <string>

#include "formats/module_tree.h"
#include "formats/pickle.h"
#include "formats/torch_storage.h"

namespace mlff {

// A limit on the work that one file may cause. Shared nodes of a pickle are copied into the tree, so a small graph can
// unfold to a huge tree. Every visited value counts, long texts count more, and nested archives share the budget.
class ValueBudget {
public:
    static constexpr size_t kLimit = 2'000'000;
    [[nodiscard]] bool spend(size_t count) {
        const bool is_enough = count <= left_;
        left_ = is_enough ? left_ - count : 0;
        return is_enough;
    }
    [[nodiscard]] bool has(size_t count) const { return count <= left_; }

private:
    size_t left_ = kLimit;
};

// What the pickle alone does not contain. Each function may be empty.
struct ModuleSources {
    // The module inside a nested archive (the bytes of a `__codegen__` entry of e3nn).
    std::function<Module(std::string_view archive_bytes)> open_nested;
    // The source text of a TorchScript class, by its full name.
    std::function<std::string_view(std::string_view class_path)> script_source;
};

// True for a torch.nn.Module or a TorchScript object.
bool is_module(PickleValue value);

// Throws Error{format} for graphs that no module has: too deep, too large, duplicate member names, text that is not
// UTF-8.
Module build_module(PickleValue value, TorchStorages& storages, const ModuleSources& sources, ValueBudget& budget,
                    const std::string& name_for_errors);

}  // namespace mlff
