// SPDX-License-Identifier: MIT
#include "engine/session.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/elements.h"
#include "core/error.h"
#include "core/stage_profile.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/host_facts.h"
#include "neighbors/batch_edges.h"
#include "neighbors/batch_search.h"
#include "neighbors/lattice.h"
#include "neighbors/listed_edges.h"
#include "potential/batch_evaluation.h"
#include "potential/device_evaluation.h"
#include "potential/domain_check.h"
#include "potential/ghost_rows.h"
#include "trust/measure.h"

namespace mlff {
namespace {

struct DeviceChoice {
    Device device;
    std::string reason;
    std::string name = device.name();
};

DeviceChoice choose_device(const Model& model, const SessionOptions& options) {
    const bool is_auto = options.device == "auto";
    const std::optional<Device> wanted = parse_device(options.device);
    if (!is_auto && !wanted)
        fail(Status::argument, "device '", options.device,
             "' is none of auto, cpu, reference, cuda, cuda:0, cuda:1, ...");
    if (wanted && !wanted->is_gpu()) return {*wanted, "asked for"};
    constexpr Device kCpu = {Device::Kind::cpu};
    if (is_auto && options.exact_radial) return {kCpu, "exact radial functions are asked for"};
    const UsableGpus gpus = model.usable_gpus();
    if (is_auto && gpus.count == 0) return {kCpu, gpus.why_none};
    if (is_auto && !model.runs_on_gpu()) return {kCpu, "this model has no CUDA engine"};
    if (is_auto) return {{Device::Kind::gpu, 0}, "a GPU is there"};
    if (gpus.count == 0) fail(Status::device, "device '", options.device, "' cannot be used: ", gpus.why_none);
    if (static_cast<size_t>(wanted->index) >= gpus.count)
        fail(Status::device, "device '", options.device, "' does not exist: there are ", gpus.count, " GPUs");
    if (!model.runs_on_gpu()) fail(Status::unsupported, "device '", options.device, "': this model has no CUDA engine");
    return {*wanted, "asked for"};
}

int choose_head(const ModelSummary& summary, const std::string& wanted) {
    std::string list;
    for (const std::string& head : summary.heads) list += (list.empty() ? "'" : ", '") + head + "'";
    const bool is_fixed = summary.fixed_head >= 0 && static_cast<size_t>(summary.fixed_head) < summary.heads.size();
    if (is_fixed && (wanted.empty() || wanted == summary.heads[static_cast<size_t>(summary.fixed_head)]))
        return summary.fixed_head;
    if (is_fixed)
        fail(Status::argument, "the file works with head '", summary.heads[static_cast<size_t>(summary.fixed_head)],
             "' only, not '", wanted, "'");
    if (wanted.empty()) {
        if (summary.heads.size() > 1) fail(Status::argument, "the model has several heads, choose one of ", list);
        return 0;
    }
    const auto found = std::find(summary.heads.begin(), summary.heads.end(), wanted);
    if (found == summary.heads.end()) fail(Status::argument, "the model has no head '", wanted, "', only ", list);
    return static_cast<int>(found - summary.heads.begin());
}

// nullptr if the model has none, or if it knows the errors of another head.
std::shared_ptr<const TrustMeter> meter_of(const Model& model, int head) {
    const auto& meter = model.trust_meter();
    const bool is_usable =
        meter && (meter->head.empty() || meter->head == model.summary().heads[static_cast<size_t>(head)]);
    return is_usable ? meter : nullptr;
}

// What cannot be switched off here is refused: a measurement would show no gain where there is nothing to gain from.
void check_optimizations(const ModelSummary& summary, const Device& device, const Optimizations& optimizations) {
    if (!optimizations.neighbor_grid && !(summary.cutoff > 0))
        fail(Status::unsupported, "neighbors=brute: this model finds its neighbours itself");
    if (device.is_gpu()) return;
    if (!optimizations.graphs)
        fail(Status::unsupported, "graph=off: only a GPU has graphs, not device ", device.name());
    if (!optimizations.fused_messages)
        fail(Status::unsupported, "fused=off: only for a GPU, not for device ", device.name(),
             "; device=reference has the plain loops of the CPU");
}

NeighborOptions neighbor_options(const ModelSummary& summary, double skin, bool want_reverse, bool is_brute_force) {
    static const int64_t memory_bytes = whole_memory() / 2;  // a model has numbers of its own for every edge
    NeighborOptions options;
    // Without a cutoff the model finds its neighbours itself, and this list stays empty: any cutoff will do.
    options.cutoff = summary.cutoff > 0 ? summary.cutoff : 1;
    options.skin = skin;
    options.want_shifts = false;
    options.want_reverse = want_reverse;
    options.is_brute_force = is_brute_force;
    options.memory_bytes = memory_bytes;
    return options;
}

// NaN if there is one; 0 of nothing.
double largest(std::span<const double> numbers) {
    double found = 0;
    for (const double number : numbers) {
        if (std::isnan(number)) return number;
        found = std::max(found, number);
    }
    return found;
}

// The system that an error is about.
struct Where {
    size_t system = 0, count = 1;

