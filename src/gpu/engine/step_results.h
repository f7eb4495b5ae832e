// SPDX-License-Identifier: MIT
// Results of a step: on the device, and copies of those that the caller wants in pinned host memory.
#pragma once

#include <cuda_runtime.h>

#include <span>

#include "gpu/engine/buffer_list.h"
#include "gpu/engine/step_halo.h"
#include "gpu/engine/totals.h"
#include "gpu/neighbors/gpu_neighbor_list.h"
#include "gpu/runtime/device_buffer.h"
#include "potential/domain.h"
#include "potential/outputs.h"

namespace mlff::gpu {

// The energy is always computed; these are the other results.
struct Wanted {
    bool forces = false, virial = false, atom_energies = false, atom_virials = false, descriptors = false;
    bool spread = false, deviations = false;  // of a committee; forces are then wanted too
    bool trust = false;  // what the trust meter says; the engine measures it, and models never see this

    bool gradients() const { return forces || virials(); }
    bool virials() const { return virial || atom_virials; }
    bool covers(const Wanted& other) const {
        return forces >= other.forces && virial >= other.virial && atom_energies >= other.atom_energies &&
               atom_virials >= other.atom_virials && descriptors >= other.descriptors && spread >= other.spread &&
               deviations >= other.deviations && trust >= other.trust;
    }
    // What the model is asked for: the trust meter reads descriptors.
    Wanted of_model() const {
        Wanted wanted = *this;
        wanted.descriptors |= trust;
        wanted.trust = false;
        return wanted;
    }
    bool operator==(const Wanted&) const = default;
};
Wanted wanted_of(std::span<const Outputs> outputs);

struct StepSize {
    int64_t atoms = 0, edges = 0, systems = 1;
    Wanted wanted;
    bool to_host = true;          // copy all results to the host, not only totals
    bool has_host_edges = false;  // the host has found the edges
    HaloSize halo;

    bool covers(const StepSize& other) const {
        return atoms >= other.atoms && edges >= other.edges && systems >= other.systems &&
               wanted.covers(other.wanted) && to_host >= other.to_host && has_host_edges >= other.has_host_edges &&
               halo.covers(other.halo);
    }
};

class StepResults {
public:
    StepResults(int descriptor_count, int deviation_count)
        : descriptor_count_(descriptor_count), deviation_count_(deviation_count) {}

    void list_buffers(BufferList& list, const StepSize& size);
    // For pinned memory, which moves when it grows.
    bool is_host_reserved(const StepSize& size);
    void reserve_host(const StepSize& size);

    // A step fills these.
    DeviceBuffer<double> energies, forces, virials, descriptors, partial, totals;
    DeviceBuffer<double> sigma_energies, sigma_forces;         // the spread of a committee: [system], [atom]
    DeviceBuffer<double> energy_deviations, force_deviations;  // of a domain, as in Outputs
    DeviceBuffer<double> expected_errors, novelties;           // what the trust meter says: [atom]
    DeviceBuffer<int> short_edges;
    // Sums over systems, and copies to the host what `size` wants. `report` says whether the step is valid; nullptr if
    // it is not needed.
    void sum_and_download(const AtomResults& atoms, const StepSize& size, const GpuNeighborReport* report,
                          cudaStream_t stream);

    // Call these after the stream has finished.
    bool is_search_needed() const { return report_.data()->search_needed != 0; }
    int64_t edge_count() const { return report_.data()->edge_count; }
    bool has_short_edge() const { return *short_edge_.data() != 0; }
    void require_finite_totals() const;  // of one system; totals are always copied to the host. Throws Error{system}
    // Copies the results of one system on the device.
    void copy(int64_t atom_count, const DeviceOutputs& outputs, cudaStream_t stream) const;
    void write(std::span<const SystemView> systems, std::span<const Outputs> outputs) const;
    void write_domain(const Domain& domain, const Outputs& outputs) const;

private:
    // For the atoms from `first` on: energies and descriptors of `owned_count`, forces and virials of `count` atoms.
    void write(const double* total, int64_t first, int64_t owned_count, int64_t count, const Outputs& to) const;
    void write_spread(size_t system, int64_t first, int64_t count, const Outputs& to) const;
    void write_trust(int64_t first, int64_t count, const Outputs& to) const;

    // visit(buffer, number of items that it must hold)
    template <class Visit>
    void for_each_host_buffer(const StepSize& size, const Visit& visit);

    int64_t descriptor_count_, deviation_count_;
    PinnedBuffer<GpuNeighborReport> report_;
    PinnedBuffer<int> short_edge_;
    PinnedBuffer<double> host_totals_, host_energies_, host_forces_, host_virials_, host_descriptors_,
        host_sigma_energies_, host_sigma_forces_, host_energy_deviations_, host_force_deviations_,
        host_expected_errors_, host_novelties_;
};

}  // namespace mlff::gpu
