// SPDX-License-Identifier: MIT
// Readouts: energies of atoms from their features, and the gradients of these features.
#pragma once

#include <cuda_runtime.h>

#include "equivariant/gpu/engine_names.h"
#include "equivariant/gpu/readout_matrices.h"
#include "equivariant/plan/row_layout.h"
#include "gpu/engine/totals.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::equivariant::gpu {

// What becomes of a readout's energies and gradients.
template <class Real>
struct ReadoutTask {
    double* energies = nullptr;  // [atom]
    bool adds_energies = false;  // otherwise overwrites
    bool is_last = false;        // finishes the energies: see finished_energy()
    mlff::gpu::EnergyView energy;
    Real* features_gradient = nullptr;  // [atom][features] of energy_scale() times the readout; null: not wanted
    bool adds_gradient = false;         // otherwise overwrites all features of the atom
};

template <class Real>
class DeviceReadout {
public:
    // The features are those of the layout, copy by copy of each block.
    DeviceReadout(ReadoutMatrices matrices, const RowLayout& layout, cudaStream_t stream);

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

}  // namespace mlff::equivariant::gpu