    Where after(size_t more) const { return {system + more, count}; }
    std::string text() const { return count > 1 ? concat("system ", system, ": ") : std::string(); }
};

void require_no_deviations(const Results& results, const Where& where) {
    if (results.has_deviations())
        fail(Status::argument, where.text(),
             "deviations were asked for, but only domains have them: ask for the spread itself");
}

}  // namespace

struct Session::State {
    State(std::shared_ptr<const Model> model_in, const SessionOptions& options)
        : model(std::move(model_in)),
          device(choose_device(*model, options)),
          head(choose_head(model->summary(), options.head)),
          meter(meter_of(*model, head)),
          precision(model->choose_precision(device.device, options.precision)),
          neighbor_skin(choose_skin(device.device, options)),
          evaluator(model->make_evaluator({device.device, precision, head, options.exact_radial, neighbor_skin,
                                           options.gpu_memory_limit_bytes, options.optimizations,
                                           options.measures_trust_on_gpu ? meter : nullptr})),
          trust_on_host(!device.device.is_gpu() || !options.measures_trust_on_gpu),
          team(options.thread_count),
          neighbors(neighbor_options(model->summary(), device.device.is_gpu() ? 0 : neighbor_skin,
                                     evaluator->batches() && evaluator->batches()->needs_reverse_edges(),
                                     !options.optimizations.neighbor_grid)),
          batch_search(neighbors.options()) {
        for (int z : model->summary().elements) {
            if (z < 1 || z > kMaxAtomicNumber)
                fail(Status::internal, "a model that knows element ", z);  // models check their elements when loaded
            is_known[static_cast<size_t>(z)] = true;
        }
    }

    const std::string& head_name() const { return model->summary().heads[static_cast<size_t>(head)]; }

    double choose_skin(const Device& on, const SessionOptions& options) const {
        check_optimizations(model->summary(), on, options.optimizations);
        return options.optimizations.neighbor_grid ? options.neighbor_skin.angstrom_on(on, options.is_trajectory) : 0;
    }

    std::shared_ptr<const Model> model;
    DeviceChoice device;
    int head;
    std::shared_ptr<const TrustMeter> meter;  // nullptr: none for this head
    Precision precision;
    double neighbor_skin;  // angstrom
    std::unique_ptr<Evaluator> evaluator;
    bool trust_on_host;
    ThreadTeam team;
    NeighborList neighbors;
    BatchEdges batch_edges;
    BatchSearch batch_search;
    ListedEdges listed;
    DomainCheck domain_check;
    // [system]. They are members so that a step allocates no memory.
    std::vector<std::array<double, 9>> virials;
    std::vector<std::vector<double>> force_sigmas;  // where only the largest was asked for
    std::vector<double> volumes;
    std::vector<Outputs> outputs;
    TrustMeasurement trust;
    std::vector<double> descriptors;  // for the trust meter
    GhostRows trust_rows;
    std::array<bool, kMaxAtomicNumber + 1> is_known{};
    int64_t evaluation_count = 0;

