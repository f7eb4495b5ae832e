// SPDX-License-Identifier: MIT
#include "properties/equation_of_state.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/matrix3.h"
#include "properties/strained_crystal.h"

namespace mlff {
namespace {

// (1 - (1 + t) exp(-t)) / t^2, which is 1/2 at t = 0. Near 0 by its series, because the formula loses all digits there.
double vinet_function(double t) {
    if (std::abs(t) > 1) return (1 - (1 + t) * std::exp(-t)) / (t * t);
    double sum = 0, power_by_factorial = 0.5;  // (-t)^n / (n + 2)!
    for (int n = 0; n < 25; ++n) {
        sum += (n + 1) * power_by_factorial;
        power_by_factorial *= -t / (n + 3);
    }
    return sum;
}

using Parameters = Eigen::Vector4d;  // those of EquationOfState, in its order

EquationOfState equation_of(const Parameters& p) { return {p[0], p[1], p[2], p[3]}; }

// Volumes and energies without units: about 1, and between 0 and 1.
class Fit {
public:
    Fit(EnergyForm form, std::span<const double> volumes, std::span<const double> energies)
        : form_(form),
          volumes_(Eigen::Map<const Eigen::ArrayXd>(volumes.data(), static_cast<Eigen::Index>(volumes.size()))),
          energies_(Eigen::Map<const Eigen::ArrayXd>(energies.data(), static_cast<Eigen::Index>(energies.size()))),
          volume_unit_(volumes_.mean()),
          lowest_(energies_.minCoeff()),
          energy_unit_(energies_.maxCoeff() - lowest_) {
        volumes_ /= volume_unit_;
        energies_ = (energies_ - lowest_) / energy_unit_;
    }

    // Levenberg and Marquardt. Their damping only matters far from the minimum.
    FittedEquation run() const {
        constexpr int kMostSteps = 300;
        constexpr double kMostDamping = 1e12, kSmallestStep = 1e-14;
        Parameters best = start();
        Eigen::VectorXd residuals = residuals_of(best);
        double damping = 1e-3;
        for (int step = 0; step < kMostSteps && damping < kMostDamping; ++step) {
            const Eigen::MatrixXd slopes = slopes_of(best);
            Eigen::Matrix4d curvature = slopes.transpose() * slopes;
            curvature.diagonal() *= 1 + damping;
            const Parameters move = curvature.ldlt().solve(-slopes.transpose() * residuals);
            const Parameters trial = best + move;
            const Eigen::VectorXd trial_residuals = residuals_of(trial);
            if (!(trial[1] > 0 && trial[2] > 0 && trial_residuals.squaredNorm() <= residuals.squaredNorm())) {
                damping *= 10;
                continue;
            }
            best = trial;
            residuals = trial_residuals;
            damping /= 10;
            if (move.cwiseAbs().maxCoeff() < kSmallestStep) break;
        }
        FittedEquation result;
        result.equation = {lowest_ + energy_unit_ * best[0], volume_unit_ * best[1],
                           energy_unit_ / volume_unit_ * best[2], best[3]};
        result.rms_residual = energy_unit_ * std::sqrt(residuals.squaredNorm() / static_cast<double>(residuals.size()));
        return result;
    }

private:
    // From the parabola through the points.
    Parameters start() const {
        Eigen::MatrixXd powers(volumes_.size(), 3);
        powers << Eigen::VectorXd::Ones(volumes_.size()), (volumes_ - 1).matrix(), (volumes_ - 1).square().matrix();
        const Eigen::Vector3d c = powers.colPivHouseholderQr().solve(energies_.matrix());
        const double volume = std::clamp(1 - c[1] / (2 * c[2]), volumes_.minCoeff(), volumes_.maxCoeff());
        return {0, volume, 2 * volume * std::abs(c[2]), 4};
    }

    Eigen::VectorXd residuals_of(const Parameters& parameters) const {
        Eigen::VectorXd residuals(volumes_.size());
        for (Eigen::Index i = 0; i < volumes_.size(); ++i)
            residuals[i] = energy_at(form_, equation_of(parameters), volumes_[i]) - energies_[i];
        return residuals;
    }

    // Derivatives of the residuals by the parameters, from central differences. Their errors make steps a little longer
    // or shorter, and do not move the minimum where residuals vanish.
    Eigen::MatrixXd slopes_of(const Parameters& parameters) const {
        Eigen::MatrixXd slopes(volumes_.size(), 4);
        for (Eigen::Index k = 0; k < 4; ++k) {
            const double step = 1e-5 * std::max(1e-3, std::abs(parameters[k]));
            Parameters up = parameters, down = parameters;
            up[k] += step;
            down[k] -= step;
            slopes.col(k) = (residuals_of(up) - residuals_of(down)) / (up[k] - down[k]);
        }
        return slopes;
    }

