// SPDX-License-Identifier: MIT
// mlff model add, list, remove: models that have a name, in a folder of the user's.
#include <iomanip>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "cached_model.h"
#include "command.h"
#include "core/bytes_text.h"
#include "core/elements.h"
#include "core/error.h"
#include "engine/model_cache.h"
#include "engine/released_models.h"

namespace mlff::app {
namespace {

std::string elements_in_short(const std::vector<int>& elements) {
    return elements.size() <= 12 ? symbols_text(elements) : std::to_string(elements.size()) + " elements";
}

int run_model_add(const std::string& path, const std::string& name, const ModelCache::Note& note) {
    const ModelCache cache;
    const CachedModel model = cache.add(path, name, note);
    print_cached(name, model);
    const ReleasedModel* released = find_released_model(name);
    if (released && !released->sha256.empty() && released->sha256 != model.sha256)
        std::cout << "note: this is not the released model '" << name << "', whose SHA-256 is " << released->sha256
                  << "\n";
    return kGood;
}

int run_model_list(const std::string& json_path) {
    const ModelCache cache;
    const auto models = cache.list();
    nlohmann::json inside = nlohmann::json::array(), cached = nlohmann::json::array();
    for (const char* name : {"builtin", "analytic"}) {
        const nlohmann::json info = load_model(name)->description();
        const std::string note = info.contains("note") ? info["note"].get<std::string>()
                                                       : info.value("card", nlohmann::json::object()).value("name", "");
        inside.push_back({{"name", name}, {"class", info["class"]}, {"note", note}});
        if (json_path != "-")
            std::cout << std::left << std::setw(11) << name << std::right << " "
                      << as_message(info["class"].get<std::string>()) << ", " << as_message(note) << "\n";
    }
    for (const auto& [name, model] : models) {
        cached.push_back(cached_json(cache, name, model));
        if (json_path != "-") print_cached(name, model);
    }
    const nlohmann::json document = {{"inside", inside}, {"folder", cache.folder()}, {"models", cached}};
    if (!json_path.empty())
        write_text(json_path, document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return kGood;
}

int run_model_remove(const std::string& name) {
    const ModelCache cache;
    cache.remove(name);
    std::cout << "removed " << name << " from " << cache.folder() << "\n";
    return kGood;
}

}  // namespace

void print_cached(const std::string& name, const CachedModel& model) {
    std::cout << std::left << std::setw(11) << name << std::right << " " << as_message(model.class_name) << ", "
              << elements_in_short(model.elements) << ", " << bytes_text(model.size);
    if (!model.theory.empty()) std::cout << ", " << as_message(model.theory);
    std::cout << ", licence " << (model.licence.empty() ? "unknown" : as_message(model.licence)) << ", from "
              << as_message(model.source) << ", " << as_message(model.added) << "\n";
    if (!model.why_not_runnable.empty())
        std::cout << std::string(12, ' ') << "does not run natively: " << as_message(model.why_not_runnable) << "\n";
}

nlohmann::json cached_json(const ModelCache& cache, const std::string& name, const CachedModel& model) {
    return {{"name", name},
            {"path", cache.folder() + "/" + model.file},
            {"sha256", model.sha256},
            {"size", model.size},
            {"licence", model.licence},
            {"theory", model.theory},
            {"source", model.source},
            {"added", model.added},
            {"class", model.class_name},
            {"elements", model.elements},
            {"runnable", model.why_not_runnable.empty()}};
}

void add_model_cache(CLI::App& model_command, Work& work) {
    struct Options {
        std::string path, name, json;
        ModelCache::Note note;
    };
    auto options = std::make_shared<Options>();

    CLI::App* add =
        model_command.add_subcommand("add", "copy a model file into the model cache, under a name for --model");
    add->add_option("FILE", options->path, "model file")->required();
    add->add_option("--name", options->name, "name of the model: letters, digits, '.', '_' and '-'")
        ->required()
        ->option_text("NAME");
    add->add_option("--licence,--license", options->note.licence, "licence of the model, such as MIT; stored with it")
        ->option_text("TEXT");
    add->add_option("--theory", options->note.theory,
                    "level of theory of its training data, such as PBE+U; stored with it")
        ->option_text("TEXT");
    add->add_flag("--replace", options->note.replace, "replace the model that has this name");
    add->callback(
        [options, &work] { work = [options] { return run_model_add(options->path, options->name, options->note); }; });

    CLI::App* list = model_command.add_subcommand("list", "list the embedded models and those in the model cache");
    add_json_option(*list, options->json);
    list->callback([options, &work] { work = [options] { return run_model_list(options->json); }; });

    CLI::App* remove = model_command.add_subcommand("remove", "remove a model from the model cache");
    remove->add_option("NAME", options->name, "name of the model")->required();
    remove->callback([options, &work] { work = [options] { return run_model_remove(options->name); }; });
}

}  // namespace mlff::app