    void check(const SystemView& system, const Results& results, const Where& at) const {
        const std::string where = at.text();
        if (system.atom_count < 0) fail(Status::argument, where, "the atom count is ", system.atom_count);
        if (system.atom_count > 0 && (!system.positions || !system.atomic_numbers))
            fail(Status::argument, where, "positions or atomic_numbers are NULL");
        for (int64_t atom = 0; atom < system.atom_count; ++atom) {
            const int z = system.atomic_numbers[atom];
            if (z < 1 || z > kMaxAtomicNumber)
                fail(Status::system, where, "atom ", atom, " has atomic number ", z, ", which is no element");
            if (!is_known[static_cast<size_t>(z)])
                fail(Status::system, where, "atom ", atom, " is ", element_symbol(z),
                     ", which the model does not know; it knows ", symbols_text(model->summary().elements));
        }
        if (!std::isfinite(system.total_charge) || !std::isfinite(system.spin_multiplicity))
            fail(Status::system, where, "the total charge or the spin multiplicity is not finite");
        make_lattice(system);  // throws if the cell is unusable
        if (results.outputs.descriptors && model->summary().descriptor_count == 0)
            fail(Status::unsupported, where, "descriptors were asked for, but this model has none");
        if ((results.has_spread() || results.has_deviations()) && model->summary().member_count == 0)
            fail(Status::unsupported, where, "a spread was asked for, but this model is no committee");
        if (results.outputs.has_trust() && !meter)
            fail(Status::unsupported, where, "expected errors were asked for, but ",
                 model->trust_meter() ? concat("the trust meter of this model was fitted to head '",
                                               model->trust_meter()->head, "', not to '", head_name(), "'")
                                      : "this model has no trust meter; `mlff trust fit` makes one");
        if (results.stress && !system.is_periodic())
            fail(Status::system, where, "a stress was asked for, but the system is not periodic in any direction");
        model->warn_of_unused(system);
    }

    static void check_positions(const SystemView& system, const Where& where) {
        for (int64_t i = 0; i < 3 * system.atom_count; ++i)
            if (!std::isfinite(system.positions[i]))
                fail(Status::system, where.text(), "the position of atom ", i / 3, " is not finite");
    }

    void check_domain(const Domain& domain, const Outputs& wanted) {
        if (wanted.has_spread())
            fail(Status::unsupported,
                 "a spread was asked for, but a domain has only a share of each force: ask for deviations");
        if (domain.atoms.is_periodic())
            fail(Status::argument, "the atoms of a domain are periodic; expected images as atoms of their own");
        const RowTransport transport = domain.halo.transport;
        if ((transport == RowTransport::shared || transport == RowTransport::window) && !evaluator->halo_sharing())
            fail(Status::argument, "rows of atoms are to be shared on GPUs, but the session is on '", device.name, "'");
        if (wanted.expected_errors && transport == RowTransport::device && device.device.is_gpu())
            fail(Status::unsupported,
                 "expected errors were asked for, but they are computed on the host, and rows go from GPU to GPU: "
                 "exchange rows in another way");
        domain_check.check(domain);
        check(domain.atoms, {wanted}, {});
        check_positions(domain.atoms, {});
    }

    // Throws Error{system} that names the first number that is not finite. Only `owned_count` atoms have energies and
    // descriptors; all atoms, ghosts too, have forces.
    void check_results(const SystemView& system, int64_t owned_count, const Results& results,
                       const Where& where) const {
        const auto check = [&](const double* numbers, int64_t count, int64_t per_atom, const char* what) {
            for (int64_t i = 0; numbers && i < count * std::max<int64_t>(per_atom, 1); ++i)
                if (!std::isfinite(numbers[i]))
                    fail(Status::system, where.text(), what, per_atom > 0 ? std::to_string(i / per_atom) : "",
                         " is not finite: the model does not know such an arrangement of atoms");
        };
        const Outputs& found = results.outputs;
        check(found.energy, 1, 0, "the energy");
        check(found.forces, system.atom_count, 3, "the force on atom ");
        check(found.virial, 9, 0, "the virial");
        check(results.stress, 6, 0, "the stress");
        check(found.atom_energies, owned_count, 1, "the energy of atom ");
        check(found.atom_virials, system.atom_count, 9, "the virial of atom ");
        check(found.descriptors, owned_count, model->summary().descriptor_count, "a descriptor of atom ");
        check(found.expected_errors, owned_count, 1, "the expected error of atom ");
        check(found.novelties, owned_count, 1, "the novelty of atom ");
        check(found.sigma_energy_per_atom, 1, 0, "the spread of the energy");
        check(found.sigma_forces, owned_count, 1, "the spread of the force on atom ");
        check(results.sigma_max_force, 1, 0, "the spread of a force");
        const int64_t deviation_count = model->summary().member_count - 1;
        check(found.energy_deviations, deviation_count, 0, "a deviation of the energy");
        for (int64_t d = 0; found.force_deviations && d < deviation_count; ++d)
            check(found.force_deviations + 3 * d * system.atom_count, system.atom_count, 3,
                  "a deviation of the force on atom ");
    }

