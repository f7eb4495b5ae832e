// SPDX-License-Identifier: MIT
#include "gpu/engine/step_results.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "gpu/engine/chunk_sum.cuh"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

// Up to this size, one kernel that writes to the host's memory takes less time than a copy of each array.
constexpr int64_t kMostWordsByKernel = 8192;  // of 8 bytes
constexpr int kCopyThreads = 256;

struct CopiedArray {
    const uint64_t* from = nullptr;
    uint64_t* to = nullptr;
    int64_t count = 0;
};
struct CopiedArrays {
    CopiedArray arrays[12];
    int count = 0;
    const int* flag = nullptr;
    int* flag_to = nullptr;

    template <class T>
    void add(const T* from, T* to, int64_t item_count) {
        static_assert(sizeof(T) % sizeof(uint64_t) == 0);
        if (from && item_count > 0)
            arrays[count++] = {reinterpret_cast<const uint64_t*>(from), reinterpret_cast<uint64_t*>(to),
                               item_count * static_cast<int64_t>(sizeof(T) / sizeof(uint64_t))};
    }
    int64_t word_count() const {
        int64_t sum = 0;
        for (int i = 0; i < count; ++i) sum += arrays[i].count;
        return sum;
    }
};

__device__ __forceinline__ void copy_arrays(const CopiedArrays& copied, int64_t thread, int64_t thread_count) {
    if (thread == 0) *copied.flag_to = *copied.flag;
    for (int i = 0; i < copied.count; ++i)
        for (int64_t word = thread; word < copied.arrays[i].count; word += thread_count)
            copied.arrays[i].to[word] = copied.arrays[i].from[word];
}

__global__ void __launch_bounds__(kCopyThreads) copy_arrays_kernel(const __grid_constant__ CopiedArrays copied) {
    mlff::gpu::await_predecessor();
    copy_arrays(copied, blockIdx.x * int64_t{kCopyThreads} + threadIdx.x, int64_t{gridDim.x} * kCopyThreads);
}

// For one system of one chunk. Launch: one block, one warp for each column of the totals.
__global__ void __launch_bounds__(32 * kTotalCount)
    sum_and_copy_kernel(AtomResults atoms, double* totals, const __grid_constant__ CopiedArrays copied) {
    mlff::gpu::await_predecessor();
    const int column = static_cast<int>(threadIdx.x / 32);
    const double sum = sum_chunk(atoms, atoms.systems.chunks[0], column);
    if (threadIdx.x % 32 == 0) totals[column] = sum;
    __syncthreads();
    copy_arrays(copied, threadIdx.x, 32 * kTotalCount);
}

}  // namespace

Wanted wanted_of(std::span<const Outputs> outputs) {
    Wanted wanted;
    for (const Outputs& each : outputs) {
        wanted.forces |= each.forces != nullptr;
        wanted.virial |= each.virial != nullptr;
        wanted.atom_energies |= each.atom_energies != nullptr;
        wanted.atom_virials |= each.atom_virials != nullptr;
        wanted.descriptors |= each.descriptors != nullptr;
        wanted.spread |= each.has_spread();
        wanted.deviations |= each.has_deviations();
        wanted.forces |= each.has_spread() || each.has_deviations();
        wanted.trust |= each.has_trust();
    }
    return wanted;
}

void StepResults::list_buffers(BufferList& list, const StepSize& size) {
    constexpr const char* kPurpose = "the results";
    list.add(energies, size.atoms, kPurpose);
    list.add(partial, (size.atoms / kAtomsPerChunk + size.systems) * kTotalCount, kPurpose);
    list.add(totals, size.systems * kTotalCount, kPurpose);
    list.add(short_edges, 1, kPurpose);
    if (size.wanted.forces) list.add(forces, 3 * size.atoms, kPurpose);
    if (size.wanted.virials()) list.add(virials, 9 * size.atoms, kPurpose);
    if (size.wanted.spread) list.add(sigma_energies, size.systems, kPurpose);
    if (size.wanted.spread) list.add(sigma_forces, size.atoms, kPurpose);
    if (size.wanted.deviations) list.add(energy_deviations, deviation_count_, kPurpose);
    if (size.wanted.deviations) list.add(force_deviations, 3 * deviation_count_ * size.atoms, kPurpose);
    if (size.wanted.of_model().descriptors) list.add(descriptors, descriptor_count_ * size.atoms, kPurpose);
    if (size.wanted.trust) list.add(expected_errors, size.atoms, kPurpose);
    if (size.wanted.trust) list.add(novelties, size.atoms, kPurpose);
}

