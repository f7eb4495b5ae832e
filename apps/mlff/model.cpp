// SPDX-License-Identifier: MIT
// mlff model info, convert: what is in a model file, and its conversion to our container.
#include <initializer_list>
#include <iomanip>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/elements.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "core/output_file.h"
#include "core/sha256.h"
#include "engine/describe.h"
#include "engine/embedded_models.h"
#include "engine/model_cache.h"
#include "formats/module_container.h"

namespace mlff::app {
namespace {

using Json = nlohmann::json;

void line(const std::string& label, const std::string& text) {
    if (!text.empty())
        std::cout << std::left << std::setw(18) << printable(label) << printable(text) << "\n" << std::right;
}

std::string number_text(double value) {
    std::ostringstream text;
    text << std::setprecision(8) << value;
    return text.str();
}

template <class List>
std::string joined(const List& list, const std::string& separator = ", ") {
    std::string text;
    for (const Json& item : list) {
        if (!text.empty()) text += separator;
        text += item.is_string()         ? item.get<std::string>()
                : item.is_number_float() ? number_text(item.get<double>())
                                         : item.dump();
    }
    return text;
}

std::string with_thousands(int64_t number) {
    std::string digits = std::to_string(number);
    for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
    return digits;
}

std::string text_of(const Json& info, const char* key) {
    return info.contains(key) && info[key].is_string() ? info[key].get<std::string>() : std::string();
}

// The member of a member of ..., null where there is none: a card may hold anything.
Json member(Json object, std::initializer_list<const char*> keys) {
    for (const char* key : keys) object = object.is_object() && object.contains(key) ? Json(object[key]) : Json();
    return object;
}

void print_layers(const Json& info) {
    if (!info.contains("layers")) return;
    int number = 0;
    for (const Json& layer : info["layers"]) {
        std::string text = layer["interaction"].get<std::string>() + ", correlation " + layer["correlation"].dump() +
                           ", messages " + layer["message_irreps"].get<std::string>() + " -> " +
                           layer["output_irreps"].get<std::string>();
        if (layer["readout"].is_string()) text += ", " + layer["readout"].get<std::string>();
        line("layer " + std::to_string(++number), text);
    }
}

void print_layer_irreps(const Json& info) {
    if (!info.contains("layer_irreps")) return;
    const Json& connections = info["self_connections"];
    line("layers", std::to_string(connections.size()) + ", max_ell " + info["max_ell"].dump() +
                       (info["parity"].get<bool>() ? ", with parity" : ", without parity"));
    for (size_t i = 0; i < connections.size(); ++i)
        line("layer " + std::to_string(i + 1), info["layer_irreps"][i].get<std::string>() + " -> " +
                                                   info["layer_irreps"][i + 1].get<std::string>() +
                                                   ", self connection " + connections[i].get<std::string>());
}

void print_radial(const Json& info) {
    if (!info.contains("radial") || text_of(info["radial"], "basis").empty()) return;
    const Json& radial = info["radial"];
    std::string text = radial["count"].dump() + " " + radial["basis"].get<std::string>();
    if (radial["transform"].is_string()) text += " of " + radial["transform"].get<std::string>();
    if (radial["cutoff_exponent"].is_number())
        text += ", cutoff exponent " + number_text(radial["cutoff_exponent"].get<double>());
    if (!text_of(radial, "cutoff_function").empty()) text += ", cutoff " + text_of(radial, "cutoff_function");
    text += " on the " + radial["cutoff_applied_to"].get<std::string>();
    if (!radial["hidden_widths"].empty()) text += ", network " + joined(radial["hidden_widths"], "-");
    line("radial basis", text);
}

void print_painn(const Json& info) {
    if (!info.contains("radial_functions")) return;
    line("network", info["blocks"].dump() + " blocks of " + info["hidden"].dump() + " channels, " +
                        info["radial_functions"].dump() + " radial functions");
    for (const auto& [key, value] : info["card"].items())
        if (value.is_string()) line(key, value.get<std::string>());
    for (const char* what : {"force_meV_per_A", "energy_meV_per_atom"}) {
        const Json mae = member(info["card"], {"errors", "test", what, "mae"}),
                   rmse = member(info["card"], {"errors", "test", what, "rmse"});
        if (mae.is_number() && rmse.is_number())
            line("test error",
                 number_text(mae.get<double>()) + " mean, " + number_text(rmse.get<double>()) + " rms, " + what);
    }
}

void print_atomic_energies(const Json& info) {
    if (!info.contains("atomic_energies")) return;
    const auto elements = info["elements"].get<std::vector<int>>();
    for (const auto& [head, energies] : info["atomic_energies"].items()) {
        std::string text;
        for (size_t i = 0; i < energies.size() && i < elements.size(); ++i)
            text += (i ? "  " : "") + std::string(element_symbol(elements[i])) + " " +
                    number_text(energies[i].get<double>());
        line(info["atomic_energies"].size() > 1 ? "E0/eV " + head : "E0/eV", text);
    }
}

void print_members(const Json& info) {
    if (!info.contains("members")) return;
    for (const Json& member : info["members"])
        line("member", text_of(member, "name") + ", " + text_of(member["model"], "class") + ", weight " +
                           number_text(member["weight"].get<double>()));
}

void print_trust_meter(const Json& meter) {
    if (meter.is_null()) return;
    line("trust meter", std::to_string(meter["elements"].size()) + " elements, " + meter["components"].dump() +
                            " components of " + meter["descriptors"].dump() + " descriptors, radius " +
                            number_text(meter["radius"].get<double>()) + " angstrom");
    line("alarm", "expected errors above " + number_text(meter["alarm_error"].get<double>()) + " eV/angstrom");
}

void print_info(const Json& info) {
    std::string model_class = text_of(info, "class");
    if (!text_of(info, "wrapper").empty()) model_class += " in " + text_of(info, "wrapper");
    line("file", text_of(info, "file"));
    line("class", model_class);
    line("container", text_of(info, "container"));
    line("note", text_of(info, "note"));
    line("sha256", text_of(info, "sha256"));
    const auto elements = info["elements"].get<std::vector<int>>();
    if (!elements.empty()) line("elements", std::to_string(elements.size()) + ": " + symbols_text(elements));
    if (const double cutoff = info["cutoff"].get<double>(); cutoff > 0)
        line("cutoff", number_text(cutoff) + " angstrom");
    if (const double range = info.value("range", 0.0); range > info["cutoff"].get<double>())
        line("range", number_text(range) + " angstrom");
    if (!text_of(info, "hidden_irreps").empty())
        line("layers", std::to_string(info["layers"].size()) + ", hidden irreps " + text_of(info, "hidden_irreps") +
                           ", max_ell " + info["max_ell"].dump());
    print_layers(info);
    print_layer_irreps(info);
    print_radial(info);
    print_painn(info);
    print_members(info);
    print_trust_meter(info["trust_meter"]);
    line("heads", joined(info["heads"]));
    if (info.contains("fixed_head") && info["fixed_head"].is_number()) line("head fixed to", info["fixed_head"].dump());
    print_atomic_energies(info);
    if (info.contains("scale") && !info["scale"].empty())
        line("scale, shift", joined(info["scale"]) + "; " + joined(info["shift"]));
    if (info.value("pair_repulsion", false)) line("pair repulsion", "ZBL");
    if (info.contains("extra_inputs")) line("extra inputs", joined(info["extra_inputs"]));
    line("gate", text_of(info, "gate"));
    line("dtype",
         text_of(info, "dtype") + (text_of(info, "layout").empty() ? "" : ", " + text_of(info, "layout") + " layout"));
    line("parameters", with_thousands(info["parameters"].get<int64_t>()));
    line("runs natively", info["runnable"].get<bool>() ? "yes" : "no: " + text_of(info, "why_not_runnable"));
}

int run_info(const std::string& name, const std::string& json_path) {
    const std::string path = is_model_without_file(name) ? "" : find_model_file(name);
    // The model is gone before the file is hashed: it is not mapped twice at a time.
    Json info = describe(*load_model(path.empty() ? name : path));
    if (!path.empty()) {
        info["file"] = path;
        info["sha256"] = sha256_hex(
            MappedFile::open(path)->bytes());  // of a model: what is none may be large, and is refused before
    }
    if (json_path != "-") print_info(info);
    if (!json_path.empty()) write_text(json_path, info.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return kGood;
}

// The embedded student is a file already.
int write_embedded_student(const std::string& output) {
    const Bytes bytes = embedded_student();
    OutputFile file(output);
    file.write(bytes.data(), bytes.size());
    file.commit();
    std::cout << output << ": the student inside mlff, SHA-256 " << sha256_hex(bytes) << "\n";
    return kGood;
}

int run_convert(const std::string& name, const std::string& output) {
    if (name == "builtin") return write_embedded_student(output);
    if (is_model_without_file(name))
        fail(Status::unsupported, "model '", name, "' has no file that could be converted");
    const std::string input = find_model_file(name);
    const ModuleFile file = open_module_file(input);
    Safetensors contents = pack_module(file.root);
    contents.metadata["source_sha256"] = sha256_hex(MappedFile::open(input)->bytes());
    write_safetensors(output, contents);
    std::cout << output << ": " << contents.tensors.size() << " tensors of " << input << "\n";
    return kGood;
}

}  // namespace

void add_model(CLI::App& app, Work& work) {
    struct Options {
        std::string input, output, json;
    };
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("model", "describe, convert, store and download model files");
    command->require_subcommand(1);

    CLI::App* info = command->add_subcommand("info", "show what a model file contains, without running any code in it");
    info->add_option("MODEL", options->input, kModelHelp)->required();
    add_json_option(*info, options->json);
    info->callback([options, &work] { work = [options] { return run_info(options->input, options->json); }; });

    CLI::App* convert =
        command->add_subcommand("convert", "convert a model to a safetensors file of mlff, without loss");
    convert
        ->add_option("MODEL", options->input,
                     "model file, name in the model cache, or builtin, the student inside mlff")
        ->required();
    convert->add_option("OUT", options->output, "the .safetensors file to write")->required();
    convert->callback([options, &work] { work = [options] { return run_convert(options->input, options->output); }; });

    add_model_cache(*command, work);
    add_model_fetch(*command, work);
    command->footer(
        R"(The model cache is a folder of models that have a name. Every command takes such a name for
--model. The folder is $MLFF_MODELS, else $XDG_DATA_HOME/mlff/models, else
~/.local/share/mlff/models. Only 'mlff model fetch' downloads, with the command curl.

Examples:
  # Show the class, elements, cutoff, layers and heads of a model
  mlff model info X.model
  # Download a released model, and use it
  mlff model fetch small
  mlff eval water.xyz --model small
  # Store a model of your own under a name
  mlff model add X.model --name x --licence MIT --theory PBE)");
}

}  // namespace mlff::app
