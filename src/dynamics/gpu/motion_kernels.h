// SPDX-License-Identifier: MIT
// The integrator on the GPU: molecular_dynamics.h for atoms in device memory. For CUDA sources only.
//
// A step is move_atoms(), forces, finish_atoms(). If it cannot be finished (a neighbour search is needed, or two atoms
// are too close) or exceeds the limits, MotionScalars::halt gives the reason. Later steps already in the stream then
// leave the atoms unchanged until resume().
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>

#include "dynamics/langevin.h"
#include "dynamics/nose_hoover_chain.h"
#include "dynamics/velocity_rescaling.h"
#include "potential/device_stepper.h"

namespace mlff::gpu {

enum class Halt : int32_t { none, search_needed, short_edge, beyond_limits };

// What the host receives from a step.
struct MotionReport {
    int64_t step = 0;
    Halt halt = Halt::none;
    double potential_energy = 0, kinetic_energy = 0, heat = 0;  // eV
    double virial[9] = {};                                      // eV
    TrustReading trust;                                         // of step trust_step
    int64_t trust_step = -1;                                    // the last one in which trust was measured; -1: none
};

// The state of a step besides the atoms.
struct MotionScalars {
    MotionReport last;  // the last finished step
    Halt halt = Halt::none;
    int32_t is_resumed = 0;  // the step continues after a halt
    double begin_scale = 1;  // the thermostat's factors for velocities, before and after velocity Verlet
    double end_scale = 1;
    double move_growth = 0;  // of m v^2 in the halted step
    double center[3] = {};   // of all atoms, one step ago
    double chain[NoseHooverChain::kStateSize] = {};
};

// A step beyond these limits halts, and the host checks it.
struct MotionLimits {
    double kinetic_energy = 0;    // eV
    double squared_distance = 0;  // angstrom^2, distance from the centre in open directions
    bool is_open[3] = {};

    bool operator==(const MotionLimits&) const = default;
};

struct MoveSum {
    double growth = 0;  // of m v^2
    __device__ void merge(const MoveSum& other) { growth += other.growth; }
};
struct FinishSum {
    double doubled_kinetic = 0;  // m v^2
    double position[3] = {};
    double squared_distance = 0;  // the largest
    int32_t is_broken = 0;        // a force or a distance is not finite

    __device__ void merge(const FinishSum& other) {
        doubled_kinetic += other.doubled_kinetic;
        for (int k = 0; k < 3; ++k) position[k] += other.position[k];
        squared_distance = squared_distance < other.squared_distance ? other.squared_distance : squared_distance;
        is_broken |= other.is_broken;
    }
};
template <int kCount>
struct NumberSums {
    double at[kCount] = {};
    __device__ void merge(const NumberSums& other) {
        for (int k = 0; k < kCount; ++k) at[k] += other.at[k];
    }
};
using TensorSum = NumberSums<6>;  // m v v: xx yy zz yz xz xy
using WholeSum = NumberSums<7>;   // m, m x, m v
using TurnSum = NumberSums<9>;    // angular momentum; inertia xx yy zz yz xz xy

inline constexpr int kReportCount = 4;  // reports kept

// Everything a step needs; all pointers are device pointers, except `reports`. Passed to kernels by value.
struct MotionView {
    int64_t atom_count = 0;
    double time_step = 0;  // fs
    ThermostatOptions::Kind thermostat = ThermostatOptions::Kind::none;
    LangevinKick langevin;
    NoseHooverChain chain;
    RescalingFactor rescaling;

    double *positions = nullptr, *velocities = nullptr, *forces = nullptr;  // [atom][3]
    const double *masses = nullptr, *inverse_masses = nullptr;  // [atom]; the second as in MolecularDynamics
    double* recent = nullptr;  // [step % recent_count][positions, velocities, forces][atom][3], from before the step
    MotionReport* recent_reports = nullptr;  // [step % recent_count]
    int recent_count = 0;

    MotionScalars* scalars = nullptr;
    MotionReport* reports = nullptr;  // [step % kReportCount], host memory
    MoveSum* move_sums = nullptr;     // [kMostReductionBlocks + 1] each; the last is the result
    FinishSum* finish_sums = nullptr;
    TensorSum* tensor_sums = nullptr;
    WholeSum* whole_sums = nullptr;
    TurnSum* turn_sums = nullptr;
};

// The first half of a step. With stops_half_way, all but the last half drift, which drift_atoms() does.
void move_atoms(const MotionView& view, bool stops_half_way, cudaStream_t stream);
void drift_atoms(const MotionView& view, cudaStream_t stream);
void finish_atoms(const MotionView& view, const MotionLimits& limits, const DeviceStepResults& results,
                  cudaStream_t stream);
void resume(const MotionView& view, bool finishes_step,
            cudaStream_t stream);  // after a halt; the halted step is finished next, or has been

// For operations decided by the host. The last element of each sum array is the result.
void sum_kinetic_tensor(const MotionView& view, cudaStream_t stream);
void sum_whole(const MotionView& view, cudaStream_t stream);
void sum_turn(const MotionView& view, const std::array<double, 3>& center, cudaStream_t stream);
struct Deformation {
    double matrix[9], inverse[9];
};
void deform(const MotionView& view, const Deformation& deformation,
            cudaStream_t stream);  // positions by the matrix, velocities by its inverse
struct RigidMotion {
    std::array<double, 3> velocity{}, spin{}, center{};
};
void remove_rigid_motion(const MotionView& view, const RigidMotion& motion,
                         cudaStream_t stream);  // also accounts for the heat

}  // namespace mlff::gpu
