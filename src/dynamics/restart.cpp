// SPDX-License-Identifier: MIT
#include "dynamics/restart.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/elements.h"
#include "core/error.h"
#include "core/mapped_file.h"

namespace mlff {
namespace {

constexpr const char* kFormat = "mlff-dynamics";
constexpr const char* kManyFormat = "mlff-many-dynamics";
constexpr const char* kEnded = "ended";
constexpr const char* kVersion = "1";
constexpr const char* kPrefix = "run.";

template <class T>
Tensor tensor_of(DType dtype, const T* data, size_t count, std::vector<int64_t> shape) {
    const auto strides = row_major_strides(shape);
    return make_tensor(dtype, std::move(shape), strides, 0, std::as_bytes(std::span(data, count)), "restart");
}

class Reader {
public:
    Reader(const Safetensors& contents, const std::string& path) : contents_(contents), path_(path) {}

    const Tensor& find(const char* name, DType dtype, const std::vector<int64_t>& shape) {
        const Tensor* tensor = contents_.find(name);
        if (!tensor) fail(Status::format, path_, ": the restart file has no tensor '", name, "'");
        if (tensor->dtype != dtype || tensor->shape != shape)
            fail(Status::format, path_, ": tensor '", name, "' is ", dtype_name(tensor->dtype), " of shape ",
                 shape_text(tensor->shape), ", expected ", dtype_name(dtype), " of shape ", shape_text(shape));
        ++found_;
        return *tensor;
    }
    std::vector<double> doubles(const char* name, const std::vector<int64_t>& shape) {
        std::vector<double> numbers = find(name, DType::float64, shape).to_doubles();
        for (double number : numbers)
            if (!std::isfinite(number))
                fail(Status::format, path_, ": tensor '", name, "' holds a number that is not finite");
        return numbers;
    }
    Mat3 matrix(const char* name) {
        const std::vector<double> numbers = doubles(name, {3, 3});
        Mat3 result{};
        for (size_t k = 0; k < 9; ++k) result[k / 3][k % 3] = numbers[k];
        return result;
    }
    std::vector<uint8_t> flags(const char* name, int64_t count) {
        std::vector<uint8_t> result;
        for (int64_t flag : find(name, DType::uint8, {count}).to_integers()) {
            if (flag != 0 && flag != 1)
                fail(Status::format, path_, ": tensor '", name, "' holds ", flag, ", expected 0 or 1");
            result.push_back(static_cast<uint8_t>(flag));
        }
        return result;
    }
    std::string text(const char* key) const {
        const auto found = contents_.metadata.find(key);
        if (found == contents_.metadata.end())
            fail(Status::format, path_, ": the metadata have no '", key, "': not a restart file of mlff md");
        return found->second;
    }
    int64_t length(const char* name) const {
        const Tensor* tensor = contents_.find(name);
        if (!tensor || tensor->shape.size() != 1)
            fail(Status::format, path_, ": the restart file has no list '", name, "'");
        return tensor->shape[0];
    }
    void check_that_all_were_read() const {
        if (found_ != contents_.tensors.size()) fail(Status::format, path_, ": the restart file has unknown tensors");
    }

private:
    const Safetensors& contents_;
    const std::string& path_;
    size_t found_ = 0;
};

int64_t step_number(const std::string& text, const std::string& path) {
    int64_t step = -1;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), step);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || step < 0)
        fail(Status::format, path, ": step '", text, "' is not a step number");
    return step;
}

// The contents of a file, with the numbers that are nowhere else; the others stay in the restart.
struct Packed {
    std::vector<uint8_t> is_fixed, periodic;
    std::array<double, 4> scalars;
    Safetensors contents;
};

