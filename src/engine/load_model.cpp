// SPDX-License-Identifier: MIT
#include "engine/load_model.h"

#include "core/error.h"
#include "engine/families.h"
#include "engine/model_cache.h"
#include "engine/model_names.h"
#include "sum/model.h"

namespace mlff {
namespace {

std::shared_ptr<const Model> load_sum(const std::string& name) {
    std::vector<std::shared_ptr<const Model>> terms;
    for (const std::string& term : split_terms(name)) terms.push_back(load_model(term));
    return make_sum_model(std::move(terms), name);
}

}  // namespace

std::shared_ptr<const Model> load_model(const std::string& name) {
    if (is_sum_name(name)) return load_sum(name);
    for (const ModelFamily& family : model_families())
        if (family.has_name(name)) return family.make_named(name);
    const std::string path = find_model_file(name);
    for (const ModelFamily& family : model_families())
        if (family.open_file)
            if (auto model = family.open_file(path)) return model;
    fail(Status::format, path, ": no family of models has such files");
}

}  // namespace mlff
