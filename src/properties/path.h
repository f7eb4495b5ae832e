// SPDX-License-Identifier: MIT
// Paths from one structure to another: images, which are positions of the same atoms, and how they are laid out.
//
// Positions of neighbouring images are continuous: no atom jumps by a lattice vector from one image to the next, so
// that displacements are plain differences. connect() sees to it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dynamics/particles.h"

namespace mlff {

using Image = std::vector<double>;  // [atom][3], angstrom

struct ImageResult {
    double energy = 0;           // eV
    std::vector<double> forces;  // [atom][3], eV/angstrom
};

// Energies and forces of images: a session (session_image_forces), or formulas. Throws Error.
using ImageForces = std::function<std::vector<ImageResult>(std::span<const Image>)>;

// Motions of all atoms together that cost no energy, and which paths are to be free of.
enum class RigidMotion { none, translation, translation_and_rotation };

// None if atoms are fixed, no rotation if a direction is periodic.
RigidMotion rigid_motion_of(const Particles& atoms);

// Orthogonal directions of length 1 that move `image` rigidly.
std::vector<Image> rigid_directions(const Image& image, RigidMotion motion);

// Takes out of `vector` what lies along `directions`, which are orthogonal and of length 1.
void project_out(std::span<const Image> directions, std::span<double> vector);

double length_of(std::span<const double> vector);
Image difference_of(const Image& to, const Image& from);
// The longest displacement of an atom.
double largest_move(std::span<const double> vector);

// Throws Error{system}, with the first difference, unless both have the same atoms in the same order, the same cell and
// the same fixed atoms at the same places.
void check_same_atoms(const Particles& first, const Particles& second);

// Makes each image continue the one before it: atoms at the periodic image nearest to where they were, and the whole
// moved and, without periodic directions, rotated to where the displacements are smallest (Kabsch 1976).
void connect(std::span<Image> path, const SystemView& environment, RigidMotion motion);

// Straight lines from the first image to the last.
std::vector<Image> linear_path(const Image& first, const Image& last, size_t count);

// Images at equal distances along straight lines between the images of a path.
std::vector<Image> spread_images(std::span<const Image> path, size_t count);

// How far along the path each image is, angstrom: lengths of the displacements of all atoms, added up.
std::vector<double> distances_along(std::span<const Image> path);

// Throws Error{system} that names image and atoms, if two atoms are closer than any bond is.
void check_atoms_are_apart(std::span<const Image> path, const Particles& atoms);

// The energy between images: cubic polynomials with the energies and slopes of the images.
struct PathCurve {
    std::vector<double> distances, energies;
};
PathCurve energy_curve(std::span<const double> distances, std::span<const double> energies,
                       std::span<const double> slopes);

}  // namespace mlff
