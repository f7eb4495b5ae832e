// SPDX-License-Identifier: MIT
// A neural network as plain data: class name, tensors, attributes and children. The rest of the library sees every
// model file in this form, whatever its container.
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
    Module();                // not inline: some compilers need the complete class to construct the children
    std::string class_path;  // "mace.modules.models.ScaleShiftMACE"
    std::vector<std::pair<std::string, Tensor>> tensors;   // parameters and buffers, in file order
    std::vector<std::pair<std::string, Module>> children;  // in file order
    // Numbers, text, lists and objects. Irreps are text ("8x0e+8x1o"). A function is {"function": "torch.tanh"}. An
    // object of any other class is {"class": ..., "arguments": [...], "state": ...}. NaN and infinities are {"real":
    // "nan"}.
    JsonValue attributes = JsonValue::Object();

    std::string_view class_name() const;  // the last part of class_path

    // nullptr if there is none. A dotted path descends the tree: "interactions.0.linear".
    const Module* find(std::string_view dotted_path) const;
    const Tensor* find_tensor(std::string_view dotted_path) const;
    const JsonValue* find_attribute(std::string_view name) const;
    // The same, but throws Error{format} and names what is missing.
    const Module& at(std::string_view dotted_path) const;
    const Tensor& tensor(std::string_view dotted_path) const;
    const JsonValue& attribute(std::string_view name) const;
};

// An open model file: the tree, and the memory that holds its tensors.
struct ModuleFile {
    std::string path;
    std::string container;  // "torch module", "TorchScript archive", "SevenNet checkpoint", "Nequix file",
                            // "mlff safetensors"
    Module root;
    std::vector<std::shared_ptr<const void>> memory;
};

// Opens a torch archive (module, TorchScript or checkpoint of SevenNet), a file of Nequix or mlff's safetensors
// container. The contents decide, not the file name. Throws Error{file | format | unsupported}.
ModuleFile open_module_file(const std::string& path);

}  // namespace mlff
