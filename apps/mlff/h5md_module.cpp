// SPDX-License-Identifier: MIT
// H5MD 1.1 (de Buyl, Colberg and Hofling 2014) through the HDF5 library: positions and velocities in single precision,
// compressed; the cell and the energies in double precision. The place to go on from is the number of frames. A module
// that the command loads when it is needed: HDF5 brings dozens of libraries with it, and none of them is needed for
// anything else.
//
//   /particles/atoms/{position, velocity, box/edges}/{step, time, value}, species, mass
//   /observables/{potential_energy, kinetic_energy, temperature}/{step, time, value}; step and time are the same data
//   sets everywhere
//
// A run that is killed leaves a file that opens and has every frame up to the last flush. Between flushes the file only
// grows: the library keeps what describes the data in memory (keep_metadata_in_memory), and data that a flush has
// described is not moved. Frames have chunks of their own, which are written once; chunks that several frames share are
// not compressed, so that they are written again in their old place.
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/error.h"
#include "trajectory.h"

namespace mlff::app {
namespace {

// An object of the HDF5 library, closed by the function that belongs to it.
class Handle {
public:
    Handle() = default;
    Handle(hid_t id, herr_t (*close)(hid_t), const std::string& path, const char* what) : id_(id), close_(close) {
        if (id < 0) fail(Status::file, path, ": HDF5 cannot ", what);
    }
    Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
    Handle& operator=(Handle&& other) noexcept {
        std::swap(id_, other.id_);
        std::swap(close_, other.close_);
        return *this;
    }
    ~Handle() {
        if (id_ >= 0) close_(id_);
    }
    operator hid_t() const { return id_; }

private:
    hid_t id_ = -1;
    herr_t (*close_)(hid_t) = nullptr;
};

class H5mdFile : public TrajectoryFile {
public:
    H5mdFile(const std::string& path, const Particles& atoms, std::optional<uint64_t> go_on_at)
        : path_(path), atom_count_(atoms.atom_count()) {
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are ours to tell
        if (atoms.atom_count() == 0) fail(Status::system, path, ": a trajectory needs atoms");
        if (go_on_at)
            reopen(*go_on_at);
        else
            create(atoms);
        flush();
    }

    void write(const Snapshot& snapshot) override {
        single_.assign(snapshot.positions.begin(), snapshot.positions.end());
        append(position_, H5T_NATIVE_FLOAT, single_.data());
        single_.assign(snapshot.velocities.begin(), snapshot.velocities.end());
        append(velocity_, H5T_NATIVE_FLOAT, single_.data());
        append(edges_, H5T_NATIVE_DOUBLE, snapshot.cell[0].data());
        append(potential_energy_, H5T_NATIVE_DOUBLE, &snapshot.potential_energy);
        append(kinetic_energy_, H5T_NATIVE_DOUBLE, &snapshot.kinetic_energy);
        append(temperature_, H5T_NATIVE_DOUBLE, &snapshot.temperature);
        append(time_, H5T_NATIVE_DOUBLE, &snapshot.time);
        append(step_, H5T_NATIVE_INT64, &snapshot.step);
        ++frame_count_;
        if (Clock::now() - flushed_ > kFlushInterval) flush();
    }

    uint64_t flush() override {
        flushed_ = Clock::now();
        if (H5Fflush(file_, H5F_SCOPE_LOCAL) < 0) fail(Status::file, path_, ": HDF5 cannot write the file to disk");
        return frame_count_;
    }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds kFlushInterval{2};  // of frames, a killed run loses no more

    Handle group(hid_t parent, const char* name) {
        return {H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose, path_, "make a group"};
    }

    void set_text(hid_t object, const char* name, const char* text) {
        const Handle type(H5Tcopy(H5T_C_S1), H5Tclose, path_, "make a type"),
            space(H5Screate(H5S_SCALAR), H5Sclose, path_, "make a space");
        H5Tset_size(type, H5T_VARIABLE);
        H5Tset_cset(type, H5T_CSET_UTF8);
        const Handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose, path_,
                               "make an attribute");
        check(H5Awrite(attribute, type, &text));
    }

