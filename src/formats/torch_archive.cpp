// SPDX-License-Identifier: MIT
#include "formats/torch_archive.h"

#include <map>

#include "core/error.h"
#include "formats/little_endian.h"
#include "formats/module_builder.h"
#include "formats/pickle.h"
#include "formats/sevennet_checkpoint.h"
#include "formats/torch_storage.h"
#include "formats/zip.h"

namespace mlff {
namespace {

constexpr int kMaxNesting = 2;

// Packages that are zip archives too. The data.pkl of some is not that of torch.save.
void refuse_packages(const ZipArchive& archive, const std::string& name) {
    for (const ZipEntry& entry : archive.entries()) {
        if (entry.name.ends_with("/.data/extern_modules"))
            fail(Status::unsupported, name,
                 ": a torch.package (as NequIP's .nequip.zip), a program of its own; mlff does not read models of "
                 "NequIP, but checkpoints (.pth) of SevenNet and .nqx files of Nequix");
        if (entry.name.find("data/aotinductor/") != std::string::npos)
            fail(
                Status::unsupported, name,
                ": a compiled package (.pt2, as NequIP's .nequip.pt2), whose weights have no names; mlff does not read "
                "models of NequIP, but checkpoints (.pth) of SevenNet and .nqx files of Nequix");
    }
}

// The archive's top folder: the one that contains data.pkl.
std::string top_folder(const ZipArchive& archive, const std::string& name) {
    for (const ZipEntry& entry : archive.entries()) {
        const size_t slash = entry.name.find('/');
        if (slash != std::string::npos && entry.name.substr(slash) == "/data.pkl") return entry.name.substr(0, slash);
    }
    refuse_packages(archive, name);
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
    std::string container;
};

// Files of the NequIP family that hold a model, but not as data.
void refuse_compiled(std::string_view class_name, const std::string& name) {
    if (class_name.starts_with("__torch__.sevenn."))
        fail(Status::unsupported, name,
             ": a deployed TorchScript model of SevenNet, whose weights are constants without names: ask for the "
             "checkpoint .pth that it was made from");
    if (class_name.starts_with("__torch__.nequip."))
        fail(Status::unsupported, name, ": a deployed TorchScript model of NequIP, which mlff does not read");
    if (class_name.find("SevenNetMLIAPWrapper") != std::string_view::npos)
        fail(Status::unsupported, name,
             ": a model of SevenNet for LAMMPS' ML-IAP, which is a pickled program: ask for the checkpoint .pth that "
             "it was made from");
}

[[noreturn]] void refuse_contents(PickleValue root, const std::string& name) {
    if (root.has("pytorch-lightning_version"))
        fail(Status::unsupported, name,
             ": a checkpoint of PyTorch Lightning (as NequIP's .ckpt), which describes a program, not a model; mlff "
             "does not read models of NequIP, but checkpoints (.pth) of SevenNet and .nqx files of Nequix");
    if (root.has("model_state_dict") || root.has("onehot_to_feature_x.linear.weight"))
        fail(Status::unsupported, name,
             ": a bare state dict without 'config': ask for the whole checkpoint .pth of SevenNet");
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
    refuse_compiled(pickle.root().class_name(), name);
    TorchStorages storages(archive, folder, name, memory);
    if (is_sevennet_checkpoint(pickle.root()))
        return {build_sevennet_checkpoint(pickle.root(), storages, budget, name), "SevenNet checkpoint"};
    if (!is_module(pickle.root())) refuse_contents(pickle.root(), name);
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
    contents.container = pickle.root().class_name().starts_with("__torch__") ? "TorchScript archive" : "torch module";
    return contents;
}

}  // namespace

ModuleFile read_torch_archive(Bytes bytes, const std::string& path) {
    ModuleFile file;
    file.path = path;
    ValueBudget budget;
    Contents contents = read_contents(bytes, path, file.memory, budget, 0);
    file.root = std::move(contents.root);
    file.container = std::move(contents.container);
    return file;
}

}  // namespace mlff
