// SPDX-License-Identifier: MIT
#include "trajectory.h"

#include <filesystem>
#include <sstream>

#include "append_file.h"
#include "core/elements.h"
#include "core/error.h"

namespace mlff::app {
namespace {

bool is_h5md(const std::string& path) {
    const std::string ending = std::filesystem::path(path).extension().string();
    return ending == ".h5" || ending == ".h5md" || ending == ".hdf5";
}

class ExtxyzTrajectory : public TrajectoryFile {
public:
    ExtxyzTrajectory(const std::string& path, const Particles& atoms, std::optional<uint64_t> go_on_at,
                     const std::string& head)
        : file_(path, go_on_at), atoms_(atoms), head_(head) {}

    void write(const Snapshot& snapshot) override {
        std::ostringstream text;
        write_extxyz(text, frame_of(snapshot, atoms_, head_));
        file_.write(text.view());
    }
    uint64_t flush() override { return file_.sync(); }

private:
    AppendFile file_;
    Particles atoms_;
    std::string head_;
};

}  // namespace

Frame frame_of(const Snapshot& snapshot, const Particles& atoms, const std::string& head) {
    Frame frame;
    frame.atomic_numbers = atoms.atomic_numbers;
    frame.positions = snapshot.positions;
    frame.periodic = atoms.environment.periodic;
    if (snapshot.cell != Mat3{}) frame.cell = snapshot.cell;
    frame.info.push_back({"step", InfoValue{std::vector<int64_t>{snapshot.step}, {}}});
    frame.set_info("time", snapshot.time);
    frame.set_info("energy", snapshot.potential_energy);
    frame.set_info("kinetic_energy", snapshot.kinetic_energy);
    frame.set_info("temperature", snapshot.temperature);
    if (atoms.environment.total_charge != 0) frame.set_info("total_charge", atoms.environment.total_charge);
    if (atoms.environment.spin_multiplicity != 1) frame.set_info("total_spin", atoms.environment.spin_multiplicity);
    if (!head.empty()) frame.set_info("head", head);
    frame.set_column("velocities", 3, snapshot.velocities);
    bool has_own_masses = false;
    for (size_t atom = 0; atom < atoms.atom_count(); ++atom)
        has_own_masses |= atoms.masses[atom] != atomic_mass(atoms.atomic_numbers[atom]);
    if (has_own_masses) frame.set_column("masses", 1, atoms.masses);
    frame.set_column("forces", 3, snapshot.forces);
    if (atoms.has_fixed_atoms()) {
        std::vector<bool> moves;
        for (size_t atom = 0; atom < atoms.atom_count(); ++atom) moves.push_back(atoms.moves(atom));
        frame.columns.push_back({"move_mask", 1, moves});
    }
    return frame;
}

void check_trajectory_name(const std::string& path) {
    const std::string ending = std::filesystem::path(path).extension().string();
    if (!is_h5md(path) && ending != ".xyz" && ending != ".extxyz")
        fail(Status::argument, "--output ", path,
             ": expected a name that ends in .xyz or .extxyz (extended XYZ), or .h5, .h5md or .hdf5 (H5MD)");
}

std::unique_ptr<TrajectoryFile> open_trajectory(const std::string& path, const Particles& atoms,
                                                std::optional<uint64_t> go_on_at, const std::string& head) {
    check_trajectory_name(path);
    if (is_h5md(path)) return open_h5md(path, atoms, go_on_at);
    return std::make_unique<ExtxyzTrajectory>(path, atoms, go_on_at, head);
}

}  // namespace mlff::app
