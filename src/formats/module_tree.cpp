// SPDX-License-Identifier: MIT
#include "formats/module_tree.h"

#include "core/error.h"
#include "core/mapped_file.h"
#include "formats/little_endian.h"
#include "formats/module_container.h"
#include "formats/nqx.h"
#include "formats/safetensors.h"
#include "formats/torch_archive.h"
#include "formats/zip.h"

namespace mlff {
namespace {

// "a.b.c" -> {"a.b", "c"}; "c" -> {"", "c"}.
std::pair<std::string_view, std::string_view> split_last(std::string_view path) {
    const size_t dot = path.rfind('.');
    if (dot == std::string_view::npos) return {{}, path};
    return {path.substr(0, dot), path.substr(dot + 1)};
}

[[noreturn]] void missing(const Module& module, const char* what, std::string_view name) {
    fail(Status::format, "module ", module.class_path, " has no ", what, " '", name, "'");
}

[[noreturn]] void refuse_contents(Bytes bytes, const std::string& path) {
    if (bytes.empty()) fail(Status::format, path, ": the file is empty");
    // torch before 1.6 wrote plain pickles that begin with a magic number.
    if (bytes[0] == std::byte{0x80} &&
        text_at(bytes, 0, std::min<size_t>(bytes.size(), 32)).find("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") !=
            std::string_view::npos)
        fail(Status::unsupported, path,
             ": saved in the format of torch before version 1.6; load it with torch and save it again");
    if (bytes[0] == std::byte{0x80})
        fail(Status::unsupported, path, ": a bare pickle, expected a zip archive written by torch.save");
    if (text_at(bytes, 0, std::min<size_t>(bytes.size(), 40)).substr(0, 15) == "version https:/")
        fail(Status::format, path, ": a Git LFS pointer, not the model itself; run 'git lfs pull'");
    fail(Status::format, path,
         ": neither a torch archive (.model, .pt, .pth), a safetensors file nor a .nqx file; it may be damaged");
}

}  // namespace

Module::Module() = default;

std::string_view Module::class_name() const { return split_last(class_path).second; }

const Module* Module::find(std::string_view dotted_path) const {
    if (dotted_path.empty()) return this;
    const size_t dot = dotted_path.find('.');
    const std::string_view first = dotted_path.substr(0, dot);
    for (const auto& [name, child] : children)
        if (name == first) return dot == std::string_view::npos ? &child : child.find(dotted_path.substr(dot + 1));
    return nullptr;
}

const Tensor* Module::find_tensor(std::string_view dotted_path) const {
    const auto [owner_path, tensor_name] = split_last(dotted_path);
    const Module* owner = find(owner_path);
    if (owner)
        for (const auto& [name, tensor] : owner->tensors)
            if (name == tensor_name) return &tensor;
    return nullptr;
}

const JsonValue* Module::find_attribute(std::string_view name) const {
    const JsonValue* found = attributes.find(name);
    return found && !found->is_null() ? found : nullptr;
}

const Module& Module::at(std::string_view dotted_path) const {
    const Module* found = find(dotted_path);
    if (!found) missing(*this, "module", dotted_path);
    return *found;
}

const Tensor& Module::tensor(std::string_view dotted_path) const {
    const Tensor* found = find_tensor(dotted_path);
    if (!found) missing(*this, "tensor", dotted_path);
    return *found;
}

const JsonValue& Module::attribute(std::string_view name) const {
    const JsonValue* found = find_attribute(name);
    if (!found) missing(*this, "attribute", name);
    return *found;
}

ModuleFile open_module_file(const std::string& path) {
    const auto mapped = MappedFile::open(path);
    const Bytes bytes = mapped->bytes();
    ModuleFile file;
    if (looks_like_zip(bytes)) {
        file = read_torch_archive(bytes, path);
    } else if (looks_like_safetensors(bytes)) {
        file.path = path;
        file.container = "mlff safetensors";
        file.root = unpack_module(read_safetensors(bytes, path), path);
    } else if (looks_like_nqx(bytes)) {
        file.path = path;
        file.container = "Nequix file";
        file.root = read_nqx(bytes, path);
    } else {
        refuse_contents(bytes, path);
    }
    mapped->drop_pages();  // the CRC check read every page, but most tensors are needed later or never
    file.memory.push_back(mapped);
    return file;
}

}  // namespace mlff
