// SPDX-License-Identifier: MIT
// All frames of one split, on the device: labels minus the untrained parts, edges, and the offsets of the frames.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/labelled_frames.h"
#include "train/model.h"

namespace mlff::train {

// The last row of each tensor is padding: no element, zero labels, an edge beyond the cutoff.
struct TrainingSet {
    int64_t frame_count = 0;
    std::vector<int64_t> first_atom, first_edge;      // [frames + 1]
    std::vector<int32_t> edge_receiver, edge_sender;  // [edge], atom within its frame; on the host
    std::vector<int32_t> edge_reverse;                // [edge], edge within its frame
    std::vector<int> kind;                            // [frame]
    std::vector<uint8_t> element;                     // [atom], on the host too

    at::Tensor atom_element;    // int64 [atoms + 1]; padding has the index after the last element
    at::Tensor atom_force;      // float [atoms + 1][3]
    at::Tensor edge_vector;     // float [edges + 1][3]
    at::Tensor frame_energy;    // float [frames + 1][1], minus atomic energies and repulsion
    at::Tensor frame_per_atom;  // float [frames + 1][1], 1 / atoms; 1 for the padding
    // Defined only if some frame has a stress.
    at::Tensor frame_stress;      // float [frames + 1][9], minus repulsion; 0 if unknown
    at::Tensor frame_per_volume;  // float [frames + 1][1], 0 where the stress is unknown

    int64_t atoms_of(int64_t frame) const {
        return first_atom[static_cast<size_t>(frame) + 1] - first_atom[static_cast<size_t>(frame)];
    }
    int64_t edges_of(int64_t frame) const {
        return first_edge[static_cast<size_t>(frame) + 1] - first_edge[static_cast<size_t>(frame)];
    }
};

// The elements of the training frames, with atomic energies from a least-squares fit (after subtracting the repulsion)
// and scales from the rms force on atoms of each element. The repulsion radii are `repulsion_factor` times the covalent
// radii; 0: no repulsion.
ElementTable fit_elements(const FrameSet& frames, double cutoff, double repulsion_factor);

// The shortest distance of each pair of elements in the training frames, [element][element]. For pairs that never
// occur: where their repulsion would begin, which is the sum of the covalent radii, or half the cutoff if that is less.
std::vector<double> shortest_distances(const FrameSet& frames, double cutoff, const ElementTable& elements);

// Frames of this split whose elements are all known. Others are counted in `unknown_elements`.
TrainingSet make_training_set(const FrameSet& frames, Split split, const ModelShape& shape,
                              const ElementTable& elements, const at::Device& device, int64_t& unknown_elements);

// The radius of each atom, by element.
std::vector<double> radii_of_atoms(const ElementTable& elements, const std::vector<int32_t>& atomic_numbers);

}  // namespace mlff::train
