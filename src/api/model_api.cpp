// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstring>

#include <nlohmann/json.hpp>

#include "api/guard.h"
#include "api/handles.h"
#include "core/log.h"
#include "engine/describe.h"
#include "engine/model_cache.h"
#include "engine/model_names.h"
#include "trust/meter.h"

using mlff::concat;
using mlff::fail;
using mlff::Status;
using namespace mlff::api;

namespace {

void write_text(const std::string& text, char* to, int64_t capacity, const std::string& what) {
    if (capacity < 0 || static_cast<size_t>(capacity) <= text.size())
        fail(Status::argument, "capacity is ", capacity, ", ", what, " needs ", text.size() + 1);
    std::memcpy(to, text.c_str(), text.size() + 1);
}

}  // namespace

mlff_status mlff_model_load(const char* path, mlff_model** model) {
    if (model) *model = nullptr;
    return guarded([&] {
        require(path, "path");
        require(model, "model");
        auto handle = std::make_unique<mlff_model>();
        handle->model = mlff::load_model(path);
        handle->description_json = mlff::describe(*handle->model).dump(2);
        const mlff::ModelSummary& summary = handle->model->summary();
        if (mlff::is_logged(mlff::LogLevel::info))
            mlff::log(mlff::LogLevel::info,
                      concat("loaded ", path, ": ", summary.class_name, ", ", summary.elements.size(),
                             " elements, cutoff ", summary.cutoff, " angstrom"));
        *model = handle.release();
    });
}

mlff_status mlff_model_cache_path(const char* name, char* path, int64_t capacity) {
    return guarded([&] {
        require(name, "name");
        require(path, "path");
        write_text(mlff::ModelCache().verified_path(name), path, capacity, concat("the path of model '", name, "'"));
    });
}

mlff_status mlff_model_d3_name(const char* name, const char* d3, char* sum, int64_t capacity) {
    return guarded([&] {
        require(name, "name");
        require(d3, "d3");
        require(sum, "sum");
        write_text(mlff::with_dispersion(name, d3), sum, capacity, "the name of the sum");
    });
}

void mlff_model_free(mlff_model* model) { delete model; }

mlff_status mlff_model_get_info(const mlff_model* model, mlff_model_info* info) {
    return guarded([&] {
        require(model, "model");
        require(info, "info");
        // Callers compiled before committees were added have no member_count.
        require_size(info->struct_size, offsetof(mlff_model_info, member_count), "mlff_model_info");
        const mlff::ModelSummary& summary = model->model->summary();
        info->cutoff_angstrom = summary.cutoff;
        info->layer_count = summary.layer_count;
        info->element_count = static_cast<int32_t>(summary.elements.size());
        info->head_count = static_cast<int32_t>(summary.heads.size());
        info->dtype = summary.dtype == mlff::DType::float64 ? MLFF_DTYPE_FLOAT64 : MLFF_DTYPE_FLOAT32;
        info->parameter_count = summary.parameter_count;
        info->is_runnable = summary.why_not_runnable.empty();
        info->descriptor_count = summary.descriptor_count;
        if (info->struct_size < offsetof(mlff_model_info, has_trust_meter)) return;
        info->member_count = summary.member_count;
        info->reach_angstrom = summary.reach();
        if (info->struct_size < sizeof(mlff_model_info)) return;
        const mlff::TrustMeter* meter = model->model->trust_meter().get();
        info->has_trust_meter = meter != nullptr;
        info->alarm_error = meter ? meter->alarm_error : 0;
    });
}

mlff_status mlff_model_get_elements(const mlff_model* model, int32_t* elements, int64_t capacity, int64_t* count) {
    return guarded([&] {
        require(model, "model");
        if (capacity < 0) fail(Status::argument, "capacity is ", capacity);
        if (capacity > 0) require(elements, "elements");
        const std::vector<int>& known = model->model->summary().elements;
        std::copy_n(known.begin(), std::min<size_t>(known.size(), static_cast<size_t>(capacity)), elements);
        if (count) *count = static_cast<int64_t>(known.size());
    });
}

const char* mlff_model_head_name(const mlff_model* model, int32_t index) {
    if (!model || index < 0 || static_cast<size_t>(index) >= model->model->summary().heads.size()) return nullptr;
    return model->model->summary().heads[static_cast<size_t>(index)].c_str();
}

const char* mlff_model_class_name(const mlff_model* model) {
    return model ? model->model->summary().class_name.c_str() : nullptr;
}

const char* mlff_model_why_not_runnable(const mlff_model* model) {
    return model ? model->model->summary().why_not_runnable.c_str() : nullptr;
}

const char* mlff_model_energy_unit(const mlff_model* model) { return model ? "eV" : nullptr; }

const char* mlff_model_length_unit(const mlff_model* model) { return model ? "angstrom" : nullptr; }

const char* mlff_model_description_json(const mlff_model* model) {
    return model ? model->description_json.c_str() : nullptr;
}
