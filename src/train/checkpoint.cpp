// SPDX-License-Identifier: MIT
#include "train/checkpoint.h"

#include <cstring>

#include "core/error.h"
#include "core/mapped_file.h"
#include "formats/json_text.h"
#include "formats/safetensors.h"

namespace mlff::train {
namespace {

using Json = nlohmann::json;

struct NamedBuffer {
    const char* name;
    at::Tensor values;
};
std::vector<NamedBuffer> buffers(const Optimizer& optimizer, const at::Tensor& best) {
    return {{"parameters", optimizer.parameters},
            {"average", optimizer.average},
            {"first_moment", optimizer.first_moment},
            {"second_moment", optimizer.second_moment},
            {"best", best}};
}

// What must be the same to continue a run.
Json identity(const TrainerOptions& options, const ElementTable& elements) {
    return {{"hidden", options.shape.hidden},
            {"blocks", options.shape.blocks},
            {"radial", options.shape.radial},
            {"cutoff", options.shape.cutoff},
            {"seed", options.seed},
            {"batch", options.batch_frames},
            {"pads", options.pads_batches},
            {"atomic_numbers", elements.atomic_numbers},
            {"atomic_energies", elements.atomic_energies}};
}

Json row_json(const ValidationRow& row) {
    return {row.step, row.seconds, row.energy_mae, row.energy_rmse, row.force_mae, row.force_rmse, row.score};
}
ValidationRow row_of(const Json& json) {
    return {json.at(0), json.at(1), json.at(2), json.at(3), json.at(4), json.at(5), json.at(6)};
}

}  // namespace

void write_checkpoint(const std::string& path, const TrainerOptions& options, const ElementTable& elements,
                      const TrainerState& state, const Optimizer& optimizer, const at::Tensor& best) {
    Json json = {{"step", state.step},
                 {"epoch", state.epoch},
                 {"position", state.position},
                 {"seconds", state.seconds},
                 {"next_validation", state.next_validation},
                 {"stale_validations", state.stale_validations},
                 {"best_score", state.best_score},
                 {"best_step", state.best_step},
                 {"history", Json::array()}};
    for (const ValidationRow& row : state.history) json["history"].push_back(row_json(row));
    Safetensors file;
    std::vector<at::Tensor> on_host;
    for (const NamedBuffer& buffer : buffers(optimizer, best)) {
        on_host.push_back(buffer.values.to(at::kCPU).contiguous());
        const at::Tensor& values = on_host.back();
        const Bytes bytes{reinterpret_cast<const std::byte*>(values.data_ptr<float>()), values.nbytes()};
        file.tensors.emplace_back(buffer.name,
                                  make_tensor(DType::float32, {values.numel()}, {1}, 0, bytes, buffer.name));
    }
    file.metadata = {
        {"format", "mlff-train-checkpoint"}, {"state", json.dump()}, {"identity", identity(options, elements).dump()}};
    write_safetensors(path, file);
}

TrainerState read_checkpoint(const std::string& path, const TrainerOptions& options, const ElementTable& elements,
                             Optimizer& optimizer, at::Tensor& best) {
    const auto mapped = MappedFile::open(path);
    const Safetensors file = read_safetensors(mapped->bytes(), path);
    if (!file.metadata.contains("state") || !file.metadata.contains("identity"))
        fail(Status::format, path, ": not a checkpoint of mlff-train");
    const Json found = parse_untrusted_json(file.metadata.at("identity"), path),
               expected = Json::parse(identity(options, elements).dump());
    for (const auto& [key, value] : expected.items())
        if (!found.contains(key) || found[key] != value)
            fail(Status::format, path, ": the run was started with a different ", key, ": ",
                 found.contains(key) ? found[key].dump() : "none", ", now ", value.dump());
    for (const NamedBuffer& buffer : buffers(optimizer, best)) {
        const Tensor* tensor = file.find(buffer.name);
        if (!tensor || tensor->dtype != DType::float32 || tensor->element_count() != buffer.values.numel())
            fail(Status::format, path, ": tensor '", buffer.name, "' is missing or has a different size");
        at::Tensor values = at::empty({tensor->element_count()}, at::kFloat);
        tensor->copy_bytes_to(reinterpret_cast<std::byte*>(values.data_ptr<float>()));
        const at::NoGradGuard no_grad;
        at::Tensor target = buffer.values;
        target.copy_(values);
    }
    TrainerState state;
    try {
        const Json json = parse_untrusted_json(file.metadata.at("state"), path);
        state = {json.at("step"),       json.at("epoch"),           json.at("position"),
                 json.at("seconds"),    json.at("next_validation"), json.at("stale_validations"),
                 json.at("best_score"), json.at("best_step"),       {}};
        for (const Json& row : json.at("history")) state.history.push_back(row_of(row));
    } catch (const Json::exception& error) {
        fail(Status::format, path, ": metadata 'state': ", error.what());
    }
    return state;
}

}  // namespace mlff::train
