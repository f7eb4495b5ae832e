// SPDX-License-Identifier: MIT
// The dynamical matrix of a wave vector and the frequencies of its modes.
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "core/threads.h"
#include "properties/phonons/force_constants.h"

namespace mlff::phonons {

// Frequencies are in THz, without 2 pi.
inline constexpr double kPerCmOfTHz = 33.35640951981521;  // 1/cm

// phonopy's convention: an atom of the supercell stands for its nearest image; where several images are equally near,
// for all of them with equal weights.
class DynamicalMatrix {
public:
    DynamicalMatrix(const Crystal& primitive, const Crystal& supercell, const CellMap& map,
                    const ForceConstants& constants);

    size_t mode_count() const { return 3 * masses_.size(); }
    // At a wave vector in reciprocal vectors of the primitive cell: [mode][mode], eV/(angstrom^2 u).
    std::vector<std::complex<double>> at(const Vec3& wave_vector) const;
    // Ascending; those of imaginary modes are negative.
    std::vector<double> frequencies(const Vec3& wave_vector) const;

private:
    struct Term {
        size_t row, column;  // primitive atoms
        size_t first_image, image_count;
        double block[9];  // divided by the number of images and by the square roots of the masses
    };
    std::vector<double> masses_;
    std::vector<Term> terms_;
    std::vector<Vec3> images_;  // from the first atom to the second, in primitive lattice vectors
};

// [wave vector][mode], of many wave vectors.
std::vector<std::vector<double>> frequencies_at(const DynamicalMatrix& matrix, std::span<const Vec3> wave_vectors,
                                                ThreadTeam& team);

}  // namespace mlff::phonons
