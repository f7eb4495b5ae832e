// SPDX-License-Identifier: MIT
// Systems of any size for benchmarks: liquid water if the model knows H and O, else the crystal of `mlff verify`.
#pragma once

#include <string>
#include <vector>

#include "formats/extxyz.h"

namespace mlff::bench {

struct Material {
    std::string name;
    Frame cell;
    size_t molecule_size = 1;  // atoms per molecule; molecules are consecutive and whole in `cell`
};

Material choose_material(const std::vector<int>& known_elements);

// The smallest box of whole cells with at least this many atoms, as close to a cube as possible.
Frame make_box(const Material& material, int64_t least_atoms);

// The same molecules farther apart: scales the lattice vectors and the centres of the molecules, but not the molecules.
// This changes the density and the number of neighbours.
Frame make_thinner(const Material& material, const Frame& frame, double factor);

// The molecules nearest to a point inside; their number comes closest to this many atoms. Not periodic.
Frame make_cluster(const Material& material, int64_t atoms);

// Systems for repeated evaluation. Python calculators cache their last result, so the first atom is moved each time, by
// at most 1e-6 angstrom.
class RepeatedFrames {
public:
    explicit RepeatedFrames(std::vector<Frame> frames);
    const std::vector<Frame>& next();

private:
    std::vector<Frame> frames_;
    std::vector<double> places_;  // positions of the first atoms
    int64_t count_ = 0;
};

}  // namespace mlff::bench