    EnergyForm form_;
    Eigen::ArrayXd volumes_, energies_;
    double volume_unit_, lowest_, energy_unit_;
};

void check_points(std::span<const double> volumes, std::span<const double> energies) {
    if (volumes.size() < kLeastVolumes || volumes.size() != energies.size())
        fail(Status::argument, "an equation of state has ", volumes.size(), " volumes and ", energies.size(),
             " energies, expected at least ", kLeastVolumes, " of each");
    for (size_t i = 0; i < volumes.size(); ++i) {
        if (!(volumes[i] > (i > 0 ? volumes[i - 1] : 0.0)) || !std::isfinite(volumes[i]))
            fail(Status::system, "volume ", i, " of an equation of state is ", volumes[i],
                 " A^3, expected more than that before");
        if (!std::isfinite(energies[i]))
            fail(Status::system, "the energy at volume ", i, " of an equation of state is not finite");
    }
}

void check_minimum(std::span<const double> volumes, std::span<const double> energies) {
    const auto lowest = static_cast<size_t>(std::min_element(energies.begin(), energies.end()) - energies.begin());
    if (lowest == 0 || lowest + 1 == volumes.size())
        fail(Status::system, "the energy is lowest at the ", lowest == 0 ? "smallest" : "largest", " volume, ",
             volumes[lowest],
             " A^3, so the minimum may be outside the range: relax the cell first, or widen the range");
    for (size_t i = 1; i + 1 < volumes.size(); ++i) {
        const double before = (energies[i] - energies[i - 1]) / (volumes[i] - volumes[i - 1]),
                     after = (energies[i + 1] - energies[i]) / (volumes[i + 1] - volumes[i]);
        if (!(after > before))
            fail(Status::system, "the energy is not a convex function of the volume at ", volumes[i],
                 " A^3: the structure changes there, or the range is too wide");
    }
}

void check_curve_options(const EnergyCurveOptions& options) {
    if (options.volume_count < static_cast<int64_t>(kLeastVolumes) || options.volume_count > 1000)
        fail(Status::argument, "an equation of state from ", options.volume_count, " volumes, expected from ",
             kLeastVolumes, " to 1000");
    if (!(options.range > 0 && options.range <= 0.5))
        fail(Status::argument, "a range of volumes of ", 100 * options.range,
             " %, expected more than 0 and at most 50 %");
    if (options.relaxes_shape && !options.relaxes_positions)
        fail(Status::argument, "where the shape of the cell relaxes, positions relax too");
}

}  // namespace

double energy_at(EnergyForm form, const EquationOfState& equation, double volume) {
    const double scale = 9 * equation.volume * equation.bulk_modulus, slope = equation.bulk_modulus_slope;
    if (form == EnergyForm::vinet) {
        const double change = std::cbrt(volume / equation.volume) - 1;
        return equation.energy + scale * change * change * vinet_function(1.5 * (slope - 1) * change);
    }
    const double root = std::cbrt(equation.volume / volume), x = root * root;
    return equation.energy + scale / 16 * (x - 1) * (x - 1) * (6 - 4 * x + slope * (x - 1));
}

FittedEquation fit_equation(EnergyForm form, std::span<const double> volumes, std::span<const double> energies) {
    check_points(volumes, energies);
    check_minimum(volumes, energies);
    const FittedEquation fit = Fit(form, volumes, energies).run();
    const EquationOfState& found = fit.equation;
    if (!(found.volume >= volumes.front() && found.volume <= volumes.back() && std::isfinite(found.energy) &&
          std::isfinite(found.bulk_modulus) && std::isfinite(found.bulk_modulus_slope)))
        fail(Status::system, "the equation of state does not fit these energies");
    return fit;
}

EnergyCurve compute_energy_curve(Session& session, const Particles& crystal, EnergyForm form,
                                 const EnergyCurveOptions& options) {
    check_curve_options(options);
    require_crystal(crystal, "an equation of state");
    std::vector<Particles> crystals;
    for (int64_t i = 0; i < options.volume_count; ++i) {
        const double part = 2.0 * static_cast<double>(i) / static_cast<double>(options.volume_count - 1) - 1,
                     stretch = std::cbrt(1 + options.range * part);
        crystals.push_back(deformed(crystal, {{{stretch, 0, 0}, {0, stretch, 0}, {0, 0, stretch}}}));
    }
    RelaxationOptions relaxation;
    relaxation.largest_force = options.largest_force;
    relaxation.largest_stress = options.largest_stress;
    relaxation.with_cell = relaxation.keeps_volume = options.relaxes_shape;
    relaxation.step_limit = options.relaxes_positions ? options.step_limit : 0;

    EnergyCurve curve;
    for (const Relaxation& result : relaxed(session, crystals, relaxation)) {
        curve.volumes.push_back(cell_volume(result.particles()));
        curve.energies.push_back(result.energy());
        curve.largest_forces.push_back(result.largest_force());
        curve.moves.push_back(result.move_count());
        if (options.relaxes_positions && !result.is_converged() && curve.problem.empty())
            curve.problem = concat("the structure did not converge at ", curve.volumes.back(), " A^3 within ",
                                   options.step_limit, " steps (largest force ", result.largest_force(), " eV/A)");
    }
    if (!curve.problem.empty()) return curve;
    try {
        curve.fit = fit_equation(form, curve.volumes, curve.energies);
    } catch (const Error& error) {
        if (error.status() != Status::system) throw;
        curve.problem = error.what();
    }
    return curve;
}

}  // namespace mlff
