// SPDX-License-Identifier: MIT
#include "dynamics/cell_rescaling.h"

#include <cmath>

#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/counter_random.h"
#include "dynamics/units.h"

namespace mlff {

Mat3 kinetic_tensor(const Particles& particles) {
    Mat3 sum{};
    for (size_t atom = 0; atom < particles.atom_count(); ++atom) {
        const double* v = particles.velocities.data() + 3 * atom;
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j) sum[i][j] += particles.masses[atom] * v[i] * v[j];
    }
    return sum;
}

Mat3 pressure_tensor(const Mat3& kinetic, const Mat3& virial, const Mat3& cell) {
    const double volume = std::abs(determinant(cell));
    Mat3 pressure{};
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) pressure[i][j] = (kinetic[i][j] / kAccelerationUnit + virial[i][j]) / volume;
    return pressure;
}

CellRescaling::CellRescaling(const BarostatOptions& options, const Particles& particles, double temperature,
                             uint64_t seed, double time_step)
    : options_(options),
      thermal_energy_(kBoltzmann * temperature),
      interval_(static_cast<double>(options.every) * time_step),
      seed_(seed) {
    if (!std::isfinite(options.pressure)) fail(Status::argument, "the pressure is not finite");
    if (!(options.relaxation_time > 0 && std::isfinite(options.relaxation_time)))
        fail(Status::argument, "the barostat's relaxation time is ", options.relaxation_time,
             " fs, expected more than 0");
    if (!(options.compressibility > 0 && std::isfinite(options.compressibility)))
        fail(Status::argument, "the barostat's compressibility is ", options.compressibility,
             "/bar, expected more than 0");
    if (options.every < 1)
        fail(Status::argument, "the barostat acts every ", options.every, " steps, expected 1 or more");
    if (particles.has_fixed_atoms())
        fail(Status::system,
             "some atoms are fixed, and a changing cell would move them: at constant pressure all atoms must be free");
    for (size_t k = 0; k < 3; ++k)
        if (!particles.environment.periodic[k])
            fail(Status::system, "constant pressure needs a cell that is periodic in all directions; direction ", k + 1,
                 " is not");
    if (!(std::abs(determinant(particles.environment.cell)) > 0))
        fail(Status::system, "constant pressure needs a cell with a volume");
}

Mat3 CellRescaling::deformation(const Mat3& pressure, const Mat3& cell, int64_t step) const {
    const double volume = std::abs(determinant(cell)),
                 rate = options_.compressibility / kBar / options_.relaxation_time * interval_;
    const double wanted = options_.pressure * kBar, variance = 2 * thermal_energy_ * rate / volume;
    const auto draw = [&](uint64_t index) {
        return random_normals(seed_, static_cast<uint64_t>(step), kBarostatDraw + index);
    };
    Mat3 strain{};
    if (options_.full_cell) {
        const std::array<double, 3> diagonal = draw(0),
                                    sides = draw(1);  // (R_ij + R_ji)/2 has half the variance off the diagonal
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j) {
                const double noise = i == j ? diagonal[i] : std::sqrt(0.5) * sides[3 - i - j];
                strain[i][j] = rate / 3 * (0.5 * (pressure[i][j] + pressure[j][i]) - (i == j ? wanted : 0)) +
                               std::sqrt(variance / 3) * noise;
            }
    } else {
        const double mean = (pressure[0][0] + pressure[1][1] + pressure[2][2]) / 3;
        const double change = rate * (mean - wanted) + std::sqrt(variance) * draw(0)[0];
        for (size_t k = 0; k < 3; ++k) strain[k][k] = change / 3;
    }
    for (const Vec3& row : strain)
        for (double entry : row)
            if (!(std::abs(entry) <= 0.1))
                fail(Status::system, "the barostat would change the cell by ", 100 * entry, " % at step ", step,
                     ": the pressure is ", (pressure[0][0] + pressure[1][1] + pressure[2][2]) / 3 / kBar,
                     " bar; relax the structure first, or increase the barostat's relaxation time");
    return exponential(strain);
}

void CellRescaling::rescale(Particles& particles, const Mat3& virial, int64_t step) const {
    const Mat3 deformation =
        this->deformation(pressure_tensor(kinetic_tensor(particles), virial, particles.environment.cell),
                          particles.environment.cell, step);
    transform_vectors(deformation, particles.environment.cell[0].data(), 3);
    transform_vectors(deformation, particles.positions.data(), particles.atom_count());
    transform_vectors(inverse(deformation), particles.velocities.data(), particles.atom_count());
}

}  // namespace mlff
