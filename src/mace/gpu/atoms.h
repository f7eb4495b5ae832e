// SPDX-License-Identifier: MIT
// Stages for every atom other than linear maps and the contraction: division, gates and readouts.
#pragma once

#include <cuda_runtime.h>

#include "gpu/engine/totals.h"
#include "gpu/runtime/device_buffer.h"
#include "mace/gpu/engine_names.h"
#include "mace/plan/layer_plan.h"
#include "mace/weights/weights.h"

namespace mlff::mace::gpu {

// divisors[atom] = constant + by_density densities[atom];  rows /= divisor
template <class Real>
void divide_rows(int64_t atom_count, Real constant, Real by_density, const Real* densities, Real* divisors, Real* rows,
                 int size, cudaStream_t stream);

// densities_gradient[atom] = -by_density (a[atom] . b[atom]) / divisor;  rows /= divisor. Constant divisors need
// neither: they are part of the maps of messages.
template <class Real>
void reverse_division(int64_t atom_count, Real by_density, const Real* a, const Real* b, int dot_size,
                      const Real* divisors, Real* densities_gradient, Real* rows, int size, cudaStream_t stream);

// Copies the first `count` numbers of each atom. Atoms are from_stride and to_stride numbers apart.
template <class Real>
void copy_columns(int64_t atom_count, int count, const Real* from, int from_stride, double* to, int to_stride,
                  cudaStream_t stream);

// The gate of plan::GatePlan.
template <class Real>
class DeviceGate {
public:
    DeviceGate(const plan::GatePlan<Real>& plan, cudaStream_t stream);
    void apply(int64_t atom_count, const Real* in, Real* out, cudaStream_t stream) const;
    void reverse(int64_t atom_count, const Real* in, const Real* out_gradient, Real* in_gradient,
                 cudaStream_t stream) const;  // overwrites

    struct Scalar {
        int32_t from = 0, to = 0;
    };
    struct Gated {  // one copy of a gated block
        int32_t gate = 0, from = 0, from_stride = 0, to = 0, to_stride = 0, components = 0;
    };
    struct View {
        const Scalar* scalars = nullptr;
        const Gated* gated = nullptr;
        int scalar_count = 0, gated_count = 0, in_size = 0, out_size = 0;
        Activation scalar_activation, gate_activation;
    };

private:
    View view_;
    mlff::gpu::DeviceBuffer<Scalar> scalars_;
    mlff::gpu::DeviceBuffer<Gated> gated_;
};

// What becomes of a readout's energies and gradients.
template <class Real>
struct ReadoutTask {
    double* energies = nullptr;  // [atom]
    bool adds_energies = false;  // otherwise overwrites
    bool is_last = false;        // finishes the energies: see finished_energy()
    mlff::gpu::EnergyView energy;
    Real* features_gradient = nullptr;  // [atom][features] of energy.scale times the readout; null: not wanted
    bool adds_gradient = false;         // otherwise overwrites all features of the atom
};

// A readout for one head, in double precision: energy = last . f(middle f(first x)), or first . x if it is linear.
template <class Real>
class DeviceReadout {
public:
    DeviceReadout(const Readout& readout, int head, const Irreps& irreps, const plan::RowLayout& layout,
                  cudaStream_t stream);

    void compute(int64_t atom_count, const Real* features, const ReadoutTask<Real>& task, cudaStream_t stream) const;

    static constexpr int kMostHidden = 512;
    struct View {
        const int32_t* places = nullptr;          // [feature]: its index in the features of an atom
        const double* first = nullptr;            // [feature][hidden], or [feature] without hidden layers
        const double* first_by_hidden = nullptr;  // the same as [hidden][feature]
        const double* first_bias = nullptr;       // [hidden]
        const double* middle = nullptr;           // [hidden][second]; nullptr: none
        const double* middle_bias = nullptr;      // [second]
        const double* last = nullptr;             // [hidden or second]
        double last_bias = 0;
        int feature_count = 0, hidden_count = 0, second_count = 0, row_size = 0;  // hidden_count 0: linear
        Activation activation;
    };

private:
    View view_;
    mlff::gpu::DeviceBuffer<int32_t> places_;
    mlff::gpu::DeviceBuffer<double> first_, first_by_hidden_, first_bias_, middle_, middle_bias_, last_;
};

}  // namespace mlff::mace::gpu