std::unique_ptr<Packed> pack(const Restart& restart) {
    auto packed = std::make_unique<Packed>();
    const DynamicsState& state = restart.state;
    const Particles& particles = state.particles;
    const SystemView& environment = particles.environment;
    const auto count = particles.atom_count();
    const auto atoms = static_cast<int64_t>(count);
    std::vector<uint8_t>&is_fixed = packed->is_fixed, &periodic = packed->periodic;
    is_fixed.resize(count);
    periodic.resize(3);
    for (size_t atom = 0; atom < count; ++atom) is_fixed[atom] = !particles.moves(atom);
    for (size_t k = 0; k < 3; ++k) periodic[k] = environment.periodic[k];
    packed->scalars = {state.potential_energy, state.heat, environment.total_charge, environment.spin_multiplicity};
    Safetensors& contents = packed->contents;
    const auto add = [&](const char* name, const double* data, std::vector<int64_t> shape) {
        size_t size = 1;
        for (int64_t length : shape) size *= static_cast<size_t>(length);
        contents.tensors.emplace_back(name, tensor_of(DType::float64, data, size, std::move(shape)));
    };
    add("masses", particles.masses.data(), {atoms});
    add("positions", particles.positions.data(), {atoms, 3});
    add("velocities", particles.velocities.data(), {atoms, 3});
    const std::vector<double>& searched =
        state.searched_positions.size() == 3 * count ? state.searched_positions : particles.positions;
    add("searched_positions", searched.data(), {atoms, 3});
    add("cell", environment.cell[0].data(), {3, 3});
    add("searched_cell", state.searched_cell[0].data(), {3, 3});
    add("thermostat", state.thermostat.data(), {static_cast<int64_t>(state.thermostat.size())});
    add("scalars", packed->scalars.data(), {4});
    contents.tensors.emplace_back("atomic_numbers",
                                  tensor_of(DType::int32, particles.atomic_numbers.data(), count, {atoms}));
    contents.tensors.emplace_back("is_fixed", tensor_of(DType::uint8, is_fixed.data(), count, {atoms}));
    contents.tensors.emplace_back("periodic", tensor_of(DType::uint8, periodic.data(), 3, {3}));
    contents.metadata = {{"format", kFormat}, {"version", kVersion}, {"step", std::to_string(state.step_count)}};
    for (const auto& [key, value] : restart.run) contents.metadata[kPrefix + key] = value;
    return packed;
}

// "17/positions" becomes 17 and "positions".
std::pair<size_t, std::string> member_and_name(const std::string& text, size_t count, const std::string& path) {
    size_t member = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), member);
    const auto length = static_cast<size_t>(parsed.ptr - text.data());
    if (parsed.ec != std::errc() || length + 1 >= text.size() || text[length] != '/' || member >= count)
        fail(Status::format, path, ": '", text, "' belongs to none of the ", count, " systems of the restart file");
    return {member, text.substr(length + 1)};
}

}  // namespace

void write_restart(const std::string& path, const Restart& restart) {
    write_safetensors(path, pack(restart)->contents);
}

void write_many_restart(const std::string& path, const ManyRestart& restart) {
    if (restart.members.size() > kMostSystemsOfRestart)
        fail(Status::argument, path, ": ", restart.members.size(), " systems, a restart file has at most ",
             kMostSystemsOfRestart);
    Safetensors all;
    std::vector<std::unique_ptr<Packed>> packed;
    all.metadata = {{"format", kManyFormat}, {"version", kVersion}, {"count", std::to_string(restart.members.size())}};
    for (const auto& [key, value] : restart.run) all.metadata[kPrefix + key] = value;
    for (size_t i = 0; i < restart.members.size(); ++i) {
        const std::string prefix = std::to_string(i) + "/";
        if (!restart.ended[i].empty()) {
            all.metadata[prefix + kEnded] = restart.ended[i];
            continue;
        }
        packed.push_back(pack(restart.members[i]));
        Safetensors& contents = packed.back()->contents;
        for (auto& [key, value] : contents.metadata) all.metadata[prefix + key] = std::move(value);
        for (auto& [name, tensor] : contents.tensors) all.tensors.emplace_back(prefix + name, std::move(tensor));
    }
    write_safetensors(path, all);
}

ManyRestart read_many_restart(const std::string& path) {
    const auto file = MappedFile::open(path);
    return parse_many_restart(read_safetensors(file->bytes(), path), path);
}

