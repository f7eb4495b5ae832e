// SPDX-License-Identifier: MIT
// Reads arbitrary bytes as a safetensors file: the tensors must fill the data. A container of ours must give the same
// metadata when packed again. A model of any family is loaded and evaluated. A restart file of one or of many
// systems is read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "dynamics/restart.h"
#include "evaluate_model.h"
#include "formats/module_container.h"
#include "painn/model.h"
#include "painn/weights/weights.h"

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

void check_container(const mlff::Safetensors& contents) {
    const mlff::Module root = mlff::unpack_module(contents, "fuzz");
    const mlff::Safetensors packed = mlff::pack_module(root);
    require(packed.tensors.size() == contents.tensors.size());
    const mlff::Module again = mlff::unpack_module(packed, "fuzz");
    require(again.attributes == root.attributes && again.class_path == root.class_path);
    require(mlff::pack_module(again).metadata == packed.metadata);
    mlff::ModuleFile file;
    file.root = root;
    mlff::fuzz::evaluate_module_file(std::move(file));
}

// Checks that an accepted restart is consistent.
void check_restart(const mlff::Restart& restart) {
    const mlff::Particles& particles = restart.state.particles;
    const size_t count = particles.atom_count();
    require(particles.positions.size() == 3 * count && particles.velocities.size() == 3 * count &&
            particles.masses.size() == count && particles.is_fixed.size() == count);
    require(restart.state.step_count >= 0 && restart.state.searched_positions.size() == 3 * count);
}

void check_many_restart(const mlff::ManyRestart& restart) {
    require(restart.members.size() == restart.ended.size());
    for (size_t i = 0; i < restart.members.size(); ++i)
        if (restart.ended[i].empty()) check_restart(restart.members[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const mlff::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    mlff::looks_like_safetensors(bytes);
    try {
        const mlff::Safetensors contents = mlff::read_safetensors(bytes, "fuzz");
        size_t total = 0;
        for (const auto& [name, tensor] : contents.tensors) {
            std::string copy(tensor.storage.size(), '\0');
            tensor.copy_bytes_to(reinterpret_cast<std::byte*>(copy.data()));
            total += copy.size();
        }
        require(total <= size);
        const auto format = contents.metadata.find("format");
        if (format != contents.metadata.end() && format->second == "mlff-dynamics")
            check_restart(mlff::parse_restart(contents, "fuzz"));
        else if (format != contents.metadata.end() && format->second == "mlff-many-dynamics")
            check_many_restart(mlff::parse_many_restart(contents, "fuzz"));
        else if (mlff::painn::looks_like_painn(contents))
            mlff::fuzz::evaluate_model(mlff::make_painn_model(contents, "fuzz"));
        else
            check_container(contents);
    } catch (const mlff::Error&) {}
    return 0;
}
