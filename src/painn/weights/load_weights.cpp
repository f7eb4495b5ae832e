// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "core/elements.h"
#include "core/error.h"
#include "formats/json_text.h"
#include "formats/tensor_reader.h"
#include "painn/weights/weights.h"

namespace mlff::painn {
namespace {

constexpr const char* kFormat = "mlff-painn";
constexpr const char* kLayout = "1";
constexpr double kLargestCutoff = 100;  // angstrom

Linear read_linear(TensorReader& reader, const std::string& key, int in_width, int out_width, bool has_bias = true) {
    Linear result;
    result.in_width = in_width;
    result.out_width = out_width;
    result.weight = reader.matrix(key + ".weight", {out_width, in_width});
    if (has_bias) result.bias = reader.matrix(key + ".bias", {out_width});
    return result;
}

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
    const JsonValue json = parse_json(file.text("config"), name + " (config)");
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
    block.filter = read_linear(reader, path + "filter", radial, 3 * hidden);
    block.message_hidden = read_linear(reader, path + "message.hidden", hidden, hidden);
    block.message_output = read_linear(reader, path + "message.output", hidden, 3 * hidden);
    block.mix = read_linear(reader, path + "update.mix", hidden, 2 * hidden, false);
    block.update_hidden = read_linear(reader, path + "update.hidden", 2 * hidden, hidden);
    block.update_output = read_linear(reader, path + "update.output", hidden, 3 * hidden);
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

bool looks_like_painn(const Safetensors& file) { return file.text("format") == kFormat; }

Weights load_weights(const Safetensors& file, const std::string& name_for_errors) {
    if (!looks_like_painn(file))
        fail(Status::format, name_for_errors, ": metadata 'format' is '", file.text("format"), "', expected '", kFormat,
             "'");
    if (file.text("painn_layout") != kLayout)
        fail(Status::unsupported, name_for_errors, ": PaiNN layout '", file.text("painn_layout"), "', expected '",
             kLayout, "'");
    const Config config = read_config(file, name_for_errors);
    Weights weights;
    weights.hidden = config.hidden;
    weights.radial_count = config.radial;
    weights.cutoff = config.cutoff;
    weights.card = JsonValue::Object();
    if (file.metadata.contains("card")) weights.card = parse_json(file.text("card"), name_for_errors + " (card)");
    if (!weights.card.is_object()) fail(Status::format, name_for_errors, ": card is not a JSON object");

    TensorReader reader(file, name_for_errors);
    weights.atomic_numbers = reader.atomic_numbers("atomic_numbers");
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
    weights.readout_hidden = read_linear(reader, "readout.hidden", config.hidden, config.hidden / 2);
    weights.readout_output = read_linear(reader, "readout.output", config.hidden / 2, 1);
    reader.expect_all_used();
    weights.parameter_count = reader.parameter_count();
    return weights;
}

}  // namespace mlff::painn
