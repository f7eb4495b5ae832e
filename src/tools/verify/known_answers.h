// SPDX-License-Identifier: MIT
// Results of released models, published or computed with their authors' package, by the SHA-256 of their files. The
// figures are in known_answers.json.
#pragma once

#include <string>
#include <vector>

#include "formats/extxyz.h"

namespace mlff::verify {

struct KnownStructure {
    std::string name;
    Frame frame;
    double energy = 0;  // eV
    std::vector<double> forces, atom_energies,
        stress;  // eV/angstrom, eV, eV/angstrom^3 (6, as in Results; empty: not given)
};

struct KnownModel {
    std::string name, sha256, licence, head;  // head "": the model has only one
    std::vector<KnownStructure> structures;
};

const std::vector<KnownModel>& known_models();
// Those of this head if there are any, else those of another one; nullptr if none are known of this file.
const KnownModel* find_known_model(const std::string& sha256, const std::string& head);

}  // namespace mlff::verify
