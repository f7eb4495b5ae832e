// SPDX-License-Identifier: MIT
#include "dynamics/gpu/motion_kernels.h"

#include "dynamics/units.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/reduction.cuh"

namespace mlff::gpu {
namespace {

using Kind = ThermostatOptions::Kind;

constexpr int kAtomThreads = 128;
int64_t atom_blocks(int64_t atom_count) { return (atom_count + kAtomThreads - 1) / kAtomThreads; }

// Kick, drift, bath, drift. Also saves the atoms as they were.
struct MovedAtoms {
    MotionView view;
    bool stops_half_way;

    __device__ void add(int64_t atom, MoveSum& sum) const {
        const MotionScalars& scalars = *view.scalars;
        if (scalars.halt != Halt::none) return;
        double* x = view.positions + 3 * atom;
        double* v = view.velocities + 3 * atom;
        const double* f = view.forces + 3 * atom;
        const double half_step = 0.5 * view.time_step, push = half_step * view.inverse_masses[atom];
        keep(atom, scalars.last.step);
        for (int k = 0; k < 3; ++k) {
            v[k] = scalars.begin_scale * v[k] + push * f[k];
            x[k] += half_step * v[k];
        }
        if (view.thermostat == Kind::langevin && push != 0)
            sum.growth += view.langevin.apply(v, view.masses[atom], scalars.last.step + 1, atom);
        if (stops_half_way) return;
        for (int k = 0; k < 3; ++k) x[k] += half_step * v[k];
    }

    __device__ void keep(int64_t atom, int64_t step) const {
        const int64_t slot = step % view.recent_count, size = 3 * view.atom_count;
        double* to = view.recent + slot * 3 * size;
        for (int64_t i = 3 * atom; i < 3 * atom + 3; ++i) {
            to[i] = view.positions[i];
            to[size + i] = view.velocities[i];
            to[2 * size + i] = view.forces[i];
        }
        if (atom == 0) view.recent_reports[slot] = view.scalars->last;
    }
};

struct AtomsInMotion {
    MotionView view;
    __device__ void add(int64_t atom, FinishSum& sum) const {
        const double* v = view.velocities + 3 * atom;
        sum.doubled_kinetic += view.masses[atom] * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    }
};

__device__ bool is_void(const DeviceStepResults& results) {
    return *results.search_needed != 0 || *results.short_edge != 0;
}

struct FinishedAtoms {
    MotionView view;
    MotionLimits limits;
    DeviceStepResults results;