    // A data set that does not grow, or an attribute, of `count` values (0: one value).
    template <class T>
    void set_values(hid_t parent, const char* name, hid_t file_type, hid_t memory_type, const T* values, hsize_t count,
                    bool is_attribute) {
        const Handle space(count > 0 ? H5Screate_simple(1, &count, nullptr) : H5Screate(H5S_SCALAR), H5Sclose, path_,
                           "make a space");
        if (is_attribute) {
            const Handle attribute(H5Acreate2(parent, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                                   path_, "make an attribute");
            check(H5Awrite(attribute, memory_type, values));
        } else {
            const Handle data(H5Dcreate2(parent, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                              H5Dclose, path_, "make a data set");
            check(H5Dwrite(data, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        }
    }

    // A data set [frame][item...] that grows.
    Handle series(hid_t parent, const char* name, hid_t type, const std::vector<hsize_t>& item, const char* unit) {
        std::vector<hsize_t> size = {0}, most = {H5S_UNLIMITED}, chunk = {item.empty() ? hsize_t{1024} : hsize_t{1}};
        for (const hsize_t length : item) size.push_back(length), most.push_back(length), chunk.push_back(length);
        if (item.size() == 2 && item[0] == 3) chunk[0] = 64;  // cells
        const Handle space(H5Screate_simple(static_cast<int>(size.size()), size.data(), most.data()), H5Sclose, path_,
                           "make a space");
        const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, path_, "make properties");
        check(H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data()));
        if (chunk[0] == 1 && H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0) {
            H5Pset_shuffle(properties);
            H5Pset_deflate(properties, 3);
        }
        Handle data(H5Dcreate2(parent, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT), H5Dclose, path_,
                    "make a data set");
        if (unit) set_text(data, "unit", unit);
        return data;
    }

    // The group of a quantity that changes: step, time and value. The first one makes step and time, the others link to
    // them.
    Handle element(hid_t parent, const char* name, const std::vector<hsize_t>& item, hid_t type, const char* unit) {
        const Handle place = group(parent, name);
        if (step_ < 0) {
            step_ = series(place, "step", H5T_STD_I64LE, {}, nullptr);
            time_ = series(place, "time", H5T_IEEE_F64LE, {}, "fs");
        } else {
            check(H5Olink(step_, place, "step", H5P_DEFAULT, H5P_DEFAULT));
            check(H5Olink(time_, place, "time", H5P_DEFAULT, H5P_DEFAULT));
        }
        return series(place, "value", type, item, unit);
    }

    // Else some of it is written whenever the library's cache is full, and a killed run leaves a half of it.
    Handle keep_metadata_in_memory() {
        Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, path_, "make properties");
        H5AC_cache_config_t config{};
        config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
        check(H5Pget_mdc_config(access, &config));
        config.evictions_enabled = false;
        config.incr_mode = H5C_incr__off;  // these three must be off
        config.flash_incr_mode = H5C_flash_incr__off;
        config.decr_mode = H5C_decr__off;
        check(H5Pset_mdc_config(access, &config));
        return access;
    }

    void create(const Particles& atoms) {
        file_ = Handle(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, keep_metadata_in_memory()), H5Fclose, path_,
                       "make the file");
        const Handle header = group(file_, "h5md");
        constexpr int kVersion[2] = {1, 1};
        set_values(header, "version", H5T_STD_I32LE, H5T_NATIVE_INT, kVersion, 2, true);
        set_text(group(header, "author"), "name", "unknown");
        const Handle creator = group(header, "creator");
        set_text(creator, "name", "mlff");
        set_text(creator, "version", MLFF_VERSION_STRING);

        const Handle particles = group(file_, "particles"), all = group(particles, "atoms");
        const auto count = static_cast<hsize_t>(atom_count_);
        position_ = element(all, "position", {count, 3}, H5T_IEEE_F32LE, "Angstrom");
        velocity_ = element(all, "velocity", {count, 3}, H5T_IEEE_F32LE, "Angstrom fs-1");
        set_values(all, "species", H5T_STD_I32LE, H5T_NATIVE_INT32, atoms.atomic_numbers.data(), count, false);
        set_values(all, "mass", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, atoms.masses.data(), count, false);
        const Handle box = group(all, "box");
        constexpr int kDimension = 3;
        set_values(box, "dimension", H5T_STD_I32LE, H5T_NATIVE_INT, &kDimension, 0, true);
        const Handle text(H5Tcopy(H5T_C_S1), H5Tclose, path_, "make a type");
        H5Tset_size(text, H5T_VARIABLE);
        std::array<const char*, 3> boundary{};
        for (size_t k = 0; k < 3; ++k) boundary[k] = atoms.environment.periodic[k] ? "periodic" : "none";
        set_values(box, "boundary", text, text, boundary.data(), 3, true);
        if (atoms.environment.is_periodic()) edges_ = element(box, "edges", {3, 3}, H5T_IEEE_F64LE, "Angstrom");

        const Handle observables = group(file_, "observables");
        potential_energy_ = element(observables, "potential_energy", {}, H5T_IEEE_F64LE, "eV");
        kinetic_energy_ = element(observables, "kinetic_energy", {}, H5T_IEEE_F64LE, "eV");
        temperature_ = element(observables, "temperature", {}, H5T_IEEE_F64LE, "K");
    }

