// SPDX-License-Identifier: MIT
#include "tools/plan/plan.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/threads.h"
#include "cpu_kernels/kernel_table.h"
#include "gpu/engine/memory_need.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/host_facts.h"
#include "neighbors/neighbor_list.h"

namespace mlff::plan {
namespace {

constexpr int64_t kMostAtoms = int64_t{1} << 31;  // indices of atoms have 32 bits

}  // namespace

CalibrationKey key_of(const Session& session, const std::string& model_id, bool exact_radial) {
    utsname system{};
    uname(&system);
    CalibrationKey key;
    key.processor = read_host_facts().processor_id;
    key.architecture = system.machine;
    key.instructions = kernels::choose_kernels<float>().name;
    key.cores = available_cores();
    key.model = model_id;
    key.device = session.device().is_gpu() ? "cuda" : session.device_name();
    key.precision = precision_name(session.precision());
    key.threads = session.thread_count();
    key.exact_radial = exact_radial;
    if (!session.device().is_gpu()) return key;
    for (const Gpu& gpu : gpu_inventory().gpus)
        if (gpu.ordinal == gpu_ordinal(session.device())) key.gpu = gpu.name;
    return key;
}

int64_t count_edges(const SystemView& system, double radius, ThreadTeam& team) {
    NeighborOptions options;
    options.cutoff = radius;
    options.half = true;
    options.want_shifts = options.want_vectors = options.want_distances = false;
    NeighborList list(options);
    list.update(system, team);
    return 2 * list.edges().edge_count;
}

MemoryPlan plan_memory(const Calibration& calibration, const Load& load, double available_bytes) {
    const double edges_per_atom =
        load.atoms > 0 ? static_cast<double>(load.edges) / static_cast<double>(load.atoms) : 0;
    const LinearCost& cost = calibration.memory.linear;
    const double process = calibration.key.gpu.empty() ? calibration.process_bytes : 0,
                 per_atom = cost.per_atom + edges_per_atom * cost.per_edge;
    MemoryPlan plan = {process + calibration.memory.of(load), available_bytes};
    const double left = available_bytes - process - cost.fixed;
    if (left > 0 && available_bytes >= process + calibration.memory.floor)
        plan.largest_atoms = per_atom > 0
                                 ? static_cast<int64_t>(std::min(left / per_atom, static_cast<double>(kMostAtoms)))
                                 : kMostAtoms;
    return plan;
}

MemoryPlan plan_memory(const std::function<double(int64_t)>& bytes_of, int64_t atoms, double available_bytes) {
    MemoryPlan plan = {bytes_of(atoms), available_bytes};
    int64_t fits = 0, does_not = 1;
    while (does_not < kMostAtoms && bytes_of(does_not) <= available_bytes) fits = does_not, does_not *= 2;
    while (does_not - fits > 1) {
        const int64_t middle = fits + (does_not - fits) / 2;
        (bytes_of(middle) <= available_bytes ? fits : does_not) = middle;
    }
    plan.largest_atoms = fits;
    return plan;
}

GpuMemory plan_gpu_memory(Session& session, const SystemView& system, int64_t used_before_session,
                          int64_t limit_bytes) {
    std::vector<int> elements;  // and one atom of each, far apart
    std::vector<double> positions;
    MemoryForecasts& forecasts = *session.memory_forecasts();
    const double distance = 4 * forecasts.forecast_radius();
    for (int64_t atom = 0; atom < system.atom_count; ++atom) {
        if (std::find(elements.begin(), elements.end(), system.atomic_numbers[atom]) != elements.end()) continue;
        positions.insert(positions.end(), {distance * static_cast<double>(elements.size()), 0, 0});
        elements.push_back(system.atomic_numbers[atom]);
    }
    SystemView atoms;
    atoms.atom_count = static_cast<int64_t>(elements.size());
    atoms.atomic_numbers = elements.data();
    atoms.positions = positions.data();
    atoms.total_charge = system.total_charge;
    atoms.spin_multiplicity = system.spin_multiplicity;
    double energy = 0;
    std::vector<double> forces(positions.size());
    Results results;
    results.outputs.energy = &energy;
    results.outputs.forces = forces.data();
    session.evaluate({&atoms, 1}, {&results, 1});

    const int ordinal = gpu_ordinal(session.device());
    const int64_t used = gpu_used_bytes(ordinal);
    int64_t total = 0;
    for (const Gpu& gpu : gpu_inventory().gpus)
        if (gpu.ordinal == ordinal) total = gpu.memory_bytes;
    GpuMemory memory;
    memory.edges = count_edges(system, forecasts.forecast_radius(), session.team());
    const double edges_per_atom =
        system.atom_count > 0 ? static_cast<double>(memory.edges) / static_cast<double>(system.atom_count) : 0;
    const auto held = static_cast<double>(std::max<int64_t>(0, used - used_before_session));
    const auto bytes_of = [&](int64_t atom_count) {
        return held +
               static_cast<double>(
                   forecasts.forecast_memory(atom_count, std::llround(edges_per_atom * static_cast<double>(atom_count)))
                       .least);
    };
    int64_t there = gpu::usable_bytes(std::max<int64_t>(0, total - used));
    if (limit_bytes > 0) there = std::min(there, limit_bytes);
    memory.plan = plan_memory(bytes_of, system.atom_count, held + static_cast<double>(there));
    memory.usual_bytes = held + static_cast<double>(forecasts.forecast_memory(system.atom_count, memory.edges).usual);
    return memory;
}

TimePlan plan_time(const Calibration& calibration, const Load& load) {
    return {calibration.evaluation.of(load), calibration.step.of(load)};
}

}  // namespace mlff::plan
