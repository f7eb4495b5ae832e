// SPDX-License-Identifier: MIT
#include "tools/verify/known_answers.h"

#include <string_view>

#include <nlohmann/json.hpp>

#include "core/embed_file.h"

MLFF_EMBED_FILE(mlff_known_answers, MLFF_KNOWN_ANSWERS_FILE)

namespace mlff::verify {
namespace {

using nlohmann::json;

std::vector<double> flat(const json& numbers) {
    if (numbers.is_number()) return {numbers.get<double>()};
    std::vector<double> all;
    for (const json& item : numbers)
        for (double number : flat(item)) all.push_back(number);
    return all;
}

Frame frame_from(const json& structure) {
    Frame frame;
    frame.atomic_numbers = structure.at("numbers").get<std::vector<int32_t>>();
    frame.positions = flat(structure.at("positions"));
    for (size_t k = 0; k < 3; ++k) frame.periodic[k] = structure.at("pbc")[k].get<bool>();
    if (const std::vector<double> cell = flat(structure.at("cell")); cell.size() == 9) {
        frame.cell.emplace();
        for (size_t k = 0; k < 9; ++k) (*frame.cell)[k / 3][k % 3] = cell[k];
    }
    return frame;
}

std::vector<KnownModel> parse_known_models() {
    const auto bytes = MLFF_EMBEDDED(mlff_known_answers);
    const json all = json::parse(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    std::vector<KnownModel> models;
    for (const json& model : all.at("models")) {
        KnownModel known = {model.at("model"), model.at("sha256"), model.at("licence"), model.value("head", ""), {}};
        for (const auto& [name, results] : model.at("structures").items()) {
            KnownStructure structure = {name,
                                        frame_from(all.at("structures").at(name)),
                                        results.at("energy"),
                                        flat(results.at("forces")),
                                        flat(results.at("atom_energies")),
                                        {}};
            if (const std::vector<double> s = flat(results.at("stress")); s.size() == 9)
                structure.stress = {s[0], s[4], s[8], s[5], s[2], s[1]};
            known.structures.push_back(std::move(structure));
        }
        models.push_back(std::move(known));
    }
    return models;
}

}  // namespace

const std::vector<KnownModel>& known_models() {
    static const std::vector<KnownModel> models = parse_known_models();
    return models;
}

const KnownModel* find_known_model(const std::string& sha256, const std::string& head) {
    const KnownModel* found = nullptr;
    for (const KnownModel& model : known_models())
        if (model.sha256 == sha256 && (!found || model.head == head)) found = &model;
    return found;
}

}  // namespace mlff::verify
