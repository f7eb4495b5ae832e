// SPDX-License-Identifier: MIT
#include "machine.h"

#include <fstream>
#include <map>

namespace mlff::app {

std::string processor_name() {
    std::ifstream info("/proc/cpuinfo");
    std::map<std::string, std::string> values;  // the first of each key
    for (std::string line; std::getline(info, line);) {
        const size_t colon = line.find(':');
        if (colon != std::string::npos && colon + 2 <= line.size()) values.emplace(line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1), line.substr(colon + 2));
    }
    if (values.contains("model name")) return values["model name"];
    if (!values.contains("CPU part")) return "";
    return "implementer " + values["CPU implementer"] + " part " + values["CPU part"];
}

std::string cuda_version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

}  // namespace mlff::app
