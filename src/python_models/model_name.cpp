// SPDX-License-Identifier: MIT
#include "python_models/model_name.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace mlff::python {
namespace {

constexpr const char* kPrefix = "python:";

std::string percent_decoded(const std::string& text, const std::string& name) {
    std::string decoded;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            decoded += text[i];
            continue;
        }
        int code = 0;
        const char* begin = text.data() + i + 1;
        const char* end = text.data() + std::min(text.size(), i + 3);
        const auto parsed = std::from_chars(begin, end, code, 16);
        if (parsed.ec != std::errc() || parsed.ptr != begin + 2 || code == 0)
            fail(Status::argument, "model '", name,
                 "': '%' must be followed by two hexadecimal digits; write %25 for the sign itself");
        decoded += static_cast<char>(code);
        i += 2;
    }
    return decoded;
}

// 1, 2.5, true and null as in JSON; Python's True, False and None; anything else is text.
nlohmann::json typed(const std::string& text) {
    if (text == "True" || text == "true") return true;
    if (text == "False" || text == "false") return false;
    if (text == "None" || text == "null") return nullptr;
    const auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    return value.is_number() ? value : nlohmann::json(text);
}

// Options begin at the last '?', so a path may contain others.
void read_options(ModelName& model, const std::string& options) {
    for (size_t begin = 0; begin < options.size();) {
        const size_t end = std::min(options.find('&', begin), options.size());
        const std::string item = options.substr(begin, end - begin);
        begin = end + 1;
        const size_t equals = item.find('=');
        if (equals == std::string::npos || equals == 0)
            fail(Status::argument, "model '", model.text, "': '", item, "' is not of the form key=value");
        const std::string key = item.substr(0, equals), value = percent_decoded(item.substr(equals + 1), model.text);
        const bool is_mace = model.kind == "mace", is_student = model.kind == "student";
        if (key == "env") {
            if (value.empty())
                fail(Status::argument, "model '", model.text, "': env= needs the name or the path of an environment");
            model.environment = value;
        } else if (key == "host") {
            if (value != "inprocess" && value != "process")
                fail(Status::argument, "model '", model.text, "': host=", value, ", expected inprocess or process");
            model.is_in_process = value == "inprocess";
        } else if (key == "timeout") {
            const auto number = typed(value);
            if (!number.is_number() || !(number.get<double>() >= 0) || !(number.get<double>() <= 1e6))
                fail(Status::argument, "model '", model.text, "': timeout=", value,
                     ", expected a number of seconds (0 = no limit)");
            model.time_limit = number.get<double>();
        } else if ((is_mace || is_student) && key == "dtype") {
            if (value != "float32" && value != "float64")
                fail(Status::argument, "model '", model.text, "': dtype=", value, ", expected float32 or float64");
            model.dtype = value;
        } else if (is_mace && key == "cueq") {
            if (value != "0" && value != "1")
                fail(Status::argument, "model '", model.text, "': cueq=", value, ", expected 0 or 1");
            model.arguments["cueq"] = value == "1";
            if (value == "1") model.default_environment = "mace-cueq";
        } else if (is_mace && key == "head") {
            model.head = value;
        } else if (is_mace) {
            fail(Status::argument, "model '", model.text, "': there is no key '", key,
                 "'; the keys are dtype, cueq, head, env, host and timeout");
        } else if (is_student && key == "mode") {
            if (value != "eager" && value != "compile" && value != "script")
                fail(Status::argument, "model '", model.text, "': mode=", value, ", expected eager, compile or script");
            model.arguments["mode"] = value;
        } else if (is_student) {
            fail(Status::argument, "model '", model.text, "': there is no key '", key,
                 "'; the keys are dtype, mode, env, host and timeout");
        } else {
            model.arguments[key] = typed(value);
        }
    }
}

}  // namespace

bool is_python_name(const std::string& name) { return name.starts_with(kPrefix); }

ModelName parse_model_name(const std::string& name) {
    ModelName model;
    model.text = name;
    std::string rest = name.substr(std::string(kPrefix).size()), options;
    if (const size_t mark = rest.rfind('?'); mark != std::string::npos) {
        options = rest.substr(mark + 1);
        rest.resize(mark);
    }
    if (rest == "mace" || rest == "mace:")
        fail(Status::argument, "model '", name, "': mace-torch needs the path of a model: python:mace:PATH");
    if (rest == "student" || rest == "student:")
        fail(Status::argument, "model '", name, "': it needs the path of a student's file: python:student:PATH");
    if (rest.starts_with("student:")) {
        model.kind = "student";
        model.path = rest.substr(8);
        model.default_environment = "mace";  // has torch
    } else if (rest.starts_with("mace:")) {
        model.kind = "mace";
        model.path = rest.substr(5);
        model.default_environment = "mace";
    } else {
        model.kind = "ase";
        const size_t colon = rest.rfind(':');
        model.module = rest.substr(0, colon);
        if (colon != std::string::npos) model.factory = rest.substr(colon + 1);
        if (model.module.empty() || (colon != std::string::npos && model.factory.empty()))
            fail(Status::argument, "model '", name,
                 "': expected python:mace:PATH, python:student:PATH, python:MODULE:FACTORY or python:NAME");
        if (!model.module.ends_with(".py")) model.default_environment = model.module.substr(0, model.module.find('.'));
    }
    read_options(model, options);
    try {
        model.request().dump();
    } catch (const nlohmann::json::exception&) {
        fail(Status::argument, "model '", name, "': the name is not UTF-8, as Python models require");
    }
    return model;
}

}  // namespace mlff::python
