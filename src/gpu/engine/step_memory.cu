// SPDX-License-Identifier: MIT
#include "gpu/engine/step_memory.h"

#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

// Allocate this many times what is needed, for systems that grow a little.
constexpr double kSpare = 1.125;

}  // namespace

BufferList StepMemory::listed(const std::vector<ListBuffers>& users, const StepSize& size) {
    BufferList list;
    for (const ListBuffers& add : users) add(list, size);
    return list;
}

void StepMemory::admit(const StepSize& size, const GpuNeighborMemory& neighbors, int64_t new_bytes) {
    BufferList step = listed(step_buffers_, size);
    const BufferList atoms = listed(atom_buffers_, size);
    const bool is_there =
        step.is_reserved() && atoms.is_reserved() && neighbors.needed_bytes == neighbors.held_bytes && new_bytes == 0;
    if (is_there) return;
    const int64_t others = atoms.bytes_afterwards() + neighbors.needed_bytes + beside_bytes_ + new_bytes;
    const MemoryThere there =
        memory_there(step.held_bytes() + atoms.held_bytes() + neighbors.held_bytes + beside_bytes_);
    check_memory({size.atoms, size.edges, step.needed_bytes() + others}, there);
    if (step.bytes_afterwards() + others <= there.bytes) return;
    has_moved_();  // it fits if the buffers of earlier steps, which had other sizes, are released first
    reserved_.reset();
    step.release();
}

void StepMemory::admit_beside(int64_t bytes, int64_t neighbor_bytes) {
    admit(reserved_.value_or(StepSize{}), {neighbor_bytes, neighbor_bytes}, bytes);
    beside_bytes_ += bytes;
}

MemoryThere StepMemory::memory_there(int64_t held_bytes) const {
    size_t free_bytes = 0, total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory");
    const int64_t there = usable_bytes(static_cast<int64_t>(free_bytes)) + held_bytes;
    if (limit_bytes_ > 0 && limit_bytes_ < there) return {limit_bytes_, true};
    return {there, false};
}

int64_t StepMemory::budget() const {
    if (limit_bytes_ > 0) return limit_bytes_;
    size_t free_bytes = 0, total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for memory");
    return static_cast<int64_t>(total_bytes / 2);
}

void StepMemory::reserve_atoms(const StepSize& size) {
    BufferList list = listed(atom_buffers_, size);
    if (!list.is_reserved()) has_moved_();
    list.reserve(kSpare);
}

void StepMemory::reserve_step(const StepSize& size, int64_t neighbor_bytes, StepResults& results) {
    if (reserved_ && reserved_->covers(size)) return;
    admit(size, {neighbor_bytes, neighbor_bytes});
    reserved_.reset();
    BufferList list = listed(step_buffers_, size);
    if (!list.is_reserved()) {
        has_moved_();
        const int64_t others = neighbor_bytes + beside_bytes_;
        const bool has_room = static_cast<double>(list.needed_bytes()) * kSpare + static_cast<double>(others) <=
                              static_cast<double>(memory_there(list.held_bytes() + others).bytes);
        list.reserve(has_room ? kSpare : 1.0);
    }
    if (!results.is_host_reserved(size)) has_moved_();  // before reserve_host(), which may fail half-way
    results.reserve_host(size);
    reserved_ = size;
}

MemoryForecast StepMemory::forecast(const StepSize& size, int64_t neighbor_bytes) const {
    const BufferList step = listed(step_buffers_, size), atoms = listed(atom_buffers_, size);
    const auto with_spare = [](const BufferList& list) {
        return static_cast<int64_t>(static_cast<double>(list.needed_bytes()) * kSpare);
    };
    const int64_t others = with_spare(atoms) + neighbor_bytes;  // already allocated when a step is admitted
    return {step.needed_bytes() + others, with_spare(step) + others};
}

}  // namespace mlff::gpu
