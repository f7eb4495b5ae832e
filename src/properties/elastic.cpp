// SPDX-License-Identifier: MIT
#include "properties/elastic.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/units.h"
#include "properties/eigenvalues.h"
#include "properties/strained_crystal.h"

namespace mlff {
namespace {

constexpr std::array<std::array<size_t, 2>, 6> kVoigtPlaces = {{{0, 0}, {1, 1}, {2, 2}, {1, 2}, {0, 2}, {0, 1}}};
constexpr std::array<double, 4> kStrainSteps = {-2, -1, 1, 2};  // of ElasticOptions::strain

constexpr double kLargestResidualStress = 0.5;  // GPa; above it, constants depend on which strain they are defined by
constexpr double kLargestExtrapolationPart = 0.1;  // of the largest constant
constexpr double kLeastEigenvaluePart = 1e-5;      // of the largest eigenvalue; below it, zero

Voigt stress_of(const Relaxation& relaxation) {
    const double volume = cell_volume(relaxation.particles());
    Voigt stress{};
    for (size_t k = 0; k < 6; ++k) {
        const auto [i, j] = kVoigtPlaces[k];
        stress[k] = -0.5 * (relaxation.virial()[i][j] + relaxation.virial()[j][i]) / (volume * kGigapascal);
    }
    return stress;
}

Mat3 strain_matrix(size_t component, double strain) {
    const auto [i, j] = kVoigtPlaces[component];
    Mat3 matrix = kIdentity;
    matrix[i][j] += i == j ? strain : strain / 2;
    if (i != j) matrix[j][i] += strain / 2;
    return matrix;
}

double largest_entry(const Voigt& numbers) {
    double largest = 0;
    for (const double number : numbers) largest = std::max(largest, std::abs(number));
    return largest;
}

std::string not_converged(const char* what, const ElasticOptions& options, const Relaxation& relaxation) {
    return concat(what, " did not converge within ", options.step_limit, " steps (largest force ",
                  relaxation.largest_force(), " eV/A)");
}

void check_elastic_options(const ElasticOptions& options) {
    if (!(options.strain > 0 && options.strain <= 0.05))
        fail(Status::argument, "a strain of ", options.strain, ", expected more than 0 and at most 0.05");
}

// From ElasticConstants::stresses. They are sorted.
void set_stiffness(ElasticConstants& constants) {
    VoigtMatrix raw{};
    double change = 0;
    for (size_t j = 0; j < 6; ++j) {
        const StrainedStress* at = &constants.stresses[kStrainSteps.size() * j];
        for (size_t i = 0; i < 6; ++i) {
            const double outer = (at[3].stress[i] - at[0].stress[i]) / (at[3].strain - at[0].strain),
                         inner = (at[2].stress[i] - at[1].stress[i]) / (at[2].strain - at[1].strain);
            raw[i][j] = (4 * inner - outer) / 3;
            change = std::max(change, std::abs(raw[i][j] - inner));
        }
    }
    constants.extrapolation_change = change;
    constants.asymmetry = 0;
    for (size_t i = 0; i < 6; ++i)
        for (size_t j = 0; j < 6; ++j) {
            constants.asymmetry = std::max(constants.asymmetry, std::abs(raw[i][j] - raw[j][i]));
            constants.stiffness[i][j] = 0.5 * (raw[i][j] + raw[j][i]);
        }
}

// With these factors a stiffness in the notation of Voigt becomes the matrix of a linear map.
double mandel_factor(size_t component) { return component < 3 ? 1 : std::sqrt(2.0); }

ElasticModuli moduli_of(const VoigtMatrix& c, const VoigtMatrix& s) {
    ElasticModuli moduli;
    const auto diagonal = [](const VoigtMatrix& m, size_t first) {
        return m[first][first] + m[first + 1][first + 1] + m[first + 2][first + 2];
    };
    const auto mixed = [](const VoigtMatrix& m) { return m[0][1] + m[1][2] + m[0][2]; };
    moduli.bulk.voigt = (diagonal(c, 0) + 2 * mixed(c)) / 9;
    moduli.bulk.reuss = 1 / (diagonal(s, 0) + 2 * mixed(s));
    moduli.shear.voigt = (diagonal(c, 0) - mixed(c) + 3 * diagonal(c, 3)) / 15;
    moduli.shear.reuss = 15 / (4 * diagonal(s, 0) - 4 * mixed(s) + 3 * diagonal(s, 3));
    for (ElasticModuli::Means* means : {&moduli.bulk, &moduli.shear}) means->hill = (means->voigt + means->reuss) / 2;
    const double bulk = moduli.bulk.hill, shear = moduli.shear.hill;
    moduli.young = 9 * bulk * shear / (3 * bulk + shear);
    moduli.poisson = (3 * bulk - 2 * shear) / (2 * (3 * bulk + shear));
    moduli.universal_anisotropy =
        5 * moduli.shear.voigt / moduli.shear.reuss + moduli.bulk.voigt / moduli.bulk.reuss - 6;
    return moduli;
}

// The crystal whose constants are wanted. False if there is a problem.
bool set_crystal(Session& session, const Particles& start, const ElasticOptions& options, ElasticConstants& constants) {
    RelaxationOptions relaxation;
    relaxation.with_cell = options.relaxes_cell;
    relaxation.largest_force = options.largest_force;
    relaxation.largest_stress = options.largest_stress;
    // Without a relaxation of the cell this is only its stress, with positions as they will be at the strains.
    relaxation.step_limit = options.relaxes_cell || options.relaxes_positions ? options.step_limit : 0;
    const Relaxation result = std::move(relaxed(session, {start}, relaxation).front());
    constants.crystal = result.particles();
    constants.move_count = result.move_count();
    constants.residual_stress = stress_of(result);
    if (relaxation.step_limit > 0 && !result.is_converged()) {
        constants.problem = not_converged(options.relaxes_cell ? "the cell" : "the structure", options, result);
        return false;
    }
    const double residual = largest_entry(constants.residual_stress);
    if (!(residual <= kLargestResidualStress)) {
        constants.problem = concat("the crystal has a stress of ", residual, " GPa, more than ", kLargestResidualStress,
                                   " GPa, so its elastic constants are not defined: relax the cell");
        return false;
    }
    return true;
}

}  // namespace

void analyse_stiffness(ElasticConstants& constants) {
    std::array<double, 36> mandel{};
    for (size_t i = 0; i < 6; ++i)
        for (size_t j = 0; j < 6; ++j) {
            if (!std::isfinite(constants.stiffness[i][j]))
                fail(Status::system, "the elastic constant ", kVoigtNames[i], " ", kVoigtNames[j], " is not finite");
            mandel[6 * i + j] = constants.stiffness[i][j] * mandel_factor(i) * mandel_factor(j);
        }
    const Eigenvectors<double> found = eigenvectors_of_symmetric(mandel, 6);
    std::copy(found.values.begin(), found.values.end(), constants.eigenvalues.begin());
    constants.has_stiffness = true;
    constants.is_stable = found.values.front() > kLeastEigenvaluePart * largest_entry(constants.eigenvalues);
    constants.compliance.reset();
    constants.moduli.reset();
    if (!constants.is_stable) return;
    VoigtMatrix compliance{};
    for (size_t i = 0; i < 6; ++i)
        for (size_t j = 0; j < 6; ++j) {
            for (size_t k = 0; k < 6; ++k)
                compliance[i][j] += found.vectors[6 * k + i] * found.vectors[6 * k + j] / found.values[k];
            compliance[i][j] *= mandel_factor(i) * mandel_factor(j);
        }
    constants.compliance = compliance;
    constants.moduli = moduli_of(constants.stiffness, compliance);
}

double young_modulus_along(const VoigtMatrix& compliance, const Vec3& direction) {
    double strain = 0;  // along the direction, for a stress of 1 along it
    for (size_t i = 0; i < 6; ++i)
        for (size_t j = 0; j < 6; ++j) {
            const auto [a, b] = kVoigtPlaces[i];
            const auto [c, d] = kVoigtPlaces[j];
            strain += compliance[i][j] * direction[a] * direction[b] * direction[c] * direction[d];
        }
    return 1 / strain;
}

ElasticConstants compute_elastic_constants(Session& session, const Particles& crystal, const ElasticOptions& options) {
    check_elastic_options(options);
    require_crystal(crystal, "elasticity");
    if (!session.model().gives_virial(crystal.view()))
        fail(Status::unsupported, "elastic constants need stresses, which this model does not give");
    ElasticConstants constants;
    if (!set_crystal(session, crystal, options, constants)) return constants;

    std::vector<Particles> strained;
    for (size_t component = 0; component < 6; ++component)
        for (const double step : kStrainSteps) {
            const double strain = step * options.strain;
            constants.stresses.push_back({component, strain, {}});
            strained.push_back(deformed(constants.crystal, strain_matrix(component, strain)));
        }
    RelaxationOptions relaxation;
    relaxation.largest_force = options.largest_force;
    relaxation.step_limit = options.relaxes_positions ? options.step_limit : 0;
    const std::vector<Relaxation> relaxations = relaxed(session, strained, relaxation);
    for (size_t i = 0; i < relaxations.size(); ++i) {
        constants.stresses[i].stress = stress_of(relaxations[i]);
        if (options.relaxes_positions && !relaxations[i].is_converged()) {
            constants.problem = not_converged("a strained crystal", options, relaxations[i]);
            return constants;
        }
    }
    set_stiffness(constants);
    analyse_stiffness(constants);
    double largest = 0;
    for (const Voigt& row : constants.stiffness) largest = std::max(largest, largest_entry(row));
    if (!constants.is_stable)
        constants.problem = concat("the crystal is not mechanically stable: the lowest eigenvalue of its stiffness is ",
                                   constants.eigenvalues.front(), " GPa");
    else if (!(constants.extrapolation_change <= kLargestExtrapolationPart * largest))
        constants.problem =
            concat("constants change by ", constants.extrapolation_change,
                   " GPa between the two strains: the structure changes, or the strain does not suit it");
    return constants;
}

}  // namespace mlff
