// SPDX-License-Identifier: MIT
#include "dynamics/particles.h"

#include <algorithm>
#include <cmath>

#include "core/elements.h"
#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/counter_random.h"
#include "dynamics/units.h"

namespace mlff {
namespace {

Vec3 at(const std::vector<double>& numbers, size_t atom) {
    return {numbers[3 * atom], numbers[3 * atom + 1], numbers[3 * atom + 2]};
}

}  // namespace

Particles::Particles(const SystemView& system) : environment(system) {
    const auto count = static_cast<size_t>(system.atom_count);
    atomic_numbers.assign(system.atomic_numbers, system.atomic_numbers + count);
    positions.assign(system.positions, system.positions + 3 * count);
    velocities.assign(3 * count, 0.0);
    for (int32_t z : atomic_numbers) masses.push_back(atomic_mass(z));
    environment.atom_count = 0;
    environment.atomic_numbers = nullptr;
    environment.positions = nullptr;
}

SystemView Particles::view() const {
    SystemView system = environment;
    system.atom_count = static_cast<int64_t>(atom_count());
    system.atomic_numbers = atomic_numbers.data();
    system.positions = positions.data();
    return system;
}

bool Particles::has_fixed_atoms() const {
    return std::any_of(is_fixed.begin(), is_fixed.end(), [](uint8_t fixed) { return fixed != 0; });
}

int64_t Particles::degrees_of_freedom() const {
    const auto atoms = static_cast<int64_t>(atom_count());
    const auto fixed =
        static_cast<int64_t>(std::count_if(is_fixed.begin(), is_fixed.end(), [](uint8_t flag) { return flag != 0; }));
    return atoms > 1 && fixed == 0 ? std::max<int64_t>(3 * atoms - rigid_degrees, 0) : 3 * (atoms - fixed);
}

double Particles::kinetic_energy() const {
    double sum = 0;
    for (size_t atom = 0; atom < atom_count(); ++atom) {
        const Vec3 v = at(velocities, atom);
        sum += masses[atom] * dot(v, v);
    }
    return 0.5 * sum / kAccelerationUnit;
}

double Particles::temperature_of(double kinetic_energy) const {
    const int64_t degrees = degrees_of_freedom();
    return degrees == 0 ? 0 : 2 * kinetic_energy / (static_cast<double>(degrees) * kBoltzmann);
}

Vec3 Particles::momentum() const {
    Vec3 sum{};
    for (size_t atom = 0; atom < atom_count(); ++atom)
        for (size_t k = 0; k < 3; ++k) sum[k] += masses[atom] * velocities[3 * atom + k];
    return sum;
}

void remove_momentum(Particles& particles) {
    double mass = 0;
    for (double m : particles.masses) mass += m;
    const Vec3 momentum = particles.momentum();
    for (size_t atom = 0; atom < particles.atom_count(); ++atom)
        for (size_t k = 0; k < 3; ++k) particles.velocities[3 * atom + k] -= momentum[k] / mass;
}

// Solves by Cramer's rule.
Vec3 angular_velocity(const Mat3& inertia, const Vec3& angular_momentum) {
    const Vec3 rows[3] = {cross(inertia[1], inertia[2]), cross(inertia[2], inertia[0]), cross(inertia[0], inertia[1])};
    const double determinant = dot(inertia[0], rows[0]), trace = inertia[0][0] + inertia[1][1] + inertia[2][2];
    if (!(determinant > 1e-9 * trace * trace * trace)) return {};
    Vec3 spin{};
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) spin[i] += rows[j][i] * angular_momentum[j] / determinant;
    return spin;
}

void remove_rotation(Particles& particles) {
    double mass = 0;
    Vec3 center{}, angular_momentum{};
    for (size_t atom = 0; atom < particles.atom_count(); ++atom) {
        mass += particles.masses[atom];
        for (size_t k = 0; k < 3; ++k) center[k] += particles.masses[atom] * particles.positions[3 * atom + k];
    }
    const auto from_center = [&](size_t atom) {
        const Vec3 x = at(particles.positions, atom);
        return Vec3{x[0] - center[0] / mass, x[1] - center[1] / mass, x[2] - center[2] / mass};
    };
    Mat3 inertia{};
    for (size_t atom = 0; atom < particles.atom_count(); ++atom) {
        const Vec3 x = from_center(atom), turn = cross(x, at(particles.velocities, atom));
        for (size_t i = 0; i < 3; ++i) {
            angular_momentum[i] += particles.masses[atom] * turn[i];
            for (size_t j = 0; j < 3; ++j)
                inertia[i][j] += particles.masses[atom] * ((i == j ? dot(x, x) : 0) - x[i] * x[j]);
        }
    }
    const Vec3 spin = angular_velocity(inertia, angular_momentum);
    for (size_t atom = 0; atom < particles.atom_count(); ++atom) {
        const Vec3 turn = cross(spin, from_center(atom));
        for (size_t k = 0; k < 3; ++k) particles.velocities[3 * atom + k] -= turn[k];
    }
}

void set_temperature(Particles& particles, double temperature, uint64_t seed) {
    if (!(temperature >= 0 && std::isfinite(temperature)))
        fail(Status::argument, "the temperature is ", temperature, " K, expected a finite number, 0 or more");
    for (size_t atom = 0; atom < particles.atom_count(); ++atom) {
        const std::array<double, 3> normal = random_normals(seed, 0, atom);
        const double spread = std::sqrt(kBoltzmann * temperature * kAccelerationUnit / particles.masses[atom]);
        for (size_t k = 0; k < 3; ++k)
            particles.velocities[3 * atom + k] = particles.moves(atom) ? spread * normal[k] : 0;
    }
    if (particles.atom_count() < 2) return;
    if (!particles.has_fixed_atoms()) {
        remove_momentum(particles);
        if (particles.rigid_degrees >= 6 && !particles.environment.is_periodic() && particles.atom_count() > 2)
            remove_rotation(particles);
    }
    const double found = particles.temperature();
    if (found > 0)
        for (double& v : particles.velocities) v *= std::sqrt(temperature / found);
}

}  // namespace mlff
