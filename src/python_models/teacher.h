// SPDX-License-Identifier: MIT
// A loaded Python model, in this process or in a separate one.
#pragma once

#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>

#include "core/system_view.h"
#include "formats/json_value.h"
#include "potential/evaluator.h"
#include "python_models/model_name.h"

namespace mlff::python {

class Teacher {
public:
    virtual ~Teacher() = default;
    virtual const JsonValue& description() const = 0;  // see describe() in teachers.py
    // `choice`: {"device": "cuda:0", "dtype": "float64", "head": 0}. Once, before evaluate().
    virtual void prepare(const nlohmann::json& choice) = 0;
    // Energy, forces, virial and atomic energies, as requested. One thread at a time.
    virtual void evaluate(const SystemView& system, const Outputs& outputs) = 0;
};

// Loads the model; throws Error.
std::unique_ptr<Teacher> open_in_process(const ModelName& model, const std::filesystem::path& environment);
std::unique_ptr<Teacher> open_in_worker(const ModelName& model, const std::filesystem::path& environment);

}  // namespace mlff::python
