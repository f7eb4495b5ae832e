// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <set>

#include "core/elements.h"
#include "core/error.h"
#include "formats/json_text.h"
#include "painn/weights/weights.h"

namespace mlff::painn {
namespace {

constexpr const char* kFormat = "mlff-painn";
constexpr const char* kLayout = "1";
constexpr double kLargestCutoff = 100;  // angstrom
constexpr double kLargestSize = 1e30;   // of any number: it and products of a few must fit a float

std::string metadata_of(const Safetensors& file, const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string() : found->second;
}

// Reads tensors by name and checks them. Tensors that were never read are unknown.
class TensorReader {
public:
    TensorReader(const Safetensors& file, const std::string& name) : file_(file), name_(name) {
        for (const auto& [key, tensor] : file.tensors) left_.insert(key);
    }

    bool has(const std::string& key) const { return file_.find(key) != nullptr; }

    const Tensor& take(const std::string& key, const std::vector<int64_t>& shape) {
        const Tensor* tensor = file_.find(key);
        if (!tensor) broken(key, "is missing");
        if (tensor->shape != shape)
            broken(key, "has shape ", shape_text(tensor->shape), ", expected ", shape_text(shape));
        left_.erase(key);
        return *tensor;
    }

    std::vector<double> doubles(const std::string& key, const std::vector<int64_t>& shape) {
        const Tensor& tensor = take(key, shape);
        if (tensor.dtype != DType::float64) broken(key, "has type ", dtype_name(tensor.dtype), ", expected float64");
        return finite(key, tensor);
    }

    std::vector<double> matrix(const std::string& key, const std::vector<int64_t>& shape) {
        const Tensor& tensor = take(key, shape);
        if (tensor.dtype != DType::float64 && tensor.dtype != DType::float32)
            broken(key, "has type ", dtype_name(tensor.dtype), ", expected float32 or float64");
        parameter_count_ += tensor.element_count();
        return finite(key, tensor);
    }

    Linear linear(const std::string& key, int in_width, int out_width, bool has_bias = true) {
        Linear result;
        result.in_width = in_width;
        result.out_width = out_width;
        result.weight = matrix(key + ".weight", {out_width, in_width});
        if (has_bias) result.bias = matrix(key + ".bias", {out_width});
        return result;
    }

    void expect_all_used() const {
        if (!left_.empty()) broken(std::string(*left_.begin()), "is unknown");
    }
    int64_t parameter_count() const { return parameter_count_; }

    template <class... Parts>
    [[noreturn]] void broken(const std::string& key, const Parts&... parts) const {
        fail(Status::format, name_, ": tensor '", key, "' ", parts...);
    }

private:
    std::vector<double> finite(const std::string& key, const Tensor& tensor) const {
        std::vector<double> values = tensor.to_doubles();
        for (size_t i = 0; i < values.size(); ++i)
            if (!(std::abs(values[i]) <= kLargestSize))
                broken(key, "holds ", values[i], " at index ", i, ", which is not finite or too large");
        return values;
    }

