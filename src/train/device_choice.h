// SPDX-License-Identifier: MIT
// The option --device of mlff-train.
#pragma once

#include <string>

#include "core/error.h"
#include "train/torch_headers.h"

namespace mlff::train {

// Parses "auto", "cpu", "cuda" or "cuda:1".
inline at::Device device_of_text(const std::string& text) {
    const bool has_gpu = torch::cuda::is_available();
    if (text == "auto") return has_gpu ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
    if (text == "cpu") return at::Device(at::kCPU);
    if (text.rfind("cuda", 0) != 0) fail(Status::argument, "--device '", text, "': expected auto, cpu or cuda[:i]");
    if (!has_gpu) fail(Status::device, "--device ", text, ": LibTorch finds no GPU on this machine");
    const at::Device device(text);
    return device.has_index() ? device : at::Device(at::kCUDA, 0);
}

}  // namespace mlff::train