    __device__ void add(int64_t atom, FinishSum& sum) const {
        const MotionScalars& scalars = *view.scalars;
        if (scalars.halt != Halt::none || is_void(results)) return;
        const double push = 0.5 * view.time_step * view.inverse_masses[atom];
        double squared_speed = 0, squared_distance = 0, force_sum = 0;
        for (int k = 0; k < 3; ++k) {
            const int64_t i = 3 * atom + k;
            const double force = results.forces[i], position = view.positions[i];
            view.forces[i] = force;
            const double v = view.velocities[i] + push * force;
            view.velocities[i] = v;
            squared_speed += v * v;
            force_sum += fabs(force);
            sum.position[k] += position;
            const double from_center = position - scalars.center[k];
            if (limits.is_open[k]) squared_distance += from_center * from_center;
        }
        sum.doubled_kinetic += view.masses[atom] * squared_speed;
        if (squared_distance > sum.squared_distance) sum.squared_distance = squared_distance;
        if (!isfinite(force_sum) || !isfinite(squared_distance)) sum.is_broken = 1;
    }
};

// Single-thread kernels from here on: they process the sums.

// Uses the kinetic energy of the current velocities, so that a continued run has the same bits.
__global__ void begin_chain_kernel(MotionView view) {
    mlff::gpu::await_predecessor();
    MotionScalars& scalars = *view.scalars;
    if (scalars.halt != Halt::none) return;
    const double kinetic = 0.5 * view.finish_sums[kMostReductionBlocks].doubled_kinetic / kAccelerationUnit,
                 scale = view.chain.advance(scalars.chain, kinetic);
    scalars.begin_scale = scale;
    scalars.last.heat += (scale * scale - 1) * kinetic;
}

__device__ double end_scale_of(const MotionView& view, MotionScalars& scalars, double kinetic, int64_t step) {
    if (view.thermostat == Kind::nose_hoover) return view.chain.advance(scalars.chain, kinetic);
    if (view.thermostat == Kind::rescaling) return view.rescaling.draw(kinetic, step);
    return 1;
}

__global__ void conclude_kernel(MotionView view, MotionLimits limits, DeviceStepResults results) {
    mlff::gpu::await_predecessor();
    MotionScalars& scalars = *view.scalars;
    scalars.end_scale = 1;
    if (scalars.halt != Halt::none) return;
    const double growth = scalars.is_resumed ? scalars.move_growth : view.move_sums[kMostReductionBlocks].growth;
    MotionReport report = scalars.last;
    ++report.step;
    if (is_void(results)) {
        scalars.move_growth = growth;
        scalars.halt = report.halt = *results.search_needed != 0 ? Halt::search_needed : Halt::short_edge;
        view.reports[report.step % kReportCount] = report;
        return;
    }
    const FinishSum& sum = view.finish_sums[kMostReductionBlocks];
    double kinetic = 0.5 * sum.doubled_kinetic / kAccelerationUnit;
    const double scale = end_scale_of(view, scalars, kinetic, report.step);
    report.heat += 0.5 * growth / kAccelerationUnit + (scale * scale - 1) * kinetic;
    kinetic *= scale * scale;
    report.kinetic_energy = kinetic;
    report.potential_energy = results.totals[0];
    for (int k = 0; k < 9; ++k) report.virial[k] = results.totals[1 + k];
    if (results.trust) {
        report.trust = *results.trust;
        report.trust_step = report.step;
    }
    const bool is_good = sum.is_broken == 0 && isfinite(report.potential_energy) && kinetic <= limits.kinetic_energy &&
                         sum.squared_distance <= limits.squared_distance;
    report.halt = is_good ? Halt::none : Halt::beyond_limits;
    for (int k = 0; k < 3; ++k) scalars.center[k] = sum.position[k] / static_cast<double>(view.atom_count);
    scalars.end_scale = scale;
    scalars.is_resumed = 0;
    scalars.halt = report.halt;
    scalars.last = report;
    view.reports[report.step % kReportCount] = report;
}

__global__ void resume_kernel(MotionScalars* scalars, bool finishes_step) {
    mlff::gpu::await_predecessor();
    scalars->halt = Halt::none;
    scalars->is_resumed = finishes_step;
}

// Kernels with one thread per atom.

__global__ void __launch_bounds__(kAtomThreads) scale_kernel(MotionView view) {
    mlff::gpu::await_predecessor();
    const int64_t atom = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (atom >= view.atom_count) return;
    for (int k = 0; k < 3; ++k) view.velocities[3 * atom + k] *= view.scalars->end_scale;
}

__global__ void __launch_bounds__(kAtomThreads) drift_kernel(MotionView view) {
    mlff::gpu::await_predecessor();
    const int64_t atom = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (atom >= view.atom_count) return;
    for (int k = 0; k < 3; ++k) view.positions[3 * atom + k] += 0.5 * view.time_step * view.velocities[3 * atom + k];
}

__device__ void transform(const double* matrix, double* vector) {
    const double v[3] = {vector[0], vector[1], vector[2]};
    for (int k = 0; k < 3; ++k) vector[k] = matrix[3 * k] * v[0] + matrix[3 * k + 1] * v[1] + matrix[3 * k + 2] * v[2];
}

__global__ void __launch_bounds__(kAtomThreads) deform_kernel(MotionView view, Deformation deformation) {
    mlff::gpu::await_predecessor();
    const int64_t atom = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (atom >= view.atom_count) return;
    transform(deformation.matrix, view.positions + 3 * atom);
    transform(deformation.inverse, view.velocities + 3 * atom);
}

struct KineticTensor {
    MotionView view;
    __device__ void add(int64_t atom, TensorSum& sum) const {
        const double* v = view.velocities + 3 * atom;
        const double m = view.masses[atom];
        const double products[6] = {v[0] * v[0], v[1] * v[1], v[2] * v[2], v[1] * v[2], v[0] * v[2], v[0] * v[1]};
        for (int k = 0; k < 6; ++k) sum.at[k] += m * products[k];
    }
};

struct Whole {
    MotionView view;
    __device__ void add(int64_t atom, WholeSum& sum) const {
        const double m = view.masses[atom];
        sum.at[0] += m;
        for (int k = 0; k < 3; ++k) {
            sum.at[1 + k] += m * view.positions[3 * atom + k];
            sum.at[4 + k] += m * view.velocities[3 * atom + k];
        }
    }
};

__device__ void cross(const double* a, const double* b, double* result) {
    for (int k = 0; k < 3; ++k) result[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

struct Turn {
    MotionView view;
    RigidMotion about;  // only its centre
    __device__ void add(int64_t atom, TurnSum& sum) const {
        const double m = view.masses[atom];
        double x[3], turn[3], squared = 0;
        for (int k = 0; k < 3; ++k) {
            x[k] = view.positions[3 * atom + k] - about.center[static_cast<size_t>(k)];
            squared += x[k] * x[k];
        }
        cross(x, view.velocities + 3 * atom, turn);
        for (int k = 0; k < 3; ++k) {
            sum.at[k] += m * turn[k];
            sum.at[3 + k] += m * (squared - x[k] * x[k]);
            sum.at[6 + k] -= m * x[(k + 1) % 3] * x[(k + 2) % 3];
        }
    }
};

struct SteadiedAtoms {
    MotionView view;
    RigidMotion motion;
    __device__ void add(int64_t atom, FinishSum& sum) const {
        double x[3], spin[3], turn[3];
        for (size_t k = 0; k < 3; ++k) {
            x[k] = view.positions[3 * atom + static_cast<int64_t>(k)] - motion.center[k];
            spin[k] = motion.spin[k];
        }
        cross(spin, x, turn);
        for (int k = 0; k < 3; ++k) {
            double& v = view.velocities[3 * atom + k];
            v -= motion.velocity[static_cast<size_t>(k)] + turn[k];
            sum.doubled_kinetic += view.masses[atom] * v * v;
        }
    }
};

__global__ void settle_kernel(MotionView view) {
    mlff::gpu::await_predecessor();
    MotionReport& last = view.scalars->last;
    const double kinetic = 0.5 * view.finish_sums[kMostReductionBlocks].doubled_kinetic / kAccelerationUnit;
    last.heat += kinetic - last.kinetic_energy;
    last.kinetic_energy = kinetic;
    view.reports[last.step % kReportCount] = last;
}

}  // namespace

void move_atoms(const MotionView& view, bool stops_half_way, cudaStream_t stream) {
    if (view.thermostat == Kind::nose_hoover) {
        reduce<FinishSum>(AtomsInMotion{view}, view.atom_count, view.finish_sums, stream);
        launch("a thermostat", begin_chain_kernel, 1, 1, stream, view);
    }
    reduce<MoveSum>(MovedAtoms{view, stops_half_way}, view.atom_count, view.move_sums, stream);
}
void drift_atoms(const MotionView& view, cudaStream_t stream) {
    launch("a half drift", drift_kernel, atom_blocks(view.atom_count), kAtomThreads, stream, view);
}

void finish_atoms(const MotionView& view, const MotionLimits& limits, const DeviceStepResults& results,
                  cudaStream_t stream) {
    reduce<FinishSum>(FinishedAtoms{view, limits, results}, view.atom_count, view.finish_sums, stream);
    launch("a step of dynamics", conclude_kernel, 1, 1, stream, view, limits, results);
    if (view.thermostat == Kind::nose_hoover || view.thermostat == Kind::rescaling)
        launch("a thermostat", scale_kernel, atom_blocks(view.atom_count), kAtomThreads, stream, view);
}

void resume(const MotionView& view, bool finishes_step, cudaStream_t stream) {
    launch("a step of dynamics", resume_kernel, 1, 1, stream, view.scalars, finishes_step);
}

void sum_kinetic_tensor(const MotionView& view, cudaStream_t stream) {
    reduce<TensorSum>(KineticTensor{view}, view.atom_count, view.tensor_sums, stream);
}
void sum_whole(const MotionView& view, cudaStream_t stream) {
    reduce<WholeSum>(Whole{view}, view.atom_count, view.whole_sums, stream);
}
void sum_turn(const MotionView& view, const std::array<double, 3>& center, cudaStream_t stream) {
    reduce<TurnSum>(Turn{view, {{}, {}, center}}, view.atom_count, view.turn_sums, stream);
}

void deform(const MotionView& view, const Deformation& deformation, cudaStream_t stream) {
    launch("a barostat", deform_kernel, atom_blocks(view.atom_count), kAtomThreads, stream, view, deformation);
}

void remove_rigid_motion(const MotionView& view, const RigidMotion& motion, cudaStream_t stream) {
    reduce<FinishSum>(SteadiedAtoms{view, motion}, view.atom_count, view.finish_sums, stream);
    launch("removing rigid motion", settle_kernel, 1, 1, stream, view);
}

}  // namespace mlff::gpu
