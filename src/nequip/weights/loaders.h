// SPDX-License-Identifier: MIT
// The parts of load_weights. All throw Error{format | unsupported} that names the module or the setting.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "equivariant/weights/module_reader.h"
#include "nequip/weights/weights.h"

namespace mlff::nequip {

inline constexpr int kMaxLoadedDegree = 3;  // of harmonics and features
// Far above any real model.
inline constexpr int kMaxLayers = 100;
inline constexpr int kMaxWidth = 1 << 16;
inline constexpr int kMaxBasisCount = 4096;
inline constexpr int kMaxCutoffExponent = 200;

// ---- paths.cpp ----

// A path of a convolution before its number is known.
struct PathOrigin {
    Irrep irrep;  // of the message
    int in_block = 0;
    int degree = 0;  // of the harmonic
    int column = 0;  // the first of its weights among those of an edge
};
struct Harmonics {
    int max_degree = 0;
    bool is_parity = true;  // (-1)^l, else all are even
    bool is_normalized = true;

    Irrep irrep(int degree) const { return {degree, is_parity && degree % 2 != 0 ? -1 : 1}; }
};
// Degree first, odd before even: the order of irreps in all files.
bool is_before(const Irrep& a, const Irrep& b);
// Each irrep that features and harmonics couple to, sorted.
std::vector<Irrep> reachable_irreps(const Irreps& in, const Harmonics& harmonics);
// The paths that files have: each block with each harmonic and each degree that they couple to, if keeps(irrep).
std::vector<PathOrigin> all_paths(const ModuleReader& reader, const Irreps& in, const Harmonics& harmonics,
                                  const std::function<bool(const Irrep&)>& keeps);
void sort_paths(std::vector<PathOrigin>& paths);
// Columns in the order of the paths. Returns their number.
int assign_columns(std::vector<PathOrigin>& paths, const Irreps& in);
Irreps irreps_of(const std::vector<PathOrigin>& paths, const Irreps& in);

// The 3j symbol with the signs of e3nn from version 0.5 on, those of wigner.h being older.
std::vector<double> new_wigner_3j(int degree1, int degree2, int degree3);
using CouplingTensor = std::function<std::vector<double>(int, int, int)>;
// Without the paths whose irreps `target` lacks: nothing reads them. Directions change sign: files have those from the
// receiver to the sender.
Convolution make_convolution(const ModuleReader& reader, const Irreps& in, const Harmonics& harmonics,
                             const std::vector<PathOrigin>& sorted_paths, int weight_count, const Irreps& target,
                             const CouplingTensor& tensor_of);

// ---- linear_maps.cpp ----

// The input "one-hot modality" behind all others. It is constant, so its weights become a bias.
struct Modality {
    int count = 0;  // 0: no such input
    int chosen = 0;
};
// The tensors `weight` and `bias` in the layout of e3nn: path after path, input-major, [copies in][copies out].
Linear load_flat_linear(const ModuleReader& reader, const Irreps& in, const Irreps& out, const Modality& modality);
// The same for a product with the one-hot species, [copies in][species][copies out]. species[element] is the index in
// the file.
Linear load_species_linear(const ModuleReader& reader, const Irreps& in, const Irreps& out, int species_count,
                           const std::vector<int>& species);
void scale_weights(Linear& linear, double factor);

// ---- gates.cpp ----

Activation normalized_activation(const ModuleReader& reader, std::string_view name);  // as e3nn scales it
// A gate with this output. Scalars must come first.
Gate make_gate(const ModuleReader& reader, const Irreps& out);
// What feeds the gate is sorted in files, and equal irreps are merged.
Irreps sorted_gate_input(const Gate& gate);
// Puts the outputs of a map to the sorted input into the order of gate.in.
Linear to_gate_order(const Linear& sorted, const Gate& gate);

// ---- sevennet_settings.cpp ----

// The settings of a checkpoint, checked, with defaults filled in.
struct SevenNetSettings {
    std::string version;
    bool has_sorted_columns = false;  // of radial weights
    std::vector<int> atomic_numbers;  // by element
    std::vector<int> species;         // by element: the index in the file
    int species_count = 0;            // in the file, which may have one more, for no element
    std::vector<std::string> heads;
    int modality_count = 0;
    bool modal_embedding = false, modal_intro = false, modal_outro = false, modal_output = false;
    bool modal_shift = false, modal_scale = false;
    Harmonics harmonics;
    double cutoff = 0;  // angstrom
    CutoffFunction cutoff_function;
    int basis_count = 0;
    bool has_trained_basis = false;  // its frequencies are in the file
    std::vector<int> hidden_widths;
    Activation radial_activation;
    Activation scalar_activation, odd_scalar_activation, gate_activation;
    bool has_network_readout = false;
    std::vector<int> readout_widths;
    Activation readout_activation;
    Irreps first_irreps;
    std::vector<Irreps> outputs;                // of each layer
    std::vector<std::string> self_connections;  // of each layer
};
SevenNetSettings read_sevennet_settings(const Module& root, LoadBudget& budget);

// ---- sevennet.cpp, nequix.cpp ----
Description describe_sevennet(const Module& root);
Weights load_sevennet(const Module& root, int head);
Description describe_nequix(const Module& root);
Weights load_nequix(const Module& root);

}  // namespace mlff::nequip