    // Refuses pairs at distance zero: they have no direction.
    const Edges& find_edges(const SystemView& system, const Where& where) {
        Stages stages(team.stage_log(0));
        stages.begin("neighbours");
        neighbors.update(system, team);
        check_distances(neighbors.edges(), where);
        return neighbors.edges();
    }
    static void check_distances(const Edges& edges, const Where& where) {
        for (int64_t atom = 0; atom < edges.atom_count; ++atom)
            for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge)
                if (edges.distance[edge] == 0)
                    fail(Status::system, where.text(), "atoms ", atom, " and ", edges.sender[edge],
                         " are at the same place");
    }

    // On the CPU one system after the other, each by all threads, as single systems are. A GPU waits for its edges, so
    // there every thread searches systems of its own.
    Edges find_batch_edges(std::span<const SystemView> systems, const Where& where) {
        if (device.device.is_gpu()) {
            Stages stages(team.stage_log(0));
            stages.begin("neighbours");
            const auto check = [&](size_t i, const Edges& edges) { check_distances(edges, where.after(i)); };
            batch_search.find(systems, check, team);
            return batch_search.edges();
        }
        batch_edges.clear();
        for (size_t i = 0; i < systems.size(); ++i) batch_edges.append(find_edges(systems[i], where.after(i)));
        return batch_edges.edges();
    }

    double* scratch_descriptors(int64_t atom_count) {
        descriptors.resize(static_cast<size_t>(atom_count * model->summary().descriptor_count));
        return descriptors.data();
    }

    // Of own atoms. Ghosts have no descriptors here: what their neighbours read of them comes from their owners.
    void measure_domain(const Domain& domain, const Edges& edges, const double* own_descriptors, const Outputs& to) {
        Stages stages(team.stage_log(0));
        stages.begin("trust");
        trust.score(*meter, domain.atoms.atomic_numbers, own_descriptors, domain.owned_count, domain.atoms.atom_count,
                    to.novelties, team);
        if (!to.expected_errors) return;
        const DomainRows errors = {trust.atom_errors(), sizeof(double)};
        trust_rows.fill(domain.halo, domain.owned_count, {&errors, 1});
        trust.write_expected_errors(*meter, edges, to.expected_errors, team);
    }

    // How many systems, beginning with the first, are evaluated as one batch. On the host, trust is measured system by
    // system.
    size_t batch_size(std::span<const SystemView> systems, std::span<const Results> results) const {
        const BatchEvaluation* batches = evaluator->batches();
        if (!batches) return 1;
        if (trust_on_host &&
            std::any_of(results.begin(), results.end(), [](const Results& each) { return each.outputs.has_trust(); }))
            return 1;
        size_t count = 1;
        int64_t atoms = systems[0].atom_count;
        while (count < systems.size() && (atoms += systems[count].atom_count) <= batches->most_batch_atoms() &&
               batches->can_batch(systems[0], systems[count]))
            ++count;
        return count;
    }

