// SPDX-License-Identifier: MIT
// The settings of a SevenNet checkpoint: what the file says, else the defaults of the package. Refuses by name what
// changes the numbers and is not implemented.
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "core/elements.h"
#include "nequip/weights/loaders.h"

namespace mlff::nequip {
namespace {

constexpr int kMaxModalities = 1024;
constexpr int kMaxHiddenLayers = 100;

// One dict of settings, seen as a module without tensors.
class Settings {
public:
    Settings(const JsonValue& dict, std::string path, LoadBudget& budget)
        : module_(std::make_unique<Module>()), reader_(*module_, std::move(path), budget), budget_(budget) {
        if (!dict.is_object()) reader_.malformed("is not a dict");
        module_->attributes = dict;
    }

    const ModuleReader& reader() const { return reader_; }
    const JsonValue* find(std::string_view name) const { return reader_.attribute(name); }
    double positive(std::string_view name) const { return reader_.positive(name); }
    bool flag(std::string_view name, bool if_absent = false) const { return reader_.flag(name, if_absent); }
    int integer(std::string_view name, int smallest, int largest) const {
        return reader_.integer(name, smallest, largest);
    }
    int integer(std::string_view name, int smallest, int largest, int if_absent) const {
        return find(name) ? integer(name, smallest, largest) : if_absent;
    }
    std::string text(std::string_view name, std::string_view if_absent) const {
        const JsonValue* found = find(name);
        if (found && !found->is_string()) reader_.malformed("'", name, "' is not text");
        return found ? found->text() : std::string(if_absent);
    }
    Settings dict(std::string_view name) const {
        const JsonValue* found = find(name);
        if (!found) reader_.malformed("has no setting '", name, "'");
        return {*found, concat(reader_.path(), ".", name), budget_};
    }
    std::vector<int> widths(std::string_view name) const {
        std::vector<int> result;
        const JsonValue* found = find(name);
        if (!found || !found->is_array() || found->size() > kMaxHiddenLayers)
            reader_.malformed("'", name, "' is not a list of widths");
        for (const JsonValue& item : *found) {
            const auto width = json_integer(item, 1, kMaxWidth);
            if (!width) reader_.malformed("'", name, "' holds something that is no width");
            result.push_back(*width);
        }
        return result;
    }
    // A dict of names or numbers to indices, which must be 0, 1, 2 ...: the keys in the order of the indices.
    std::vector<std::string> names_by_index(std::string_view name, int most) const {
        const JsonValue* found = find(name);
        if (!found || !found->is_object() || found->empty() || found->size() > static_cast<size_t>(most))
            reader_.malformed("'", name, "' is not a dict of 1 to ", most, " indices");
        std::vector<std::string> names(found->size());
        std::vector<bool> is_known(names.size(), false);
        for (const auto& [key, value] : found->object()) {
            const auto index = json_integer(value, 0, static_cast<int>(names.size()) - 1);
            if (!index || is_known[static_cast<size_t>(*index)])
                reader_.malformed("'", name, "' does not give every one of its ", names.size(), " keys an index");
            is_known[static_cast<size_t>(*index)] = true;
            names[static_cast<size_t>(*index)] = key;
        }
        return names;
    }
    // Refuses every value but this one, which is also the default.
    void expect(std::string_view name, std::string_view only) const {
        const std::string found = text(name, only);
        if (found != only) reader_.unsupported(name, " '", found, "' is not implemented; '", only, "' is");
    }

private:
    std::unique_ptr<Module> module_;
    ModuleReader reader_;
    LoadBudget& budget_;
};

struct Version {
    std::array<int, 3> numbers{};
    bool is_dev0 = false;
};

Version parse_version(const ModuleReader& reader, std::string_view text) {
    Version version;
    std::string_view rest = text;
    for (int& number : version.numbers) {
        const std::string_view part = rest.substr(0, rest.find('.'));
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
        if (error != std::errc() || end != part.data() + part.size() || number < 0)
            reader.malformed("version '", text, "' does not have the form 0.11.0");
        rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    }
    version.is_dev0 = rest == "dev0";
    return version;
}

void read_version(const Settings& config, SevenNetSettings& result) {
    result.version = config.text("version", "");
    if (result.version.empty())
        config.reader().unsupported("a checkpoint without a version is not implemented: signs and orders depend on it");
    const Version version = parse_version(config.reader(), result.version);
    constexpr std::array kSortedSince = {0, 11, 0};
    constexpr std::array kNormalizedSince = {0, 10, 0};
    result.has_sorted_columns = version.numbers > kSortedSince || (version.numbers == kSortedSince && !version.is_dev0);
    result.harmonics.is_normalized = config.flag("_normalize_sph", version.numbers >= kNormalizedSince);
}

void refuse_other_models(const Settings& config) {
    config.expect("_model_type", "E3_equivariant_model");
    config.expect("interaction_type", "nequip");
    if (!config.flag("optimize_by_reduce", true))
        config.reader().unsupported("optimize_by_reduce: False is not implemented");
}

void read_species(const Settings& config, SevenNetSettings& result) {
    const std::vector<std::string> names = config.names_by_index("_type_map", kMaxAtomicNumber + 1);
    result.species_count = static_cast<int>(names.size());
    if (config.integer("_number_of_species", 1, kMaxAtomicNumber + 1, result.species_count) != result.species_count)
        config.reader().malformed("'_number_of_species' is not the number of entries of '_type_map', ", names.size());
    for (size_t index = 0; index < names.size(); ++index) {
        int number = -1;
        const auto [end, error] =
            std::from_chars(names[index].data(), names[index].data() + names[index].size(), number);
        if (error != std::errc() || end != names[index].data() + names[index].size() || number < 0 ||
            number > kMaxAtomicNumber)
            config.reader().malformed("'_type_map' holds '", names[index], "', which is not an atomic number");
        if (number == 0) continue;  // models of all elements have a species for none
        result.atomic_numbers.push_back(number);
        result.species.push_back(static_cast<int>(index));
    }
    std::vector<int> sorted = result.atomic_numbers;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.empty() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        config.reader().malformed("'_type_map' has no atomic number, or one of them twice");
}

void read_modalities(const Settings& config, SevenNetSettings& result) {
    result.heads = {"Default"};
    if (!config.flag("use_modality")) return;
    result.heads = config.names_by_index("_modal_map", kMaxModalities);
    result.modality_count = static_cast<int>(result.heads.size());
    if (result.modality_count < 2)
        config.reader().unsupported("use_modality with fewer than two modalities is not implemented");
    result.modal_embedding = config.flag("use_modal_node_embedding");
    result.modal_intro = config.flag("use_modal_self_inter_intro");
    result.modal_outro = config.flag("use_modal_self_inter_outro");
    result.modal_output = config.flag("use_modal_output_block");
    result.modal_shift = config.flag("use_modal_wise_shift");
    result.modal_scale = config.flag("use_modal_wise_scale");
}

void read_radial(const Settings& config, SevenNetSettings& result) {
    result.cutoff = config.positive("cutoff");
    const Settings basis = config.dict("radial_basis");
    basis.expect("radial_basis_name", "bessel");
    result.basis_count = basis.integer("bessel_basis_num", 1, kMaxBasisCount, 8);
    result.has_trained_basis = basis.flag("trainable_coeff", true);
    const Settings function = config.dict("cutoff_function");
    const std::string name = function.text("cutoff_function_name", "");
    result.cutoff_function.radius = result.cutoff;
    if (name == "poly_cut") {
        result.cutoff_function.exponent = function.integer("poly_cut_p_value", 1, kMaxCutoffExponent, 6);
    } else if (name == "XPLOR") {
        result.cutoff_function.onset = function.positive("cutoff_on");
        if (!(result.cutoff_function.onset < result.cutoff))
            function.reader().malformed("'cutoff_on' is ", result.cutoff_function.onset, ", not below the cutoff of ",
                                        result.cutoff);
    } else {
        function.reader().unsupported("cutoff function '", name, "' is not implemented; poly_cut and XPLOR are");
    }
    result.hidden_widths = config.widths("weight_nn_hidden_neurons");
    const std::string activation = config.text("act_radial", "silu");
    if (activation == "sigmoid")
        config.reader().unsupported("act_radial 'sigmoid' is not implemented: messages would not vanish at the cutoff");
    result.radial_activation = normalized_activation(config.reader(), activation);
}

// {"e": "silu", "o": "tanh"}
std::array<Activation, 2> read_activations(const Settings& config, std::string_view name) {
    std::array<std::string, 2> names = {"silu", "tanh"};
    if (config.find(name)) {
        const Settings functions = config.dict(name);
        names = {functions.text("e", names[0]), functions.text("o", names[1])};
    }
    return {normalized_activation(config.reader(), names[0]), normalized_activation(config.reader(), names[1])};
}

void read_readout(const Settings& config, SevenNetSettings& result) {
    result.has_network_readout = config.flag("readout_as_fcn");
    if (!result.has_network_readout) return;
    result.readout_widths = config.widths("readout_fcn_hidden_neurons");
    result.readout_activation = normalized_activation(config.reader(), config.text("readout_fcn_activation", "relu"));
}

// Features as the settings name them, without empty blocks.
Irreps manual_irreps(const ModuleReader& reader, const JsonValue& text) {
    if (!text.is_string()) reader.malformed("'irreps_manual' holds something that is not text");
    Irreps result;
    try {
        const Irreps parsed = Irreps::parse(text.text());
        for (const IrrepBlock& block : parsed.blocks())
            if (block.multiplicity > 0) result.append(block.multiplicity, block.irrep);
    } catch (const Error& error) {
        reader.malformed("'irreps_manual': ", error.what());
    }
    if (result.block_count() == 0) reader.malformed("'irreps_manual' holds irreps without features");
    for (const IrrepBlock& block : result.blocks())
        if (block.irrep.degree > kMaxLoadedDegree)
            reader.unsupported("features '", result.text(), "' above l = ", kMaxLoadedDegree, " are not implemented");
    return result;
}

int read_degree(const Settings& config, std::string_view name, int if_absent) {
    constexpr int kLargest = 100;
    const int degree = config.integer(name, -kLargest, kLargest, -1);
    const int result = degree > 0 ? degree : if_absent;
    if (result > kMaxLoadedDegree)
        config.reader().unsupported(name, " = ", result, " is not implemented; ", kMaxLoadedDegree, " is the largest");
    return result;
}

void read_features(const Settings& config, SevenNetSettings& result) {
    const ModuleReader& reader = config.reader();
    const int layer_count = config.integer("num_convolution_layer", 1, kMaxLayers);
    const int largest = config.integer("lmax", 0, 100);
    result.harmonics.max_degree = read_degree(config, "lmax_edge", largest);
    result.harmonics.is_parity = config.flag("is_parity");
    const JsonValue* manual = config.find("irreps_manual");
    if (manual && !(manual->is_boolean() && !manual->boolean())) {
        if (!manual->is_array() || manual->size() != static_cast<size_t>(layer_count) + 1)
            reader.malformed("'irreps_manual' is not a list of ", layer_count + 1, " irreps");
        result.first_irreps = manual_irreps(reader, (*manual)[0]);
        for (size_t i = 1; i < manual->size(); ++i) result.outputs.push_back(manual_irreps(reader, (*manual)[i]));
    } else {
        const int largest_node = read_degree(config, "lmax_node", largest);
        const int channel = config.integer("channel", 1, kMaxWidth);
        result.first_irreps.append(channel, {0, 1});
        for (int t = 0; t < layer_count; ++t) {
            Irreps out;
            const Irreps& in = t == 0 ? result.first_irreps : result.outputs.back();
            for (const Irrep& irrep : reachable_irreps(in, result.harmonics))
                if (t == layer_count - 1 ? irrep.is_scalar() : irrep.degree <= largest_node) out.append(channel, irrep);
            result.outputs.push_back(std::move(out));
        }
    }
    if (!result.first_irreps.all_scalar())
        reader.unsupported("first features '", result.first_irreps.text(), "', which are not 0e, are not implemented");
}

void read_self_connections(const Settings& config, SevenNetSettings& result) {
    const size_t layer_count = result.outputs.size();
    const JsonValue* found = config.find("self_connection_type");
    if (found && found->is_array()) {
        for (const JsonValue& item : *found)
            result.self_connections.push_back(item.is_string() ? item.text() : std::string());
        if (result.self_connections.size() != layer_count)
            config.reader().malformed("'self_connection_type' is not a list of ", layer_count, " names");
    } else {
        result.self_connections.assign(layer_count, config.text("self_connection_type", "nequip"));
    }
    for (const std::string& name : result.self_connections)
        if (name != "nequip" && name != "linear")
            config.reader().unsupported("self_connection_type '", name, "' is not implemented; nequip and linear are");
}

}  // namespace

SevenNetSettings read_sevennet_settings(const Module& root, LoadBudget& budget) {
    const JsonValue* dict = root.find_attribute("config");
    const Settings config(dict ? *dict : JsonValue(), "config", budget);
    SevenNetSettings result;
    read_version(config, result);
    refuse_other_models(config);
    read_species(config, result);
    read_modalities(config, result);
    read_radial(config, result);
    const auto scalars = read_activations(config, "act_scalar");
    result.scalar_activation = scalars[0];
    result.odd_scalar_activation = scalars[1];
    result.gate_activation = read_activations(config, "act_gate")[0];
    read_readout(config, result);
    read_features(config, result);
    read_self_connections(config, result);
    return result;
}

}  // namespace mlff::nequip
