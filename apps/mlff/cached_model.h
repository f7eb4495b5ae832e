// SPDX-License-Identifier: MIT
// How a model of the model cache is shown.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "engine/model_cache.h"

namespace mlff::app {

void print_cached(const std::string& name, const CachedModel& model);
nlohmann::json cached_json(const ModelCache& cache, const std::string& name, const CachedModel& model);

}  // namespace mlff::app