ManyRestart parse_many_restart(const Safetensors& contents, const std::string& path) {
    const auto text = [&](const char* key) {
        const auto found = contents.metadata.find(key);
        return found == contents.metadata.end() ? std::string() : found->second;
    };
    if (text("format") != kManyFormat)
        fail(Status::format, path, ": not a restart file of many systems (format '", text("format"), "', expected ",
             kManyFormat, ")");
    if (text("version") != kVersion)
        fail(Status::unsupported, path, ": version '", text("version"), "' of the restart format, expected version ",
             kVersion);
    const auto count = static_cast<size_t>(step_number(text("count"), path));
    if (count > contents.metadata.size()) fail(Status::format, path, ": systems are missing in the restart file");
    ManyRestart restart;
    restart.ended.resize(count);
    std::vector<Safetensors> members(count);
    for (const auto& [key, value] : contents.metadata) {
        if (key == "format" || key == "version" || key == "count") continue;
        if (key.starts_with(kPrefix)) {
            restart.run[key.substr(std::strlen(kPrefix))] = value;
            continue;
        }
        const auto [member, name] = member_and_name(key, count, path);
        if (name == kEnded)
            restart.ended[member] = value;
        else
            members[member].metadata[name] = value;
    }
    for (const auto& [name, tensor] : contents.tensors) {
        const auto [member, own_name] = member_and_name(name, count, path);
        members[member].tensors.emplace_back(own_name, tensor);
    }
    for (size_t i = 0; i < count; ++i)
        restart.members.push_back(restart.ended[i].empty() ? parse_restart(members[i], concat(path, ": system ", i))
                                                           : Restart{});
    return restart;
}

Restart read_restart(const std::string& path) {
    const auto file = MappedFile::open(path);
    return parse_restart(read_safetensors(file->bytes(), path), path);
}

Restart parse_restart(const Safetensors& contents, const std::string& path) {
    Reader reader(contents, path);
    if (reader.text("format") != kFormat)
        fail(Status::format, path, ": format '", reader.text("format"), "', expected ", kFormat);
    if (reader.text("version") != kVersion)
        fail(Status::unsupported, path, ": version '", reader.text("version"),
             "' of the restart format, expected version ", kVersion);
    Restart restart;
    DynamicsState& state = restart.state;
    Particles& particles = state.particles;
    state.step_count = step_number(reader.text("step"), path);
    const int64_t atoms = reader.length("atomic_numbers");
    for (int64_t z : reader.find("atomic_numbers", DType::int32, {atoms}).to_integers()) {
        if (z < 1 || z > kMaxAtomicNumber)
            fail(Status::format, path, ": tensor 'atomic_numbers' holds ", z, ", expected 1 to ", kMaxAtomicNumber);
        particles.atomic_numbers.push_back(static_cast<int32_t>(z));
    }
    particles.masses = reader.doubles("masses", {atoms});
    for (double mass : particles.masses)
        if (!(mass > 0)) fail(Status::format, path, ": tensor 'masses' holds ", mass, " u, expected more than 0");
    particles.positions = reader.doubles("positions", {atoms, 3});
    particles.velocities = reader.doubles("velocities", {atoms, 3});
    particles.is_fixed = reader.flags("is_fixed", atoms);
    particles.environment.cell = reader.matrix("cell");
    const std::vector<uint8_t> periodic = reader.flags("periodic", 3);
    for (size_t k = 0; k < 3; ++k) particles.environment.periodic[k] = periodic[k] != 0;
    state.searched_positions = reader.doubles("searched_positions", {atoms, 3});
    state.searched_cell = reader.matrix("searched_cell");
    state.thermostat = reader.doubles("thermostat", {reader.length("thermostat")});
    const std::vector<double> scalars = reader.doubles("scalars", {4});
    state.potential_energy = scalars[0];
    state.heat = scalars[1];
    particles.environment.total_charge = scalars[2];
    particles.environment.spin_multiplicity = scalars[3];
    reader.check_that_all_were_read();
    for (const auto& [key, value] : contents.metadata)
        if (key.starts_with(kPrefix)) restart.run[key.substr(std::strlen(kPrefix))] = value;
    return restart;
}

}  // namespace mlff
