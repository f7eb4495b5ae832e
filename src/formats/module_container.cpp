// SPDX-License-Identifier: MIT
#include "formats/module_container.h"

#include <set>

#include "core/error.h"
#include "formats/json_text.h"

namespace mlff {
namespace {

constexpr const char* kLayout = "1";

std::string joined(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

JsonValue pack(const Module& module, const std::string& path, Safetensors& contents) {
    JsonValue tensors = JsonValue::Array(), children = JsonValue::Array();
    for (const auto& [name, tensor] : module.tensors) {
        tensors.push_back(JsonValue::Array{name, tensor.is_parameter ? "parameter" : "buffer"});
        contents.tensors.emplace_back(joined(path, name), tensor);
    }
    for (const auto& [name, child] : module.children) {
        JsonValue& pair = children.append();
        pair.push_back(name);
        pair.push_back(pack(child, joined(path, name), contents));
    }
    JsonValue result = JsonValue::Object{{"class", module.class_path}, {"attributes", module.attributes}};
    result["tensors"] = std::move(tensors);
    result["children"] = std::move(children);
    return result;
}

class Unpacker {
public:
    Unpacker(const Safetensors& contents, const std::string& name) : name_(name) {
        for (const auto& [key, tensor] : contents.tensors) unused_.emplace(key, &tensor);
    }

    Module module(const JsonValue& json, const std::string& path) {
        if (!json.is_object() || !json.contains("class") || !json["class"].is_string() ||
            !json.contains("attributes") || !json["attributes"].is_object() || !json.contains("tensors") ||
            !json["tensors"].is_array() || !json.contains("children") || !json["children"].is_array())
            broken(path, "is not a valid module description");
        Module result;
        result.class_path = json["class"].text();
        result.attributes = json["attributes"];
        for (const JsonValue& tensor : json["tensors"]) {
            if (!tensor.is_array() || tensor.size() != 2 || !tensor[0].is_string() ||
                (tensor[1] != "parameter" && tensor[1] != "buffer"))
                broken(path, "has a malformed tensor");
            const auto name = tensor[0].text();
            const auto found = unused_.find(joined(path, name));
            if (found == unused_.end()) broken(joined(path, name), "is not among the tensors of the file");
            result.tensors.emplace_back(name, *found->second);
            result.tensors.back().second.is_parameter = tensor[1] == "parameter";
            unused_.erase(found);
        }
        for (const JsonValue& child : json["children"]) {
            if (!child.is_array() || child.size() != 2 || !child[0].is_string()) broken(path, "has a malformed child");
            const auto name = child[0].text();
            result.children.emplace_back(name, module(child[1], joined(path, name)));
        }
        return result;
    }
    void expect_all_used() const {
        if (!unused_.empty()) broken(unused_.begin()->first, "is a tensor that no module refers to");
    }

private:
    template <class... Parts>
    [[noreturn]] void broken(const std::string& path, const Parts&... parts) const {
        fail(Status::format, name_, ": '", path, "' ", parts...);
    }
    const std::string& name_;
    std::map<std::string, const Tensor*> unused_;
};

}  // namespace

Safetensors pack_module(const Module& root) {
    Safetensors contents;
    const JsonValue tree = pack(root, "", contents);
    contents.metadata = {{"format", "mlff"}, {"mlff_layout", kLayout}, {"mlff_module", tree.dump()}};
    return contents;
}

Module unpack_module(const Safetensors& contents, const std::string& name_for_errors) {
    const auto get = [&](const char* key) {
        const auto found = contents.metadata.find(key);
        return found == contents.metadata.end() ? std::string() : found->second;
    };
    if (get("format").starts_with("mlff-"))
        fail(Status::unsupported, name_for_errors, ": a safetensors file of the format '", get("format"),
             "', which holds no tree of modules and needs no conversion");
    if (get("format") != "mlff")
        fail(Status::unsupported, name_for_errors,
             ": a safetensors file that mlff did not write, without the description of the model");
    if (get("mlff_layout") != kLayout)
        fail(Status::unsupported, name_for_errors, ": container layout ", get("mlff_layout"),
             " of a later mlff, expected ", kLayout);
    Unpacker unpacker(contents, name_for_errors);
    Module root = unpacker.module(parse_json(get("mlff_module"), name_for_errors + " (mlff_module)"), "");
    unpacker.expect_all_used();
    return root;
}

}  // namespace mlff
