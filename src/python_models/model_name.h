// SPDX-License-Identifier: MIT
// Parses the names of models that are Python programs:
//   python:mace:PATH[?key=value&...]         mace-torch on a .model file; keys dtype, cueq, head
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
    std::string kind;    // "mace" or "ase"
    std::string path;    // path of the .model file; for mace
    std::string module;  // "tblite.ase", "calculators.py", or the short name if `factory` is ""
    std::string factory;
    std::string environment;                              // env=; "" if not given
    std::string default_environment;                      // name of an installed environment
    bool is_in_process = false;                           // host=inprocess
    double time_limit = 600;                              // timeout=, seconds per call; 0 = no limit
    std::string dtype;                                    // "float32", "float64" or ""; for mace
    std::string head;                                     // for mace
    nlohmann::json arguments = nlohmann::json::object();  // all other keys: arguments of the factory; cueq for mace

    // The request to teachers.py.
    nlohmann::json request() const {
        return {{"model", text},    {"kind", kind},       {"path", path},
                {"module", module}, {"factory", factory}, {"arguments", arguments}};
    }
};

bool is_python_name(const std::string& name);
ModelName parse_model_name(const std::string& name);  // throws Error{argument}

}  // namespace mlff::python
