// SPDX-License-Identifier: MIT
// Names of models that are Python programs:
//   python:mace:PATH[?key=value&...]         mace-torch on a .model file; keys dtype, cueq, head
//   python:MODULE:FACTORY[?key=value&...]    any ASE calculator: what FACTORY(key=value, ...) of an installed module or
//   of a file MODULE.py returns python:NAME[?key=value&...]              the calculators that teachers.py knows by
//   name: tblite, orb, fennol, sevennet, chgnet
// Keys for all: env, host, timeout. A value may have %XX for a character of special meaning.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace mlff::python {

struct ModelName {
    std::string text;    // as it was given
    std::string kind;    // "mace" or "ase"
    std::string path;    // of the .model file; for mace
    std::string module;  // "tblite.ase", "calculators.py", or the short name where `factory` is ""
    std::string factory;
    std::string environment;                              // env=; "" if not given
    std::string default_environment;                      // the name of an installed one
    bool is_in_process = false;                           // host=inprocess
    double time_limit = 600;                              // timeout=, seconds for a call; 0 = none
    std::string dtype;                                    // "float32", "float64" or ""; for mace
    std::string head;                                     // for mace
    nlohmann::json arguments = nlohmann::json::object();  // all other keys: of the factory; cueq for mace

    // What teachers.py is told.
    nlohmann::json request() const {
        return {{"model", text},    {"kind", kind},       {"path", path},
                {"module", module}, {"factory", factory}, {"arguments", arguments}};
    }
};

bool is_python_name(const std::string& name);
ModelName parse_model_name(const std::string& name);  // throws Error{argument}

}  // namespace mlff::python