template <class Visit>
void StepResults::for_each_host_buffer(const StepSize& size, const Visit& visit) {
    visit(report_, 1);
    visit(short_edge_, 1);
    visit(host_totals_, size.systems * kTotalCount);
    if (!size.to_host) return;
    if (size.wanted.atom_energies) visit(host_energies_, size.atoms);
    if (size.wanted.forces) visit(host_forces_, 3 * size.atoms);
    if (size.wanted.atom_virials) visit(host_virials_, 9 * size.atoms);
    if (size.wanted.descriptors) visit(host_descriptors_, descriptor_count_ * size.atoms);
    if (size.wanted.spread) visit(host_sigma_energies_, size.systems);
    if (size.wanted.spread) visit(host_sigma_forces_, size.atoms);
    if (size.wanted.deviations) visit(host_energy_deviations_, deviation_count_);
    if (size.wanted.deviations) visit(host_force_deviations_, 3 * deviation_count_ * size.atoms);
    if (size.wanted.trust) visit(host_expected_errors_, size.atoms);
    if (size.wanted.trust) visit(host_novelties_, size.atoms);
}

bool StepResults::is_host_reserved(const StepSize& size) {
    bool is_reserved = true;
    for_each_host_buffer(size, [&](const auto& buffer, int64_t count) { is_reserved &= count <= buffer.capacity(); });
    return is_reserved;
}

void StepResults::reserve_host(const StepSize& size) {
    for_each_host_buffer(size, [](auto& buffer, int64_t count) { buffer.resize_discard(count); });
}

void StepResults::sum_and_download(const AtomResults& atoms, const StepSize& size, const GpuNeighborReport* report,
                                   cudaStream_t stream) {
    CopiedArrays copied;
    copied.flag = short_edges.data();
    copied.flag_to = short_edge_.data();
    copied.add(report, report_.data(), 1);
    copied.add<double>(totals.data(), host_totals_.data(), size.systems * kTotalCount);
    if (size.to_host) {
        const Wanted& wanted = size.wanted;
        if (wanted.atom_energies) copied.add<double>(energies.data(), host_energies_.data(), size.atoms);
        if (wanted.forces) copied.add<double>(forces.data(), host_forces_.data(), 3 * size.atoms);
        if (wanted.atom_virials) copied.add<double>(virials.data(), host_virials_.data(), 9 * size.atoms);
        if (wanted.descriptors)
            copied.add<double>(descriptors.data(), host_descriptors_.data(), descriptor_count_ * size.atoms);
        if (wanted.spread) copied.add<double>(sigma_energies.data(), host_sigma_energies_.data(), size.systems);
        if (wanted.spread) copied.add<double>(sigma_forces.data(), host_sigma_forces_.data(), size.atoms);
        if (wanted.deviations)
            copied.add<double>(energy_deviations.data(), host_energy_deviations_.data(), deviation_count_);
        if (wanted.deviations)
            copied.add<double>(force_deviations.data(), host_force_deviations_.data(),
                               3 * deviation_count_ * size.atoms);
        if (wanted.trust) copied.add<double>(expected_errors.data(), host_expected_errors_.data(), size.atoms);
        if (wanted.trust) copied.add<double>(novelties.data(), host_novelties_.data(), size.atoms);
    }
    const int64_t words = copied.word_count();
    if (atoms.systems.system_count == 1 && atoms.systems.chunk_count == 1 && words <= kMostWordsByKernel) {
        launch("sums and results", sum_and_copy_kernel, 1, 32 * kTotalCount, stream, atoms, totals.data(), copied);
        return;
    }
    sum_over_systems(atoms, partial.data(), totals.data(), stream);
    if (words <= kMostWordsByKernel) {
        launch("copying results", copy_arrays_kernel, (words + kCopyThreads - 1) / kCopyThreads, kCopyThreads, stream,
               copied);
        return;
    }
    short_edges.download(short_edge_.data(), 1, stream);
    for (int i = 0; i < copied.count; ++i)
        check(cudaMemcpyAsync(copied.arrays[i].to, copied.arrays[i].from,
                              static_cast<size_t>(copied.arrays[i].count) * sizeof(uint64_t), cudaMemcpyDeviceToHost,
                              stream),
              "copying a result");
}