    void reopen(uint64_t frames) {
        file_ = Handle(H5Fopen(path_.c_str(), H5F_ACC_RDWR, keep_metadata_in_memory()), H5Fclose, path_,
                       "open the file to continue it");
        const auto data = [&](const char* name) {
            return Handle(H5Dopen2(file_, name, H5P_DEFAULT), H5Dclose, path_, "find a data set of an earlier run");
        };
        position_ = data("particles/atoms/position/value");
        velocity_ = data("particles/atoms/velocity/value");
        step_ = data("particles/atoms/position/step");
        time_ = data("particles/atoms/position/time");
        if (H5Lexists(file_, "particles/atoms/box/edges", H5P_DEFAULT) > 0)
            edges_ = data("particles/atoms/box/edges/value");
        potential_energy_ = data("observables/potential_energy/value");
        kinetic_energy_ = data("observables/kinetic_energy/value");
        temperature_ = data("observables/temperature/value");
        const std::vector<hsize_t> of_atoms = {atom_count_, 3}, of_cell = {3, 3}, single;
        const std::pair<const Handle*, const std::vector<hsize_t>*> all[] = {
            {&position_, &of_atoms},     {&velocity_, &of_atoms}, {&edges_, &of_cell},
            {&step_, &single},           {&time_, &single},       {&potential_energy_, &single},
            {&kinetic_energy_, &single}, {&temperature_, &single}};
        for (const auto& [series, item] : all) {
            if (*series < 0) continue;
            const std::vector<hsize_t> size = size_of(*series);
            if (!std::equal(item->begin(), item->end(), size.begin() + 1, size.end()))
                fail(Status::file, path_, ": the file has other atoms, or another program wrote it");
            if (size[0] < frames)
                fail(Status::file, path_, ": the file has ", size[0], " frames, fewer than the ", frames,
                     " it had when the restart file was written");
        }
        for (const auto& [series, item] : all) {
            if (*series < 0) continue;
            std::vector<hsize_t> size = size_of(*series);
            size[0] = static_cast<hsize_t>(frames);
            check(H5Dset_extent(*series, size.data()));
        }
        frame_count_ = frames;
    }

    std::vector<hsize_t> size_of(hid_t data) const {
        const Handle space(H5Dget_space(data), H5Sclose, path_, "read the size of a data set");
        std::vector<hsize_t> size(static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space), 1)));
        check(H5Sget_simple_extent_dims(space, size.data(), nullptr));
        return size;
    }

    void append(const Handle& series, hid_t memory_type, const void* values) {
        if (series < 0) return;
        std::vector<hsize_t> size = size_of(series), begin(size.size(), 0);
        size[0] = frame_count_ + 1;
        check(H5Dset_extent(series, size.data()));
        begin[0] = frame_count_;
        size[0] = 1;
        const Handle space(H5Dget_space(series), H5Sclose, path_, "read the size of a data set");
        const Handle memory(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose, path_,
                            "make a space");
        check(H5Sselect_hyperslab(space, H5S_SELECT_SET, begin.data(), nullptr, size.data(), nullptr));
        check(H5Dwrite(series, memory_type, memory, space, H5P_DEFAULT, values));
    }

    void check(herr_t status) const {
        if (status < 0) fail(Status::file, path_, ": HDF5 cannot write the file (is the disk full?)");
    }

    std::string path_;
    size_t atom_count_;
    hsize_t frame_count_ = 0;
    Clock::time_point flushed_;
    std::vector<float> single_;
    Handle file_;  // closed last
    Handle position_, velocity_, edges_, step_, time_, potential_energy_, kinetic_energy_, temperature_;
};

}  // namespace
}  // namespace mlff::app

// The one symbol of the module, of the type mlff::app::H5mdOpener.
extern "C" __attribute__((visibility("default"))) mlff::app::TrajectoryFile* mlff_open_h5md(
    const std::string& path, const mlff::Particles& atoms, std::optional<uint64_t> go_on_at) {
    return new mlff::app::H5mdFile(path, atoms, go_on_at);
}
