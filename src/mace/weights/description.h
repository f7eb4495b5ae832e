// SPDX-License-Identifier: MIT
// What a MACE file contains, for `mlff model info`. Reads the module tree leniently: this must work for every version,
// and for classes that cannot be run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/module_tree.h"

namespace mlff::mace {

struct LayerDescription {
    std::string interaction;  // class name, "RealAgnosticResidualInteractionBlock"
    std::string message_irreps;
    std::string output_irreps;
    int correlation = 0;
    std::optional<double> average_neighbor_count;
    std::string readout;  // class name; "" if this layer has no readout
};

struct RadialDescription {
    std::string basis;  // "BesselBasis"
    int basis_count = 0;
    std::string transform;  // "AgnesiTransform"; "" if there is none
    std::optional<double> cutoff_exponent;
    bool applies_cutoff_to_basis = true;  // else to the messages
    std::vector<int> hidden_widths;       // of the radial network
};

struct Description {
    std::string class_name;  // "ScaleShiftMACE"
    bool is_mace = false;    // a class of the MACE family, runnable or not
    std::string wrapper;     // "LAMMPS_MACE" if the model is wrapped in one; its head is then fixed
    std::optional<int> fixed_head;
    std::vector<int> elements;
    double cutoff = 0;
    int max_degree = 0;  // of the spherical harmonics
    std::string hidden_irreps;
    std::vector<LayerDescription> layers;
    RadialDescription radial;
    std::vector<std::string> heads;
    std::vector<std::vector<double>> atomic_energies;  // [head][element], eV; empty if the model has none
    std::vector<double> scale, shift;                  // per head, or one for all; empty if there is none
    bool has_pair_repulsion = false;
    std::vector<std::string> extra_inputs;  // "total_charge"
    std::string gate;                       // activation of the last readout
    std::string tensor_layout;              // "e3nn" or "cuequivariance"
    DType dtype = DType::float32;
    int64_t parameter_count = 0;
};

// Throws Error{format} only if something that every MACE model has is present but malformed.
Description describe(const Module& root);

// The MACE module itself: the root, or the module inside a LAMMPS wrapper.
const Module& unwrap(const Module& root);

}  // namespace mlff::mace
