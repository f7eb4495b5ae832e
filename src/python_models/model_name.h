// SPDX-License-Identifier: MIT
// Parses the names of models that are Python programs:
//   python:mace:PATH[?key=value&...]         mace-torch on a .model file; keys dtype, cueq, head
//   python:student:PATH[?key=value&...]      the PaiNN of a student's file in PyTorch; keys dtype, mode
//   python:MODULE:FACTORY[?key=value&...]    any ASE calculator: the result of FACTORY(key=value, ...) in an installed
//                                            module or in a file MODULE.py
//   python:NAME[?key=value&...]              a calculator with a short name in teachers.py: tblite, orb, fennol,
//                                            sevennet, chgnet
// Keys for all: env, host, timeout. In a value, %XX stands for a special character.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace mlff::python {

struct ModelName {
    std::string text;    // as given
    std::string kind;    // "mace", "student" or "ase"
    std::string path;    // of the model's file; "" for ase
    std::string module;  // "tblite.ase", "calculators.py", or the short name if `factory` is ""
    std::string factory;
    std::string environment;          // env=; "" if not given
    std::string default_environment;  // name of an installed environment
    bool is_in_process = false;       // host=inprocess
    double time_limit = 600;          // timeout=, seconds per call; 0 = no limit
    std::string dtype;                // "float32", "float64" or ""; not for ase
    std::string head;                 // for mace
    nlohmann::json arguments =
        nlohmann::json::object();  // all other keys: of the factory; cueq for mace, mode for student

    // The request to teachers.py.
    nlohmann::json request() const {
        return {{"model", text},    {"kind", kind},       {"path", path},
                {"module", module}, {"factory", factory}, {"arguments", arguments}};
    }
};

bool is_python_name(const std::string& name);
ModelName parse_model_name(const std::string& name);  // throws Error{argument}

}  // namespace mlff::python
