// SPDX-License-Identifier: MIT
// What every backend of every model implements: energies and their derivatives, given atoms and edges.
#pragma once

#include <span>

#include "core/error.h"
#include "core/system_view.h"
#include "core/threads.h"
#include "gpu/runtime/gpu_address.h"
#include "neighbors/neighbor_list.h"
#include "potential/device_stepper.h"
#include "potential/domain.h"

namespace mlff {

// Where results go; nullptr = not wanted. The evaluator overwrites, it does not add.
struct Outputs {
    double* energy = nullptr;         // [1], eV
    double* forces = nullptr;         // [atom][3], eV/angstrom
    double* virial = nullptr;         // [3][3] = -dE/dstrain, eV; symmetric
    double* atom_energies = nullptr;  // [atom], eV
    double* atom_virials = nullptr;   // [atom][3][3], eV; their sum is the virial
    double* descriptors =
        nullptr;  // [atom][descriptor_count of the model]: what the model knows of the atom, invariant
};

// Where results go that stay on the evaluator's GPU.
struct DeviceOutputs {
    Outputs outputs;           // device pointers
    double* stress = nullptr;  // [6], as in Results
    double volume = 0;         // for the stress
};

// What a system takes on the evaluator's device beside the model, in bytes.
struct MemoryForecast {
    int64_t least = 0;  // with less it is refused
    int64_t usual = 0;  // where there is enough: with room for systems that grow a little
};

// Scratch memory for one thread of the caller; made by Model::make_evaluator.
class Evaluator {
public:
    virtual ~Evaluator() = default;
    // `edges` is a full list with vectors and distances for the model's cutoff. Elements have been checked.
    virtual void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) = 0;

    // Whether evaluate() reads its `edges`. If not, neighbours are found by the evaluator itself, this many times from
    // scratch so far.
    virtual bool needs_edges() const { return true; }
    virtual int64_t neighbor_build_count() const { return 0; }

    // evaluate() with positions and outputs in memory of the evaluator's GPU; atomic numbers and the rest of the system
    // are on the host. Begins when `stream`, a cudaStream_t, has done what was asked of it before, and is complete on
    // return. Throws Error{argument} that names a pointer of the host.
    virtual void evaluate_on_device(const SystemView& system, const DeviceOutputs& outputs, void* stream,
                                    ThreadTeam& team) {
        (void)system, (void)outputs, (void)stream, (void)team;
        fail(Status::unsupported, "this backend does not take device pointers");
    }

    // A part of a system together with others elsewhere; `edges` has those that own atoms receive. Energies, atom
    // energies and descriptors are those of own atoms; forces and atom virials are of all atoms of the domain, where
    // those of a ghost are to be added to those of the atom it is a copy of.
    virtual void evaluate_domain(const Domain& domain, const Edges& edges, const Outputs& outputs, ThreadTeam& team) {
        (void)domain, (void)edges, (void)outputs, (void)team;
        fail(Status::unsupported,
             "this backend does not evaluate parts of a system: MACE and PaiNN models on devices 'cpu' and 'cuda' do");
    }

    // For domains whose rows are shared: where processes of the same machine find memory of the evaluator's GPU, and a
    // try to read that of another; throws Error{device} with the reason if it cannot.
    virtual GpuAddress gpu_address() { fail(Status::unsupported, "only sessions on a GPU share rows of atoms"); }
    virtual void reach_gpu(const GpuAddress& address) {
        (void)address;
        fail(Status::unsupported, "only sessions on a GPU share rows of atoms");
    }

    // For dynamics that stay on the device; nullptr where they cannot. Lives as long as the evaluator.
    virtual DeviceStepper* device_stepper() { return nullptr; }

    // For planning: what one system of so many atoms would take for energies, forces and virial, from the list of
    // buffers. `edge_count` is of pairs within forecast_radius(). Right for systems of the elements of the last call.
    // Radius 0: such a list does not exist.
    virtual double forecast_radius() const { return 0; }
    virtual MemoryForecast forecast_memory(int64_t atom_count, int64_t edge_count) {
        (void)atom_count, (void)edge_count;
        fail(Status::unsupported, "this backend does not know what memory it will take");
    }

    // Many small systems are faster together. Whether `next` may be evaluated together with `first`:
    virtual bool can_join(const SystemView& first, const SystemView& next) const {
        (void)first, (void)next;
        return false;
    }
    virtual int64_t most_joined_atoms() const { return 512; }       // of all together: enough to keep the device busy
    virtual bool needs_reverse_of_joined() const { return false; }  // Edges::reverse in evaluate_joined()
    // Whether evaluate_joined() reads its `edges` for these systems.
    virtual bool needs_edges_of_joined(std::span<const SystemView> systems) const {
        (void)systems;
        return true;
    }
    // The same as evaluate() for each of the systems, which can_join(). Their atoms and edges are numbered through in
    // `edges`.
    virtual void evaluate_joined(std::span<const SystemView> systems, const Edges& edges,
                                 std::span<const Outputs> outputs, ThreadTeam& team) {
        evaluate(systems.front(), edges, outputs.front(), team);
    }
};

}  // namespace mlff
