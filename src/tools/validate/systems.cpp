// SPDX-License-Identifier: MIT
#include "tools/validate/systems.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "core/elements.h"
#include "core/embed_file.h"
#include "core/error.h"

#define MLFF_EMBED_SYSTEM(symbol, file) MLFF_EMBED_FILE(mlff_system_##symbol, MLFF_SYSTEMS_FOLDER "/" file)
MLFF_EMBED_SYSTEM(water, "water.xyz")
MLFF_EMBED_SYSTEM(water_box, "water_box.xyz")
MLFF_EMBED_SYSTEM(ethanol, "ethanol.xyz")
MLFF_EMBED_SYSTEM(benzene, "benzene.xyz")
MLFF_EMBED_SYSTEM(alanine_dipeptide, "alanine_dipeptide.xyz")
MLFF_EMBED_SYSTEM(diamond, "diamond.xyz")
MLFF_EMBED_SYSTEM(silicon, "silicon.xyz")

namespace mlff::validate {
namespace {

struct BuiltinSystem {
    const char* name;
    bool is_crystal;
    std::string_view text;
};

std::vector<BuiltinSystem> builtin_systems() {
    const auto text = [](std::span<const std::byte> bytes) {
        return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    return {{"water", false, text(MLFF_EMBEDDED(mlff_system_water))},
            {"water-box", false, text(MLFF_EMBEDDED(mlff_system_water_box))},
            {"ethanol", false, text(MLFF_EMBEDDED(mlff_system_ethanol))},
            {"benzene", false, text(MLFF_EMBEDDED(mlff_system_benzene))},
            {"alanine-dipeptide", false, text(MLFF_EMBEDDED(mlff_system_alanine_dipeptide))},
            {"diamond", true, text(MLFF_EMBEDDED(mlff_system_diamond))},
            {"silicon", true, text(MLFF_EMBEDDED(mlff_system_silicon))}};
}

TestSystem parse(const BuiltinSystem& builtin) {
    std::istringstream input{std::string(builtin.text)};
    ExtxyzReader reader(input, builtin.name);
    TestSystem system{builtin.name, {}};
    if (!reader.next(system.frame)) fail(Status::internal, "the built-in system ", builtin.name, " is empty");
    return system;
}

// The first element that the model does not know; 0 if it knows all.
int unknown_element(const Frame& frame, const std::vector<int>& elements) {
    for (int32_t z : frame.atomic_numbers)
        if (std::find(elements.begin(), elements.end(), z) == elements.end()) return z;
    return 0;
}

void check(const TestSystem& system, const std::vector<int>& elements) {
    if (system.frame.atom_count() < 2)
        fail(Status::system, "system ", system.name, " has ", system.frame.atom_count(),
             " atoms, but dynamics needs at least 2");
    if (const int z = unknown_element(system.frame, elements))
        fail(Status::system, "system ", system.name, " has ", element_symbol(z),
             ", which the model does not know; it knows ", symbols_text(elements));
}

}  // namespace

std::vector<std::string> builtin_system_names() {
    std::vector<std::string> names;
    for (const BuiltinSystem& builtin : builtin_systems()) names.push_back(builtin.name);
    return names;
}

std::vector<TestSystem> default_systems(const std::vector<int>& elements) {
    std::vector<TestSystem> systems;
    bool has_crystal = false;
    for (const BuiltinSystem& builtin : builtin_systems()) {
        if (builtin.is_crystal && has_crystal) continue;
        TestSystem system = parse(builtin);
        if (unknown_element(system.frame, elements) != 0) continue;
        has_crystal |= builtin.is_crystal;
        systems.push_back(std::move(system));
    }
    if (systems.empty())
        fail(Status::argument, "the model knows ", symbols_text(elements),
             ", and no built-in system has only these elements; give structures with --systems FILE.xyz");
    return systems;
}

std::vector<TestSystem> chosen_systems(const std::vector<std::string>& names, const std::vector<int>& elements) {
    std::vector<TestSystem> systems;
    const std::vector<BuiltinSystem> builtins = builtin_systems();
    for (const std::string& name : names) {
        const size_t before = systems.size();
        const auto builtin =
            std::find_if(builtins.begin(), builtins.end(), [&](const BuiltinSystem& b) { return name == b.name; });
        if (builtin != builtins.end()) {
            systems.push_back(parse(*builtin));
        } else if (name.find('.') != std::string::npos || name.find('/') != std::string::npos) {
            const std::vector<Frame> frames = read_extxyz(name);
            if (frames.empty()) fail(Status::format, name, ": the file has no frames");
            for (const Frame& frame : frames)
                systems.push_back(
                    {frames.size() > 1 ? concat(name, " frame ", systems.size() - before + 1) : name, frame});
        } else {
            std::string list;
            for (const BuiltinSystem& b : builtins) list += std::string(list.empty() ? "" : ", ") + b.name;
            fail(Status::argument, "--systems '", name, "' is neither a file nor one of ", list);
        }
        for (size_t i = before; i < systems.size(); ++i) check(systems[i], elements);
    }
    return systems;
}

}  // namespace mlff::validate
