// SPDX-License-Identifier: MIT
// Models that their authors have released under a name: where each file is, its SHA-256 and its licence. This table
// only describes: the library downloads nothing, 'mlff model fetch' does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mlff {

struct ReleasedModel {
    std::string name;                  // of 'mlff model fetch', and in the model cache
    std::vector<std::string> aliases;  // other names of the same file
    std::string title;                 // "MACE-MP-0 small"
    std::string address;               // of the file, https
    int64_t size = 0;                  // bytes; 0 = not known
    std::string sha256;                // 64 hexadecimal digits; "" = not known
    std::string licence;               // a name of find_licence
    std::string theory;                // level of theory of the training data
    std::string citation;
};

// How a licence is shown before a model is downloaded.
struct Licence {
    std::string name;     // "MIT"
    std::string text;     // what it allows, in a few words
    std::string address;  // of its full text
    bool needs_consent;   // it restricts the use of the model: the user must agree
};

const std::vector<ReleasedModel>& released_models();
const ReleasedModel* find_released_model(const std::string& name_or_alias);  // nullptr = none
const ReleasedModel* find_released_file(const std::string& sha256);          // nullptr = none
const Licence& find_licence(const std::string& name);                        // of a released model

// Two ways to get a released model that is not here, as the end of a sentence. `name` is what the user calls it.
std::string how_to_get(const ReleasedModel& model, const std::string& name);

// Those of `names` that `name` may have been meant to be, the nearest first, at most three.
std::vector<std::string> near_names(const std::string& name, const std::vector<std::string>& names);

}  // namespace mlff
