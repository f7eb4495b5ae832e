// SPDX-License-Identifier: MIT
// Elastic constants of crystals, from stresses at small strains.
//
// Six components in the order of Voigt: xx yy zz yz xz xy. Shear strains are those of engineers, twice the entry of the
// symmetric strain matrix. C_ij = d stress_i / d strain_j, from stresses at -2h, -h, h and 2h of each strain:
//   D(h) = (stress(h) - stress(-h)) / 2h,  C = (4 D(h) - D(2h)) / 3
// which is exact up to the fourth order in h.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "dynamics/relaxation.h"
#include "engine/session.h"

namespace mlff {

using Voigt = std::array<double, 6>;
using VoigtMatrix = std::array<Voigt, 6>;

struct ElasticOptions {
    double strain = 0.002;          // h
    bool relaxes_cell = true;       // first, to zero stress
    bool relaxes_positions = true;  // at each strain; otherwise atoms follow the strain
    double largest_force = 1e-5;    // eV/angstrom
    double largest_stress = 1e-6;   // eV/angstrom^3, of the relaxed cell
    int64_t step_limit = 1000;      // of each relaxation
};

// In GPa, except for ratios. Voigt's means are upper bounds for a polycrystal, Reuss's are lower ones, Hill's are
// halfway.
struct ElasticModuli {
    struct Means {
        double voigt = 0, reuss = 0, hill = 0;
    };
    Means bulk, shear;
    double young = 0, poisson = 0;    // from Hill's means
    double universal_anisotropy = 0;  // 5 Gv/Gr + Kv/Kr - 6, zero for an isotropic crystal
};

struct StrainedStress {
    size_t component = 0;  // which strain
    double strain = 0;
    Voigt stress{};  // GPa
};

struct ElasticConstants {
    Particles crystal;                     // whose constants these are: relaxed, if that was asked for
    int64_t move_count = 0;                // of its relaxation
    Voigt residual_stress{};               // GPa, of this crystal
    std::vector<StrainedStress> stresses;  // by component, then by strain
    bool has_stiffness = false;            // a problem may come before it and what follows from it
    VoigtMatrix stiffness{};               // GPa, symmetric: the mean of C_ij and C_ji
    double asymmetry = 0;                  // GPa, the largest |C_ij - C_ji|
    double extrapolation_change = 0;       // GPa, the largest |C - D(h)|: how much third and higher orders matter
    // GPa, ascending: those of the stiffness as a linear map of symmetric matrices, the same for all axes.
    Voigt eigenvalues{};
    bool is_stable = false;                 // all eigenvalues are positive
    std::optional<VoigtMatrix> compliance;  // 1/GPa, as these if it is stable
    std::optional<ElasticModuli> moduli;
    std::string problem;  // "" if there is none; otherwise numbers may be missing or wrong
};

// All strained crystals are relaxed as one batch. Throws Error{argument} for options, Error{system} for a crystal that
// cannot be used, and Error{unsupported} for a model without stresses.
ElasticConstants compute_elastic_constants(Session& session, const Particles& crystal, const ElasticOptions& options);

// The parts of this that need no model: from a stiffness in GPa, symmetric. Throws Error{system} if it is not finite.
void analyse_stiffness(ElasticConstants& constants);

// GPa, along a direction of length 1.
double young_modulus_along(const VoigtMatrix& compliance, const Vec3& direction);

inline constexpr std::array<const char*, 6> kVoigtNames = {"xx", "yy", "zz", "yz", "xz", "xy"};

}  // namespace mlff