void StepResults::require_finite_totals() const {
    for (int i = 0; i < kTotalCount; ++i)
        if (!std::isfinite(host_totals_.data()[i]))
            fail(Status::system, i == 0 ? "the energy" : "the virial",
                 " is not finite: the model does not know such an arrangement of atoms");
}

void StepResults::copy(int64_t atom_count, const DeviceOutputs& outputs, cudaStream_t stream) const {
    const auto copy_to = [&](double* to, const double* from, int64_t count) {
        if (to && count > 0)
            check(cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(double), cudaMemcpyDeviceToDevice,
                                  stream),
                  "copying a result");
    };
    const Outputs& to = outputs.outputs;
    copy_to(to.energy, totals.data(), 1);
    copy_to(to.virial, totals.data() + 1, 9);
    copy_to(to.atom_energies, energies.data(), atom_count);
    copy_to(to.forces, forces.data(), 3 * atom_count);
    copy_to(to.atom_virials, virials.data(), 9 * atom_count);
    copy_to(to.descriptors, descriptors.data(), descriptor_count_ * atom_count);
    copy_to(to.expected_errors, expected_errors.data(), atom_count);
    copy_to(to.novelties, novelties.data(), atom_count);
    if (outputs.stress) write_stress(totals.data() + 1, outputs.volume, outputs.stress, stream);
}

void StepResults::write(std::span<const SystemView> systems, std::span<const Outputs> outputs) const {
    int64_t first = 0;
    for (size_t s = 0; s < systems.size(); ++s) {
        const int64_t count = systems[s].atom_count;
        write(host_totals_.data() + s * kTotalCount, first, count, count, outputs[s]);
        write_spread(s, first, count, outputs[s]);
        write_trust(first, count, outputs[s]);
        first += count;
    }
}

void StepResults::write_spread(size_t system, int64_t first, int64_t count, const Outputs& to) const {
    if (to.sigma_energy_per_atom) *to.sigma_energy_per_atom = host_sigma_energies_.data()[system];
    if (to.sigma_forces) std::copy_n(host_sigma_forces_.data() + first, count, to.sigma_forces);
}

void StepResults::write_trust(int64_t first, int64_t count, const Outputs& to) const {
    if (to.expected_errors) std::copy_n(host_expected_errors_.data() + first, count, to.expected_errors);
    if (to.novelties) std::copy_n(host_novelties_.data() + first, count, to.novelties);
}

void StepResults::write_domain(const Domain& domain, const Outputs& outputs) const {
    write(host_totals_.data(), 0, domain.owned_count, domain.atoms.atom_count, outputs);
    if (outputs.energy_deviations)
        std::copy_n(host_energy_deviations_.data(), deviation_count_, outputs.energy_deviations);
    if (outputs.force_deviations)
        std::copy_n(host_force_deviations_.data(), 3 * deviation_count_ * domain.atoms.atom_count,
                    outputs.force_deviations);
}

void StepResults::write(const double* total, int64_t first, int64_t owned_count, int64_t count,
                        const Outputs& to) const {
    if (to.energy) *to.energy = total[0];
    if (to.virial) std::copy_n(total + 1, 9, to.virial);
    if (to.atom_energies) std::copy_n(host_energies_.data() + first, owned_count, to.atom_energies);
    if (to.forces) std::copy_n(host_forces_.data() + 3 * first, 3 * count, to.forces);
    if (to.atom_virials) std::copy_n(host_virials_.data() + 9 * first, 9 * count, to.atom_virials);
    if (to.descriptors)
        std::copy_n(host_descriptors_.data() + descriptor_count_ * first, descriptor_count_ * owned_count,
                    to.descriptors);
}

}  // namespace mlff::gpu
