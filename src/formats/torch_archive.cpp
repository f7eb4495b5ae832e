// SPDX-License-Identifier: MIT
#include "formats/torch_archive.h"

#include <map>

#include "core/error.h"
#include "formats/little_endian.h"
#include "formats/module_builder.h"
#include "formats/pickle.h"
#include "formats/torch_storage.h"
#include "formats/zip.h"

namespace mlff {
namespace {

constexpr int kMaxNesting = 2;

// The archive's top folder: the one that contains data.pkl.
std::string top_folder(const ZipArchive& archive, const std::string& name) {
    for (const ZipEntry& entry : archive.entries()) {
        const size_t slash = entry.name.find('/');
        if (slash != std::string::npos && entry.name.substr(slash) == "/data.pkl") return entry.name.substr(0, slash);
    }
    fail(Status::format, name, ": a zip archive without data.pkl, so torch did not save it");
}

// Source texts of TorchScript classes: a.b.C is in code/a/b.py.
class ScriptSources {
public:
    ScriptSources(const ZipArchive& archive, std::string folder) : archive_(archive), folder_(std::move(folder)) {}

    std::string_view text_of(std::string_view class_path) {
        std::string file(class_path.substr(0, class_path.rfind('.')));
        const std::string_view class_name = class_path.substr(class_path.rfind('.') + 1);
        for (char& letter : file)
            if (letter == '.') letter = '/';
        auto [found, is_new] = files_.try_emplace(folder_ + "/code/" + file + ".py");
        if (is_new) read(found->first, found->second);
        const auto text = found->second.classes.find(class_name);
        return text == found->second.classes.end() ? std::string_view() : text->second;
    }

private:
    struct File {
        std::vector<std::byte> bytes;
        std::map<std::string_view, std::string_view> classes;  // text of each, by its name
    };

    void read(const std::string& path, File& file) const {
        const ZipEntry* entry = archive_.find(path);
        if (!entry) return;
        file.bytes = archive_.read(*entry);
        std::string_view rest = text_at(file.bytes, 0, file.bytes.size());
        while (!rest.empty()) {
            const std::string_view text = rest.substr(0, rest.find("\nclass ", 1));
            rest.remove_prefix(text.size());
            const size_t name = text.find("class ") + 6;
            if (name == 6 || name == 7) file.classes.emplace(text.substr(name, text.find('(', name) - name), text);
        }
    }

    const ZipArchive& archive_;
    std::string folder_;
    std::map<std::string, File> files_;
};

struct Contents {
    Module root;
    bool is_script = false;
};

[[noreturn]] void refuse_contents(PickleValue root, const std::string& name) {
    if (root.is(PickleKind::dict)) {
        const bool is_checkpoint = root.has("model") || root.has("state_dict") || root.has("optimizer");
        fail(Status::unsupported, name, ": this is a ", is_checkpoint ? "training checkpoint" : "bare state dict",
             ": it has weights but neither classes, irreps nor avg_num_neighbors, so the model cannot be rebuilt from "
             "it; "
             "save the whole model instead: torch.save(model, 'X.model')");
    }
    const std::string_view class_name = root.class_name();
    fail(Status::unsupported, name, ": the file holds ", class_name.empty() ? "plain data" : "an object of class ",
         class_name, ", expected a saved torch.nn.Module");
}

Contents read_contents(Bytes bytes, const std::string& name, std::vector<std::shared_ptr<const void>>& memory,
                       ValueBudget& budget, int nesting) {
    const ZipArchive archive(bytes, name);
    if (nesting > 0) {
        size_t size = 0;
        for (const ZipEntry& entry : archive.entries()) size += static_cast<size_t>(entry.size);
        if (!budget.spend(size / 16)) fail(Status::format, name, ": the archive and those nested in it are too large");
    }
    const std::string folder = top_folder(archive, name);
    const std::vector<std::byte> pickle_bytes = archive.read(*archive.find(folder + "/data.pkl"));
    const Pickle pickle(pickle_bytes, concat(name, " (", folder, "/data.pkl)"));
    if (!is_module(pickle.root())) refuse_contents(pickle.root(), name);

    TorchStorages storages(archive, folder, name, memory);
    ScriptSources scripts(archive, folder);
    ModuleSources sources;
    sources.script_source = [&](std::string_view class_path) { return scripts.text_of(class_path); };
    if (nesting < kMaxNesting)
        sources.open_nested = [&](std::string_view text) {
            const auto* begin = reinterpret_cast<const std::byte*>(text.data());
            auto copy = std::make_shared<const std::vector<std::byte>>(begin, begin + text.size());
            Module nested = read_contents(*copy, name + " (generated code)", memory, budget, nesting + 1).root;
            if (!nested.tensors.empty()) memory.push_back(std::move(copy));
            nested.children.clear();  // only buffers of the top module are used
            return nested;
        };
    Contents contents;
    contents.root = build_module(pickle.root(), storages, sources, budget, name);
    contents.is_script = pickle.root().class_name().substr(0, 9) == "__torch__";
    return contents;
}

}  // namespace

ModuleFile read_torch_archive(Bytes bytes, const std::string& path) {
    ModuleFile file;
    file.path = path;
    ValueBudget budget;
    Contents contents = read_contents(bytes, path, file.memory, budget, 0);
    file.root = std::move(contents.root);
    file.container = contents.is_script ? "TorchScript archive" : "torch module";
    return file;
}

}  // namespace mlff