    // `where` belongs to the first of the systems.
    void evaluate(std::span<const SystemView> systems, std::span<const Results> results, Where where) {
        virials.resize(systems.size());
        force_sigmas.resize(std::max(force_sigmas.size(), systems.size()));
        volumes.assign(systems.size(), 0.0);
        outputs.clear();
        for (size_t i = 0; i < systems.size(); ++i) {
            outputs.push_back(results[i].outputs);
            if (results[i].sigma_max_force && !outputs[i].sigma_forces) {
                force_sigmas[i].resize(static_cast<size_t>(systems[i].atom_count));
                outputs[i].sigma_forces = force_sigmas[i].data();
            }
            if (!results[i].stress) continue;
            if (!outputs[i].virial) outputs[i].virial = virials[i].data();
            volumes[i] = stress_volume(systems[i], model->summary().cutoff);
        }
        Stages stages(team.stage_log(0));
        if (systems.size() == 1) {
            const bool measures_trust = outputs[0].has_trust() && trust_on_host;
            const Edges edges = evaluator->needs_edges() || measures_trust ? find_edges(systems[0], where) : Edges{};
            stages.begin("model");
            if (measures_trust && !outputs[0].descriptors)
                outputs[0].descriptors = scratch_descriptors(systems[0].atom_count);
            Outputs of_evaluator = outputs[0];
            if (measures_trust) of_evaluator.expected_errors = of_evaluator.novelties = nullptr;
            evaluator->evaluate(systems[0], edges, of_evaluator, team);
            if (measures_trust) {
                stages.begin("trust");
                trust.measure(*meter, systems[0].atomic_numbers, outputs[0].descriptors, edges,
                              outputs[0].expected_errors, outputs[0].novelties, team);
            }
        } else {
            const bool needs_edges = evaluator->batches()->needs_batch_edges(systems);
            const Edges edges = needs_edges ? find_batch_edges(systems, where) : Edges{};
            stages.begin("model");
            evaluator->batches()->evaluate_batch(systems, edges, outputs, team);
        }
        stages.finish();
        for (size_t i = 0; i < systems.size(); ++i) {
            if (results[i].sigma_max_force) {
                const std::span sigmas(outputs[i].sigma_forces, static_cast<size_t>(systems[i].atom_count));
                *results[i].sigma_max_force = largest(sigmas);
            }
            if (!results[i].stress) continue;
            constexpr int kVoigt[6] = {0, 4, 8, 5, 2, 1};
            for (int k = 0; k < 6; ++k) results[i].stress[k] = -outputs[i].virial[kVoigt[k]] / volumes[i];
        }
        evaluation_count += static_cast<int64_t>(systems.size());
    }
};

Session::Session(std::shared_ptr<const Model> model, const SessionOptions& options) {
    if (!model->summary().why_not_runnable.empty())
        fail(Status::unsupported, "the model cannot be run: ", model->summary().why_not_runnable);
    if (options.thread_count < 0 || options.thread_count > 4096)
        fail(Status::argument, "thread count ", options.thread_count, ", expected 0 (all cores) to 4096");
    if (options.gpu_memory_limit_bytes < 0)
        fail(Status::argument, "the limit of GPU memory is ", options.gpu_memory_limit_bytes,
             " bytes, expected 0 (what is free) or more");
    state_ = std::make_unique<State>(std::move(model), options);
}

Session::~Session() = default;

void Session::evaluate(std::span<const SystemView> systems, std::span<const Results> results) {
    evaluate(systems, results, true);
}

void Session::evaluate_unchecked(std::span<const SystemView> systems, std::span<const Results> results) {
    evaluate(systems, results, false);
}

void Session::evaluate(std::span<const SystemView> systems, std::span<const Results> results, bool checks_results) {
    state_->team.require_threads();
    Stages whole(state_->team.stage_log(0)), stages(state_->team.stage_log(0));
    whole.begin("evaluation");
    stages.begin("checks of the input");
    for (size_t i = 0; i < systems.size(); ++i) {
        const Where where = {i, systems.size()};
        require_no_deviations(results[i], where);
        state_->check(systems[i], results[i], where);
        state_->check_positions(systems[i], where);
    }
    stages.finish();
    for (size_t first = 0; first < systems.size();) {
        const size_t count = state_->batch_size(systems.subspan(first), results.subspan(first));
        state_->evaluate(systems.subspan(first, count), results.subspan(first, count), {first, systems.size()});
        for (size_t i = first; checks_results && i < first + count; ++i)
            state_->check_results(systems[i], systems[i].atom_count, results[i], {i, systems.size()});
        first += count;
    }
}

