// SPDX-License-Identifier: MIT
// A neural network as plain data: the one form in which the rest of the library sees a model file, whatever container
// it came from. A module has a class name, tensors, plain attributes and children.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/json_value.h"
#include "formats/tensor.h"

namespace mlff {

struct Module {
    Module();  // not inline: until the class is complete, some compilers cannot tell how to make its children
    std::string class_path;                                // "mace.modules.models.ScaleShiftMACE"
    std::vector<std::pair<std::string, Tensor>> tensors;   // parameters and buffers, in file order
    std::vector<std::pair<std::string, Module>> children;  // in file order
    // Numbers, text, lists and objects. Irreps are text ("8x0e+8x1o"); a function is {"function": "torch.tanh"}; an
    // object of any other class is {"class": ..., "arguments": [...], "state": ...}; NaN and infinities are {"real":
    // "nan"}.
    JsonValue attributes = JsonValue::Object();

    std::string_view class_name() const;  // the last part of class_path

    // nullptr if there is none. A dotted path goes down: "interactions.0.linear".
    const Module* find(std::string_view dotted_path) const;
    const Tensor* find_tensor(std::string_view dotted_path) const;
    const JsonValue* find_attribute(std::string_view name) const;
    // The same, but throwing Error{format} that names what is missing.
    const Module& at(std::string_view dotted_path) const;
    const Tensor& tensor(std::string_view dotted_path) const;
    const JsonValue& attribute(std::string_view name) const;
};

// A model file that has been opened: the tree and the memory its tensors lie in.
struct ModuleFile {
    std::string path;
    std::string container;  // "torch module", "TorchScript archive", "mlff safetensors"
    Module root;
    std::vector<std::shared_ptr<const void>> memory;
};

// Opens a torch archive (module or TorchScript) or our safetensors container by what is in the file, not by its name.
// Throws Error{file | format | unsupported}.
ModuleFile open_module_file(const std::string& path);

}  // namespace mlff
