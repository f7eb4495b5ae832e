// SPDX-License-Identifier: MIT
// Atoms in any number to measure a model with: liquid water where the model knows H and O, else the crystal that `mlff
// verify` probes it with.
#pragma once

#include <string>
#include <vector>

#include "formats/extxyz.h"

namespace mlff::bench {

struct Material {
    std::string name;
    Frame cell;
    size_t molecule_size = 1;  // atoms that stay together; consecutive and whole in `cell`
};

Material choose_material(const std::vector<int>& known_elements);

// The smallest box of whole cells, as cubic as they allow, with at least so many atoms.
Frame make_box(const Material& material, int64_t least_atoms);

// The same molecules farther apart: lattice vectors and the places of molecules are scaled, molecules are not. Other
// densities, other numbers of neighbours.
Frame make_thinner(const Material& material, const Frame& frame, double factor);

// The molecules nearest to a point inside, as many as come closest to so many atoms; no boundaries.
Frame make_cluster(const Material& material, int64_t atoms);

// Systems to be evaluated again and again. Calculators of Python remember what they computed last, so each time the
// first atom is somewhere else, by 1e-6 angstrom at most.
class RepeatedFrames {
public:
    explicit RepeatedFrames(std::vector<Frame> frames);
    const std::vector<Frame>& next();

private:
    std::vector<Frame> frames_;
    std::vector<double> places_;  // of the first atoms
    int64_t count_ = 0;
};

}  // namespace mlff::bench