void Session::evaluate_on_device(const SystemView& system, const Results& results, void* stream) {
    DeviceEvaluation* const on_device = state_->evaluator->device_pointers();
    if (!on_device)
        fail(Status::unsupported, "device pointers need a session on a GPU, and a native model; this one is on '",
             device_name(), "'");
    if (results.has_spread())
        fail(Status::unsupported, "a spread was asked for, but results in device memory have none: use host memory");
    require_no_deviations(results, {});
    if (results.outputs.has_trust() && state_->trust_on_host)
        fail(Status::unsupported, "expected errors were asked for, but results in device memory have none");
    state_->team.require_threads();
    state_->check(system, results, {});
    DeviceOutputs outputs = {results.outputs, results.stress};
    if (results.stress) {
        if (stress_volume_needs_positions(system))
            fail(Status::unsupported,
                 "a stress from device pointers needs three lattice vectors: give one for the open directions too");
        outputs.volume = stress_volume(system, state_->model->summary().cutoff);
    }
    on_device->evaluate_on_device(system, outputs, stream, state_->team);
    ++state_->evaluation_count;
}

void Session::evaluate_domain(const Domain& domain, const Outputs& outputs) {
    State& state = *state_;
    state.team.require_threads();
    DomainEvaluation* const domains = state.evaluator->domains();
    if (!domains)
        fail(Status::unsupported,
             "this model or backend does not evaluate parts of a system: native models on devices "
             "'cpu' and 'cuda' do");
    state.check_domain(domain, outputs);
    const ListedNeighbors candidates = {domain.owned_count, domain.first, domain.neighbors};
    Outputs of_evaluator = outputs;
    of_evaluator.expected_errors = of_evaluator.novelties = nullptr;
    if (outputs.has_trust() && !of_evaluator.descriptors)
        of_evaluator.descriptors = state.scratch_descriptors(domain.owned_count);
    const Edges edges = state.evaluator->needs_edges() || outputs.expected_errors
                            ? state.listed.select(domain.atoms.atom_count, domain.atoms.positions, candidates,
                                                  state.model->summary().cutoff, state.team)
                            : Edges{};
    domains->evaluate_domain(domain, edges, of_evaluator, state.team);
    if (outputs.has_trust()) state.measure_domain(domain, edges, of_evaluator.descriptors, outputs);
    state.check_results(domain.atoms, domain.owned_count, {outputs}, {});
    ++state.evaluation_count;
}

HaloSharing& Session::halo_sharing() {
    HaloSharing* const sharing = state_->evaluator->halo_sharing();
    if (!sharing) fail(Status::unsupported, "only sessions on a GPU share features of atoms");
    return *sharing;
}

DeviceStepper* Session::device_stepper() { return state_->evaluator->device_stepper(); }
ThreadTeam& Session::team() { return state_->team; }

MemoryForecasts* Session::memory_forecasts() { return state_->evaluator->memory_forecasts(); }

const Model& Session::model() const { return *state_->model; }
const Device& Session::device() const { return state_->device.device; }
const std::string& Session::device_name() const { return state_->device.name; }
const std::string& Session::device_reason() const { return state_->device.reason; }
Precision Session::precision() const { return state_->precision; }
const std::string& Session::head() const { return state_->head_name(); }
const TrustMeter* Session::trust_meter() const { return state_->meter.get(); }
int Session::thread_count() const { return state_->team.size(); }
int64_t Session::most_batch_atoms() const {
    const BatchEvaluation* const batches = state_->evaluator->batches();
    return batches ? batches->most_batch_atoms() : 0;
}
int64_t Session::evaluation_count() const { return state_->evaluation_count; }
int64_t Session::neighbor_build_count() const {
    return state_->neighbors.build_count() + state_->evaluator->neighbor_build_count();
}

}  // namespace mlff
