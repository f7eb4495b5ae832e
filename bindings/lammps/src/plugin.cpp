// SPDX-License-Identifier: GPL-2.0-only
// The entry point called by `plugin load mlffplugin.so`.
#include "error.h"
#include "lammps.h"
#include "mlff/mlff.h"
#include "pair_mlff.h"

namespace {

// A style's entry as read by LAMMPS' PLUGIN package, whose header LAMMPS does not install.
struct PluginEntry {
    const char* version;  // of LAMMPS
    const char* style;
    const char* name;
    const char* info;
    const char* author;
    void* (*creator)(void* lammps);
    void* handle;
};
using Register = void (*)(PluginEntry* entry, void* lammps);

void* make_pair(void* lammps) { return new LAMMPS_NS::PairMLFF(static_cast<LAMMPS_NS::LAMMPS*>(lammps)); }

}  // namespace

extern "C" __attribute__((visibility("default"))) void lammpsplugin_init(void* lammps, void* handle,
                                                                         void* register_style) {
    auto* lmp = static_cast<LAMMPS_NS::LAMMPS*>(lammps);
    if (mlff_abi_version() != MLFF_ABI_VERSION)
        lmp->error->all(FLERR, "mlffplugin.so was built for ABI version " + std::to_string(MLFF_ABI_VERSION) +
                                   " of libmlff, but version " + std::to_string(mlff_abi_version()) + " was loaded");
    static const std::string info = std::string("mlff pair style, libmlff ") + mlff_version_string();
    PluginEntry entry = {lmp->version, "pair", "mlff", info.c_str(), "the mlff authors", make_pair, handle};
    reinterpret_cast<Register>(register_style)(&entry, lammps);
}
