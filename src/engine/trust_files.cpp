// SPDX-License-Identifier: MIT
#include "engine/trust_files.h"

#include <filesystem>

#include "core/error.h"
#include "trust/meter.h"

namespace mlff {

std::string trust_file_of(const std::string& model_path) { return model_path + ".trust"; }

void add_trust_meter(Model& model, const std::string& model_path) {
    const std::string path = trust_file_of(model_path);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return;
    const auto file = MappedFile::open(path);
    TrustMeter meter = read_trust_meter(read_safetensors(file->bytes(), path), path);
    if (meter.model_fingerprint != fingerprint_of_model(MappedFile::open(model_path)->bytes()) ||
        meter.descriptor_count != model.summary().descriptor_count)
        fail(Status::format, path, ": this trust meter was fitted to another model than ", model_path,
             "; fit one with `mlff trust fit`, or remove the file");
    model.set_trust_meter(std::make_shared<const TrustMeter>(std::move(meter)));
}

}  // namespace mlff
