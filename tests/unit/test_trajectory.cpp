// SPDX-License-Identifier: MIT
// Trajectories of the command: what is written can be read, gone on with, and fails loudly.
#include <doctest/doctest.h>

#include <filesystem>

#include <unistd.h>
#ifdef MLFF_HAS_HDF5
#include <hdf5.h>
#endif

#include "core/error.h"
#include "dynamics/molecular_dynamics.h"
#include "test_dynamics_support.h"
#include "trajectory_writer.h"

using namespace mlff;
using namespace mlff::app;

// In place of the search for the module, which is part of this program.
#ifdef MLFF_HAS_HDF5
extern "C" H5mdOpener mlff_open_h5md;
#endif
std::unique_ptr<TrajectoryFile> mlff::app::open_h5md(const std::string& path, const Particles& atoms,
                                                     std::optional<uint64_t> go_on_at) {
#ifdef MLFF_HAS_HDF5
    return std::unique_ptr<TrajectoryFile>(mlff_open_h5md(path, atoms, go_on_at));
#else
    (void)atoms, (void)go_on_at;
    fail(Status::unsupported, path);
#endif
}

using namespace mlff::test;

namespace {

struct Folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("mlff-trajectory-" + std::to_string(::getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string file(const char* name) const { return (path / name).string(); }
};

// Four atoms on springs in a box, two of them fixed.
class Motion {
public:
    Motion() : springs_(kStart, 2), dynamics_(springs_, start(), DynamicsOptions{}) {}
    MolecularDynamics& dynamics() { return dynamics_; }

private:
    static inline const std::vector<double> kStart = {0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 3};
    static Particles start() {
        Particles particles = argon_atoms(kStart, 9);
        particles.is_fixed = {0, 1, 0, 1};
        set_temperature(particles, 300, 1);
        return particles;
    }
    Springs springs_;
    MolecularDynamics dynamics_;
};

}  // namespace

TEST_CASE("frames of extended XYZ hold the numbers of the run, and a run goes on where its restart file was") {
    const Folder folder;
    const std::string path = folder.file("t.xyz");
    Motion motion;
    uint64_t place = 0;
    std::vector<double> third;
    {
        TrajectoryWriter writer(open_trajectory(path, motion.dynamics().particles(), {}));
        for (int frame = 0; frame < 40; ++frame) {  // more than the queue holds
            writer.put(motion.dynamics());
            if (frame == 2) third = motion.dynamics().particles().positions;
            if (frame == 19) place = writer.flush();
            motion.dynamics().step();
        }
    }
    const std::vector<Frame> frames = read_extxyz(path);
    REQUIRE(frames.size() == 40);
    CHECK(frames[2].positions == third);
    CHECK(frames[39].info_number("step") == 39);
    CHECK(frames[39].find_column("velocities")->width == 3);
    CHECK(std::get<std::vector<bool>>(frames[0].find_column("move_mask")->values) ==
          std::vector<bool>{true, false, true, false});
    CHECK(frames[0].periodic == std::array<bool, 3>{true, true, true});
    TrajectoryWriter(open_trajectory(path, motion.dynamics().particles(), place)).put(motion.dynamics());
    const std::vector<Frame> again = read_extxyz(path);
    REQUIRE(again.size() == 21);
    CHECK(again[19].positions == frames[19].positions);
    CHECK(again[20].info_number("step") == 40);
    CHECK_THROWS_AS(open_trajectory(path, motion.dynamics().particles(), uint64_t{1} << 40), Error);
    CHECK_THROWS_AS(open_trajectory(folder.file("no/such/folder.xyz"), motion.dynamics().particles(), {}), Error);
    CHECK_THROWS_AS(open_trajectory(folder.file("t.dcd"), motion.dynamics().particles(), {}), Error);
}

TEST_CASE("a full disk is reported to the run, by the next frame or the flush") {
    const Folder folder;
    const std::string path = folder.file("full.xyz");
    std::filesystem::create_symlink("/dev/full", path);
    Motion motion;
    TrajectoryWriter writer(open_trajectory(path, motion.dynamics().particles(), {}));
    const auto write_until_it_fails = [&] {
        for (int frame = 0; frame < 100; ++frame) writer.put(motion.dynamics());
    };
    CHECK_THROWS_AS(write_until_it_fails(), Error);
    CHECK_THROWS_AS(writer.flush(), Error);
}

#ifdef MLFF_HAS_HDF5

namespace {

template <class T>
std::vector<T> read_data(const std::string& path, const char* name, hid_t type, std::vector<hsize_t>& size) {
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    REQUIRE(file >= 0);
    const hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
    REQUIRE(data >= 0);
    const hid_t space = H5Dget_space(data);
    size.resize(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
    H5Sget_simple_extent_dims(space, size.data(), nullptr);
    size_t count = 1;
    for (const hsize_t length : size) count *= length;
    std::vector<T> values(count);
    REQUIRE(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
    H5Sclose(space);
    H5Dclose(data);
    H5Fclose(file);
    return values;
}

}  // namespace

TEST_CASE("H5MD files hold positions, velocities, cells, steps and energies, and are gone on with") {
    const Folder folder;
    const std::string path = folder.file("t.h5md");
    Motion motion;
    uint64_t place = 0;
    std::vector<double> positions, velocities;
    {
        TrajectoryWriter writer(open_trajectory(path, motion.dynamics().particles(), {}));
        for (int frame = 0; frame < 8; ++frame) {
            writer.put(motion.dynamics());
            if (frame == 4) place = writer.flush();
            motion.dynamics().step();
        }
        writer.flush();
    }
    CHECK(place == 5);
    {
        TrajectoryWriter writer(open_trajectory(path, motion.dynamics().particles(), place));
        writer.put(motion.dynamics());
        writer.flush();
        positions = motion.dynamics().particles().positions;
        velocities = motion.dynamics().particles().velocities;
    }
    std::vector<hsize_t> size;
    const auto steps = read_data<int64_t>(path, "particles/atoms/velocity/step", H5T_NATIVE_INT64, size);
    CHECK(steps == std::vector<int64_t>{0, 1, 2, 3, 4, 8});
    const auto found = read_data<double>(path, "particles/atoms/position/value", H5T_NATIVE_DOUBLE, size);
    CHECK(size == std::vector<hsize_t>{6, 4, 3});
    const auto speeds = read_data<double>(path, "particles/atoms/velocity/value", H5T_NATIVE_DOUBLE, size);
    for (size_t i = 0; i < 12; ++i) {
        CHECK(std::abs(found[60 + i] - positions[i]) <= 1e-6);  // single precision
        CHECK(std::abs(speeds[60 + i] - velocities[i]) <= 1e-9);
    }
    const auto edges = read_data<double>(path, "particles/atoms/box/edges/value", H5T_NATIVE_DOUBLE, size);
    CHECK(size == std::vector<hsize_t>{6, 3, 3});
    CHECK((edges[45] == 9 && edges[46] == 0));
    const auto energies = read_data<double>(path, "observables/potential_energy/value", H5T_NATIVE_DOUBLE, size);
    CHECK(energies.back() == motion.dynamics().potential_energy());
    CHECK(read_data<int32_t>(path, "particles/atoms/species", H5T_NATIVE_INT32, size) == std::vector<int32_t>(4, 18));
    // More frames than there are, other atoms, another kind of file.
    CHECK_THROWS_AS(open_trajectory(path, motion.dynamics().particles(), uint64_t{99}), Error);
    CHECK_THROWS_AS(open_trajectory(path, argon_atoms({0, 0, 0}), uint64_t{1}), Error);
    const std::string other = folder.file("other.h5");
    TrajectoryWriter(open_trajectory(folder.file("t.xyz"), motion.dynamics().particles(), {})).put(motion.dynamics());
    std::filesystem::rename(folder.file("t.xyz"), other);
    CHECK_THROWS_AS(open_trajectory(other, motion.dynamics().particles(), uint64_t{0}), Error);
    CHECK_THROWS_AS(open_trajectory(folder.file("no/such/folder.h5"), motion.dynamics().particles(), {}), Error);
}

#endif
