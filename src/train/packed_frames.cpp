// SPDX-License-Identifier: MIT
#include "train/packed_frames.h"

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/mapped_file.h"
#include "formats/json_text.h"
#include "formats/safetensors.h"

namespace mlff::train {
namespace {

class Reader {
public:
    Reader(const Safetensors& file, const std::string& path) : file_(file), path_(path) {}

    const Tensor* find(const char* name, const std::vector<int64_t>& shape) const {
        const Tensor* tensor = file_.find(name);
        if (tensor && tensor->shape != shape)
            fail(Status::format, path_, ": tensor '", name, "' has shape ", shape_text(tensor->shape), ", expected ",
                 shape_text(shape));
        return tensor;
    }
    const Tensor& get(const char* name, const std::vector<int64_t>& shape) const {
        const Tensor* tensor = find(name, shape);
        if (!tensor) fail(Status::format, path_, ": no tensor '", name, "'");
        return *tensor;
    }
    // [atoms][3] in the file's units
    std::vector<double> vectors(const char* name, const char* step_name, int64_t atoms) const {
        const Tensor* tensor = file_.find(name);
        if (!tensor) fail(Status::format, path_, ": no tensor '", name, "'");
        if (is_floating(tensor->dtype)) return get(name, {atoms, 3}).to_doubles();
        get(name, {3, atoms, 3});
        if (tensor->dtype != DType::uint8)
            fail(Status::format, path_, ": tensor '", name, "' is ", dtype_name(tensor->dtype),
                 ", expected uint8 or floating point");
        const double step = metadata_number(step_name);
        const auto plane = static_cast<size_t>(3 * atoms);
        std::vector<std::byte> bytes(3 * plane);
        tensor->copy_bytes_to(bytes.data());
        std::vector<double> values(plane);
        for (size_t i = 0; i < plane; ++i) {
            const int count = std::to_integer<int>(bytes[i]) | std::to_integer<int>(bytes[plane + i]) << 8 |
                              std::to_integer<int>(bytes[2 * plane + i]) << 16;
            values[i] = (count - (1 << 23)) * step;
        }
        return values;
    }

private:
    double metadata_number(const char* name) const {
        const auto found = file_.metadata.find(name);
        double value = 0;
        if (found == file_.metadata.end() ||
            std::from_chars(found->second.data(), found->second.data() + found->second.size(), value).ec !=
                std::errc() ||
            !(value > 0))
            fail(Status::format, path_, ": metadata '", name, "' must be a number above 0");
        return value;
    }
    const Safetensors& file_;
    const std::string& path_;
};

std::vector<std::string> read_kinds(const Safetensors& file, const std::string& path) {
    const auto found = file.metadata.find("kinds");
    if (found == file.metadata.end()) return {"frame"};
    const nlohmann::json list = parse_untrusted_json(found->second, path);
    std::vector<std::string> kinds;
    if (!list.is_array() || list.empty()) fail(Status::format, path, ": metadata 'kinds' must be a list of names");
    for (const auto& entry : list) {
        if (!entry.is_string()) fail(Status::format, path, ": metadata 'kinds' must be a list of names");
        kinds.push_back(entry.get<std::string>());
    }
    return kinds;
}

}  // namespace

bool is_packed_frames(const std::string& path) {
    if (path == "-") return false;
    return looks_like_safetensors(MappedFile::open(path)->bytes());
}

FrameSet read_packed_frames(const std::string& path) {
    const auto mapped = MappedFile::open(path);
    const Safetensors file = read_safetensors(mapped->bytes(), path);
    const auto format = file.metadata.find("format"), layout = file.metadata.find("layout");
    if (format == file.metadata.end() || format->second != "mlff-frames" || layout == file.metadata.end() ||
        layout->second != "1")
        fail(Status::format, path, ": not a file of frames (metadata format=mlff-frames, layout=1)");
    const Reader reader(file, path);
    const Tensor* counts_tensor = file.find("atom_counts");
    if (!counts_tensor || counts_tensor->shape.size() != 1)
        fail(Status::format, path, ": no tensor 'atom_counts' of shape [frames]");
    const std::vector<int64_t> counts = counts_tensor->to_integers();
    const auto frame_count = static_cast<int64_t>(counts.size());
    int64_t atoms = 0;
    for (const int64_t count : counts) {
        if (count < 1 || count > 65535)
            fail(Status::format, path, ": a frame has ", count, " atoms, expected 1 to 65535");
        atoms += count;
    }
    const auto numbers = reader.get("numbers", {atoms}).to_integers();
    const auto positions = reader.vectors("positions", "position_step", atoms),
               forces = reader.vectors("forces", "force_step", atoms);
    const auto energies = reader.get("energies", {frame_count}).to_doubles();
    const Tensor* split_tensor = reader.find("split", {frame_count});
    const Tensor* kind_tensor = reader.find("kind", {frame_count});
    const Tensor* cell_tensor = reader.find("cells", {frame_count, 9});
    const Tensor* stress_tensor = reader.find("stress", {frame_count, 9});
    const auto split = split_tensor ? split_tensor->to_integers() : std::vector<int64_t>();
    const auto kind = kind_tensor ? kind_tensor->to_integers() : std::vector<int64_t>();
    const auto cells = cell_tensor ? cell_tensor->to_doubles() : std::vector<double>();
    const auto stress = stress_tensor ? stress_tensor->to_doubles() : std::vector<double>();

    FrameSet set;
    set.kinds = read_kinds(file, path);
    set.frames.resize(counts.size());
    std::ptrdiff_t atom = 0;
    for (size_t index = 0; index < counts.size(); ++index) {
        LabelledFrame& frame = set.frames[index];
        const auto end = atom + static_cast<std::ptrdiff_t>(counts[index]);
        frame.atomic_numbers.assign(numbers.begin() + atom, numbers.begin() + end);
        frame.positions.assign(positions.begin() + 3 * atom, positions.begin() + 3 * end);
        frame.forces.assign(forces.begin() + 3 * atom, forces.begin() + 3 * end);
        frame.energy = energies[index];
        if (!split.empty()) {
            if (split[index] < 0 || split[index] > 2)
                fail(Status::format, path, ": frame ", index, " has split ", split[index], ", expected 0, 1 or 2");
            frame.split = static_cast<Split>(split[index]);
        }
        if (!kind.empty()) {
            if (kind[index] < 0 || static_cast<size_t>(kind[index]) >= set.kinds.size())
                fail(Status::format, path, ": frame ", index, " has kind ", kind[index]);
            frame.kind = static_cast<int>(kind[index]);
        }
        for (size_t k = 0; k < 9 && !cells.empty(); ++k) {
            frame.cell[k / 3][k % 3] = cells[9 * index + k];
            if (cells[9 * index + k] != 0) frame.periodic = {true, true, true};
        }
        if (!stress.empty() && !std::isnan(stress[9 * index])) {
            frame.stress.emplace();
            for (size_t k = 0; k < 9; ++k) (*frame.stress)[k] = stress[9 * index + k];
        }
        atom = end;
    }
    return set;
}

}  // namespace mlff::train