    const Safetensors& file_;
    const std::string& name_;
    std::set<std::string_view> left_;
    int64_t parameter_count_ = 0;
};

struct Config {
    int hidden = 0, blocks = 0, radial = 0;
    double cutoff = 0;
};

int whole_number(const JsonValue& config, const char* key, int low, int high, int multiple, const std::string& name) {
    if (!config.contains(key)) fail(Status::format, name, ": config has no '", key, "'");
    const JsonValue& value = config[key];
    const bool is_good =
        value.is_number_integer() && value.number() >= low && value.number() <= high && value.integer() % multiple == 0;
    if (!is_good)
        fail(Status::format, name, ": config '", key, "' is ", value.dump(), ", expected ",
             multiple > 1 ? concat("a multiple of ", multiple, " ") : std::string(), "from ", low, " to ", high);
    return static_cast<int>(value.integer());
}

Config read_config(const Safetensors& file, const std::string& name) {
    const JsonValue json = parse_json(metadata_of(file, "config"), name + " (config)");
    if (!json.is_object()) fail(Status::format, name, ": config is not a JSON object");
    for (const auto& [key, value] : json.object())
        if (key != "hidden" && key != "blocks" && key != "radial" && key != "cutoff")
            fail(Status::format, name, ": config '", key, "' is unknown");
    Config config;
    config.hidden = whole_number(json, "hidden", 32, 256, 32, name);
    config.blocks = whole_number(json, "blocks", 1, 8, 1, name);
    config.radial = whole_number(json, "radial", 1, 64, 1, name);
    if (!json.contains("cutoff") || !json["cutoff"].is_number())
        fail(Status::format, name, ": config has no number 'cutoff'");
    config.cutoff = json["cutoff"].number();
    if (!(config.cutoff > 0 && config.cutoff <= kLargestCutoff))
        fail(Status::format, name, ": config 'cutoff' is ", config.cutoff, ", expected more than 0 and at most ",
             kLargestCutoff, " angstrom");
    return config;
}

std::vector<int> read_atomic_numbers(TensorReader& reader, const Safetensors& file) {
    constexpr const char* kName = "atomic_numbers";
    const Tensor* found = file.find(kName);
    const int64_t count = found && found->shape.size() == 1 ? found->shape[0] : 0;
    if (found && (count < 1 || count > kMaxAtomicNumber))
        reader.broken(kName, "has shape ", shape_text(found->shape), ", expected [1] to [", kMaxAtomicNumber, "]");
    const Tensor& tensor = reader.take(kName, {count});
    if (tensor.dtype != DType::int64) reader.broken(kName, "has type ", dtype_name(tensor.dtype), ", expected int64");
    std::vector<int> numbers;
    for (int64_t z : tensor.to_integers()) {
        if (z < 1 || z > kMaxAtomicNumber) reader.broken(kName, "holds ", z, ", which is not an atomic number");
        if (!numbers.empty() && z <= numbers.back())
            reader.broken(kName, "is not ascending: ", z, " comes after ", numbers.back());
        numbers.push_back(static_cast<int>(z));
    }
    return numbers;
}

std::vector<double> read_closest(TensorReader& reader, const std::vector<int>& atomic_numbers, double cutoff) {
    constexpr const char* kName = "closest";
    const size_t count = atomic_numbers.size();
    std::vector<double> closest = reader.doubles(kName, {static_cast<int64_t>(count), static_cast<int64_t>(count)});
    for (size_t i = 0; i < count; ++i)
        for (size_t j = 0; j < count; ++j) {
            const double here = closest[i * count + j], there = closest[j * count + i];
            if (!(here > 0 && here < cutoff))
                reader.broken(kName, "holds ", here, ", expected more than 0 and less than the cutoff");
            if (here != there)
                reader.broken(kName, "is not symmetric: ", here, " and ", there, " for atomic numbers ",
                              atomic_numbers[i], " and ", atomic_numbers[j]);
        }
    return closest;
}

Block read_block(TensorReader& reader, const std::string& path, int hidden, int radial) {
    Block block;
    block.filter = reader.linear(path + "filter", radial, 3 * hidden);
    block.message_hidden = reader.linear(path + "message.hidden", hidden, hidden);
    block.message_output = reader.linear(path + "message.output", hidden, 3 * hidden);
    block.mix = reader.linear(path + "update.mix", hidden, 2 * hidden, false);
    block.update_hidden = reader.linear(path + "update.hidden", 2 * hidden, hidden);
    block.update_output = reader.linear(path + "update.output", hidden, 3 * hidden);
    return block;
}

}  // namespace

int Weights::element_of(int atomic_number) const {
    const auto found = std::lower_bound(atomic_numbers.begin(), atomic_numbers.end(), atomic_number);
    return found != atomic_numbers.end() && *found == atomic_number ? static_cast<int>(found - atomic_numbers.begin())
                                                                    : -1;
}

void find_elements(const Weights& weights, std::span<const SystemView> systems, std::vector<int>& elements) {
    elements.clear();
    for (const SystemView& system : systems)
        for (int64_t atom = 0; atom < system.atom_count; ++atom) {
            elements.push_back(weights.element_of(system.atomic_numbers[atom]));
            if (elements.back() < 0)
                fail(Status::system, "atom ", atom, " has atomic number ", system.atomic_numbers[atom],
                     ", which the model does not know; it knows ", symbols_text(weights.atomic_numbers));
        }
}

bool looks_like_painn(const Safetensors& file) { return metadata_of(file, "format") == kFormat; }

Weights load_weights(const Safetensors& file, const std::string& name_for_errors) {
    if (!looks_like_painn(file))
        fail(Status::format, name_for_errors, ": metadata 'format' is '", metadata_of(file, "format"), "', expected '",
             kFormat, "'");
    if (metadata_of(file, "painn_layout") != kLayout)
        fail(Status::unsupported, name_for_errors, ": PaiNN layout '", metadata_of(file, "painn_layout"),
             "', expected '", kLayout, "'");
    const Config config = read_config(file, name_for_errors);
    Weights weights;
    weights.hidden = config.hidden;
    weights.radial_count = config.radial;
    weights.cutoff = config.cutoff;
    weights.card = JsonValue::Object();
    if (file.metadata.contains("card"))
        weights.card = parse_json(metadata_of(file, "card"), name_for_errors + " (card)");
    if (!weights.card.is_object()) fail(Status::format, name_for_errors, ": card is not a JSON object");

    TensorReader reader(file, name_for_errors);
    weights.atomic_numbers = read_atomic_numbers(reader, file);
    const auto elements = static_cast<int64_t>(weights.atomic_numbers.size());
    weights.atomic_energies = reader.doubles("atomic_energies", {elements});
    weights.scales = reader.doubles("scales", {elements});
    if (reader.has("repulsion_radii")) {
        weights.repulsion_radii = reader.doubles("repulsion_radii", {elements});
        for (double radius : weights.repulsion_radii)
            if (radius < 0) reader.broken("repulsion_radii", "holds ", radius, ", expected no negative radius");
    }
    if (reader.has("closest")) weights.closest = read_closest(reader, weights.atomic_numbers, config.cutoff);
    weights.embedding = reader.matrix("embedding", {elements, config.hidden});
    weights.dtype = file.find("embedding")->dtype;
    for (int b = 0; b < config.blocks; ++b)
        weights.blocks.push_back(read_block(reader, concat("blocks.", b, "."), config.hidden, config.radial));
    weights.readout_hidden = reader.linear("readout.hidden", config.hidden, config.hidden / 2);
    weights.readout_output = reader.linear("readout.output", config.hidden / 2, 1);
    reader.expect_all_used();
    weights.parameter_count = reader.parameter_count();
    return weights;
}

}  // namespace mlff::painn
