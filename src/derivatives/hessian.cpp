// SPDX-License-Identifier: MIT
#include "derivatives/hessian.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "symmetry/point_group.h"

namespace mlff {
namespace {

// Copies are evaluated in batches of about so many atoms: enough to keep a device busy, and little memory.
constexpr int64_t kBatchAtomsCpu = 4096, kBatchAtomsGpu = 65536;
constexpr size_t kMostSampled = 3;          // displacements that show the error of the step
constexpr double kLargestStepError = 3e-6;  // of the largest number of the Hessian

void check(const Session& session, const SystemView& system, const HessianOptions& options) {
    if (!(options.step > 0 && options.step <= 0.1))
        fail(Status::argument, "the step of a Hessian is ", options.step,
             " angstrom, expected above 0 and at most 0.1");
    if (!(options.symmetry_tolerance >= 0 && options.symmetry_tolerance <= 0.1))
        fail(Status::argument, "the symmetry tolerance is ", options.symmetry_tolerance,
             " angstrom, expected 0 to 0.1");
    if (session.precision() != Precision::fp64)
        fail(Status::argument, "a Hessian needs a session with precision fp64, not ",
             precision_name(session.precision()));
    constexpr int64_t kMostAtoms = 10'000;  // 29 GB: the matrix four times, with forces of all displacements
    if (system.atom_count > kMostAtoms)
        fail(Status::argument, "a Hessian of ", system.atom_count, " atoms has too many numbers, expected at most ",
             kMostAtoms, " atoms");
}

// The symmetry of a molecule that the model has too. Some models tell mirror images apart; Python models, which say
// nothing of their reach, need not even be the same for a molecule that was turned.
SymmetryGroup group_of(const ModelSummary& model, const SystemView& system, double tolerance) {
    std::vector<SymmetryOperation> operations;
    if (tolerance > 0 && !system.is_periodic() && model.reach() > 0)
        operations = find_point_group(system, tolerance).operations;
    if (!model.is_mirror_symmetric)
        std::erase_if(operations, [](const SymmetryOperation& each) { return determinant(each.rotation) < 0; });
    return SymmetryGroup(static_cast<size_t>(system.atom_count), std::move(operations));
}

// Rows of -d(force)/d(position), [position][force], from displacements of all representatives.
std::vector<double> derivatives(const SymmetryGroup& group, std::span<const DisplacedForces> displaced) {
    const size_t atoms = group.atom_count(), width = 3 * atoms;
    std::vector<int32_t> rows(atoms);
    std::iota(rows.begin(), rows.end(), 0);
    const std::vector<double> blocks = force_derivatives(group, displaced, rows);
    std::vector<double> values(width * width);
    for (size_t i = 0; i < atoms; ++i)
        for (size_t j = 0; j < atoms; ++j)
            for (size_t force = 0; force < 3; ++force)
                for (size_t position = 0; position < 3; ++position)
                    values[(3 * i + position) * width + 3 * j + force] =
                        -blocks[((i * atoms + j) * 3 + force) * 3 + position];
    return values;
}

double largest(const std::vector<double>& values) {
    double result = 0;
    for (const double value : values) result = std::max(result, std::abs(value));
    return result;
}

std::vector<Displacement> scaled(std::span<const Displacement> displacements, double factor) {
    std::vector<Displacement> result(displacements.begin(), displacements.end());
    for (Displacement& displacement : result)
        for (double& number : displacement.vector) number *= factor;
    return result;
}

// Of a few atoms, of different elements as far as there are.
std::vector<Displacement> sample_of(std::span<const Displacement> displacements, const SystemView& system) {
    std::vector<int32_t> elements;
    std::vector<Displacement> sample;
    for (const Displacement& displacement : displacements) {
        const int32_t element = system.atomic_numbers[displacement.atom];
        if (sample.size() == kMostSampled) break;
        if (std::find(elements.begin(), elements.end(), element) != elements.end()) continue;
        elements.push_back(element);
        sample.push_back(displacement);
    }
    return sample;
}

constexpr std::array<double, 4> kSampledSteps = {1, -1, 2, -2};

// The leading error of the step, from forces at the sampled steps, [sample][step]: slopes with the step and with twice
// the step differ by three times as much.
double step_error_of(std::span<const DisplacedForces> sampled, double step) {
    double result = 0;
    for (size_t first = 0; first < sampled.size(); first += kSampledSteps.size())
        for (size_t i = 0; i < sampled[first].forces.size(); ++i) {
            const double near = (sampled[first].forces[i] - sampled[first + 1].forces[i]) / (2 * step),
                         far = (sampled[first + 2].forces[i] - sampled[first + 3].forces[i]) / (4 * step);
            result = std::max(result, std::abs(near - far) / 3);
        }
    return result;
}

void make_symmetric(Hessian& hessian, size_t width) {
    std::vector<double>& values = hessian.values;
    for (size_t i = 0; i < width; ++i) {
        Vec3 sum{};
        for (size_t j = 0; j < width; ++j) sum[j % 3] += values[i * width + j];
        for (const double number : sum) hessian.sum_rule_error = std::max(hessian.sum_rule_error, std::abs(number));
        for (size_t j = 0; j < i; ++j) {
            double &a = values[i * width + j], &b = values[j * width + i];
            hessian.asymmetry = std::max(hessian.asymmetry, std::abs(a - b));
            a = b = (a + b) / 2;
        }
    }
}

}  // namespace

std::vector<DisplacedForces> forces_of_displaced(Session& session, const SystemView& system,
                                                 std::span<const Displacement> displacements,
                                                 const HessianProgress& progress) {
    const auto width = static_cast<size_t>(3 * system.atom_count);
    const int64_t batch_atoms = session.device().is_gpu() ? kBatchAtomsGpu : kBatchAtomsCpu;
    const auto most = static_cast<size_t>(std::max<int64_t>(1, batch_atoms / std::max<int64_t>(1, system.atom_count)));
    std::vector<DisplacedForces> displaced(displacements.size());
    std::vector<double> positions;
    std::vector<SystemView> systems;
    std::vector<Results> results;
    for (size_t first = 0; first < displaced.size(); first += most) {
        if (progress && !progress(static_cast<double>(first) / static_cast<double>(displaced.size())))
            fail(Status::system, "stopped before all displacements were computed");
        const size_t count = std::min(most, displaced.size() - first);
        positions.resize(count * width);
        systems.assign(count, system);
        results.assign(count, {});
        for (size_t k = 0; k < count; ++k) {
            DisplacedForces& one = displaced[first + k];
            one.displacement = displacements[first + k];
            one.forces.resize(width);
            double* moved = positions.data() + k * width;
            std::copy_n(system.positions, width, moved);
            for (size_t axis = 0; axis < 3; ++axis)
                moved[3 * static_cast<size_t>(one.displacement.atom) + axis] += one.displacement.vector[axis];
            systems[k].positions = moved;
            results[k].outputs.forces = one.forces.data();
        }
        session.evaluate(systems, results);
    }
    return displaced;
}

Hessian compute_hessian(Session& session, const SystemView& system, const HessianOptions& options,
                        const HessianProgress& progress) {
    check(session, system, options);
    const SymmetryGroup group = group_of(session.model().summary(), system, options.symmetry_tolerance);
    const std::vector<Displacement> displacements = displacements_for(group, options.step);
    Hessian hessian;
    hessian.step = options.step;
    hessian.operation_count = static_cast<int64_t>(group.operations().size());

    std::vector<Displacement> all = displacements;
    for (const Displacement& displacement : sample_of(displacements, system))
        for (const double factor : kSampledSteps) all.push_back(scaled({&displacement, 1}, factor).front());
    std::vector<DisplacedForces> displaced = forces_of_displaced(session, system, all, progress);
    hessian.evaluation_count = static_cast<int64_t>(all.size());
    hessian.step_error = step_error_of(std::span(displaced).subspan(displacements.size()), options.step);
    displaced.resize(displacements.size());
    hessian.values = derivatives(group, displaced);

    if (hessian.step_error > kLargestStepError * largest(hessian.values)) {
        const auto far = forces_of_displaced(session, system, scaled(displacements, 2), progress);
        const std::vector<double> of_far = derivatives(group, far);
        for (size_t i = 0; i < of_far.size(); ++i) hessian.values[i] = (4 * hessian.values[i] - of_far[i]) / 3;
        hessian.is_extrapolated = true;
        hessian.evaluation_count += static_cast<int64_t>(displacements.size());
    }
    make_symmetric(hessian, static_cast<size_t>(3 * system.atom_count));
    return hessian;
}

}  // namespace mlff
