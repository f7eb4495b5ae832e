// SPDX-License-Identifier: MIT
// A system cut into domains, each on a thread of its own, gives what it gives whole: as an engine with several
// processes sees it.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <thread>

#include "../tags.h"
#include "close.h"
#include "committee/model.h"
#include "engine/session.h"
#include "model_files.h"
#include "neighbors/listed_edges.h"
#include "test_gpu_support.h"
#include "test_mace_backends.h"
#include "test_painn_support.h"
#include "trust_meters.h"

#ifdef MLFF_HAS_CUDA
#include <cuda_runtime.h>
#endif

namespace {

using namespace mlff;
using mace_test::Result;
using mace_test::System;

// One domain: its atoms, then ghosts, each the copy of an atom of some domain.
struct Part {
    std::vector<int64_t> atoms;                     // [own atom], of the whole system
    std::vector<std::pair<size_t, size_t>> ghosts;  // [ghost]: domain and place in its atoms
    std::vector<int64_t> whole;                     // [atom]: which of the whole system it is or copies
    std::vector<Vec3> shifts;                       // [atom]: from there to here
    std::vector<int32_t> numbers;
    std::vector<double> positions;
    std::vector<int64_t> first = {0};
    std::vector<int32_t> neighbors;
    // The halo: rows for domain 0, those for domain 1, ...; rows from the last domain, from the one before it, ...
    std::vector<int32_t> sent, source;
    std::vector<size_t> sent_begins, received_begins;  // [domain]
    size_t received_count = 0;
};

// Who sends what to whom; an atom that has several ghosts in a domain comes there once.
void plan_halos(std::vector<Part>& parts) {
    for (Part& part : parts) part.sent_begins.resize(parts.size());
    for (size_t receiver = 0; receiver < parts.size(); ++receiver) {
        Part& part = parts[receiver];
        part.source.resize(part.ghosts.size());
        part.received_begins.resize(parts.size());
        for (size_t owner = parts.size(); owner-- > 0;) {
            part.received_begins[owner] = part.received_count;
            parts[owner].sent_begins[receiver] = parts[owner].sent.size();
            std::map<size_t, size_t> row_of;
            for (size_t ghost = 0; ghost < part.ghosts.size(); ++ghost) {
                const auto [domain, place] = part.ghosts[ghost];
                if (domain != owner) continue;
                if (owner == receiver) {
                    part.source[ghost] = -1 - static_cast<int32_t>(place);
                    continue;
                }
                const auto [found, is_new] = row_of.insert({place, part.received_count});
                if (is_new) {
                    parts[owner].sent.push_back(static_cast<int32_t>(place));
                    ++part.received_count;
                }
                part.source[ghost] = static_cast<int32_t>(found->second);
            }
        }
    }
}

// Numbers and positions of the domain's atoms, from those of a whole system.
void place_atoms(Part& part, const System& system) {
    part.numbers.clear();
    part.positions.clear();
    for (size_t i = 0; i < part.whole.size(); ++i) {
        const auto atom = static_cast<size_t>(part.whole[i]);
        part.numbers.push_back(system.numbers[atom]);
        for (size_t k = 0; k < 3; ++k) part.positions.push_back(system.positions[3 * atom + k] + part.shifts[i][k]);
    }
}

// `domain_of` [atom]. Candidates beyond the cutoff are in the lists too.
std::vector<Part> cut(const System& system, const std::vector<size_t>& domain_of, size_t domain_count, double cutoff) {
    NeighborOptions options;
    options.cutoff = cutoff + 0.4;
    const BruteForceEdges edges = brute_force_neighbors(system.view(), options);
    std::vector<Part> parts(domain_count);
    std::vector<size_t> place(domain_of.size());
    for (size_t atom = 0; atom < domain_of.size(); ++atom) {
        Part& part = parts[domain_of[atom]];
        place[atom] = part.atoms.size();
        part.atoms.push_back(static_cast<int64_t>(atom));
        part.whole.push_back(static_cast<int64_t>(atom));
        part.shifts.push_back({});
    }
    for (size_t domain = 0; domain < domain_count; ++domain) {
        Part& part = parts[domain];
        std::map<std::array<int32_t, 4>, int32_t> ghost_of;
        for (const int64_t atom : part.atoms) {
            for (auto edge = static_cast<size_t>(edges.first[static_cast<size_t>(atom)]);
                 edge < static_cast<size_t>(edges.first[static_cast<size_t>(atom) + 1]); ++edge) {
                const auto sender = static_cast<size_t>(edges.sender[edge]);
                const int32_t* s = &edges.shift[3 * edge];
                if (domain_of[sender] == domain && s[0] == 0 && s[1] == 0 && s[2] == 0) {
                    part.neighbors.push_back(static_cast<int32_t>(place[sender]));
                    continue;
                }
                const auto [found, is_new] = ghost_of.insert(
                    {{static_cast<int32_t>(sender), s[0], s[1], s[2]}, static_cast<int32_t>(part.whole.size())});
                if (is_new) {
                    part.ghosts.emplace_back(domain_of[sender], place[sender]);
                    part.whole.push_back(static_cast<int64_t>(sender));
                    part.shifts.push_back(shift_vector(system.cell, s[0], s[1], s[2]));
                }
                part.neighbors.push_back(found->second);
            }
            part.first.push_back(static_cast<int64_t>(part.neighbors.size()));
        }
        place_atoms(part, system);
    }
    plan_halos(parts);
    return parts;
}

// Brings rows from domain to domain, as MPI does: all domains meet before and after rows are copied.
class Meeting {
public:
    explicit Meeting(const std::vector<Part>& parts)
        : parts_(parts), offers_(parts.size()), barrier_(static_cast<std::ptrdiff_t>(parts.size())) {}

    // `is_back`: rows of ghosts go to those who own the atoms.
    void exchange(size_t domain, const void* sent, void* received, size_t row_bytes, bool is_back) {
        offers_[domain] = {static_cast<const char*>(sent), row_bytes};
        barrier_.arrive_and_wait();
        if (has_failed_) fail(Status::internal, "another domain failed");
        for (size_t other = parts_.size(); other-- > 0;) {
            if (offers_[other].row_bytes != row_bytes) fail(Status::internal, "rows of two domains differ in size");
            const Part &owner = parts_[is_back ? domain : other], &receiver = parts_[is_back ? other : domain];
            const size_t of_owner = is_back ? domain : other, of_receiver = is_back ? other : domain;
            const size_t end = of_owner == 0 ? receiver.received_count : receiver.received_begins[of_owner - 1];
            const size_t count = end - receiver.received_begins[of_owner];
            const size_t from_owner = owner.sent_begins[of_receiver], at_receiver = receiver.received_begins[of_owner];
            if (count > 0)
                copy(static_cast<char*>(received) + (is_back ? from_owner : at_receiver) * row_bytes,
                     offers_[other].rows + (is_back ? at_receiver : from_owner) * row_bytes, count * row_bytes);
        }
        barrier_.arrive_and_wait();
        if (factor == 1 || row_bytes != sizeof(double)) return;
        for (size_t row = 0; row < parts_[domain].received_count; ++row) static_cast<double*>(received)[row] *= factor;
    }
    void leave_failed() {
        has_failed_ = true;
        barrier_.arrive_and_drop();
    }

    RowTransport transport = RowTransport::host;
    bool can_return = true;
    double factor = 1;  // of rows with one number: the scores of atoms. 1: they arrive as they were sent

private:
    void copy(char* to, const char* from, size_t bytes) const {
#ifdef MLFF_HAS_CUDA
        if (transport == RowTransport::device) {
            REQUIRE(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice) ==
                    cudaSuccess);  // fails where one of them is memory of the host
            REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
            return;
        }
#endif
        std::memcpy(to, from, bytes);
    }
    struct Offer {
        const char* rows = nullptr;
        size_t row_bytes = 0;
    };
    const std::vector<Part>& parts_;
    std::vector<Offer> offers_;
    std::barrier<> barrier_;
    std::atomic<bool> has_failed_ = false;
};

class PartHalo : public HaloExchange {
public:
    PartHalo(Meeting& meeting, size_t domain) : meeting_(meeting), domain_(domain) {}
    void exchange(const void* sent, void* received, size_t row_bytes) override {
        meeting_.exchange(domain_, sent, received, row_bytes, false);
        ++exchange_count;
    }
    bool can_return() const override { return meeting_.can_return; }
    void give_back(const void* given, void* returned, size_t row_bytes) override {
        meeting_.exchange(domain_, given, returned, row_bytes, true);
        ++exchange_count;
    }
    int exchange_count = 0;

private:
    Meeting& meeting_;
    size_t domain_;
};

Outputs outputs_of(Result& result) {
    return {&result.energy, result.forces.data(), result.virial.data(), result.atom_energies.data(),
            result.atom_virials.data()};
}

Result empty_result(size_t owned, size_t all) {
    Result result;
    result.energy = NAN;
    result.forces.assign(3 * all, NAN);
    result.virial.assign(9, NAN);
    result.atom_energies.assign(owned, NAN);
    result.atom_virials.assign(9 * all, NAN);
    return result;
}

Result evaluate_whole(Session& session, const System& system) {
    Result result = empty_result(system.numbers.size(), system.numbers.size());
    const SystemView view = system.view();
    const Results results = {outputs_of(result)};
    session.evaluate({&view, 1}, {&results, 1});
    return result;
}

// Of a committee: sigma_energy_per_atom, then sigma_forces.
using Spread = std::vector<double>;

// Asks a domain for more than a Result has.
using Ask = std::function<void(size_t domain, Outputs&)>;

// Adds up the deviations of domains, as an engine does it.
class SpreadOfParts {
public:
    SpreadOfParts(const std::vector<Part>& parts, size_t atom_count, size_t member_count)
        : parts_(parts), atom_count_(atom_count), count_(member_count - 1) {
        for (const Part& part : parts_) {
            energies_.emplace_back(count_, NAN);
            forces_.emplace_back(3 * count_ * part.numbers.size(), NAN);
        }
    }
    Ask asks() {
        return [this](size_t domain, Outputs& outputs) {
            outputs.energy_deviations = energies_[domain].data();
            outputs.force_deviations = forces_[domain].data();
        };
    }
    Spread sum() const {
        Spread spread(1 + atom_count_, 0.0);
        for (size_t d = 0; d < count_; ++d) {
            double energy = 0;
            std::vector<double> forces(3 * atom_count_, 0.0);
            for (size_t p = 0; p < parts_.size(); ++p) {
                const std::vector<int64_t>& whole = parts_[p].whole;
                energy += energies_[p][d];
                for (size_t i = 0; i < 3 * whole.size(); ++i)
                    forces[3 * static_cast<size_t>(whole[i / 3]) + i % 3] += forces_[p][3 * d * whole.size() + i];
            }
            spread[0] += energy * energy;
            for (size_t i = 0; i < forces.size(); ++i) spread[1 + i / 3] += forces[i] * forces[i];
        }
        for (double& sigma : spread) sigma = std::sqrt(sigma);
        spread[0] /= static_cast<double>(atom_count_);
        return spread;
    }

private:
    const std::vector<Part>& parts_;
    size_t atom_count_, count_;
    std::vector<std::vector<double>> energies_, forces_;  // [domain]
};

Spread spread_of_whole(Session& session, const System& system) {
    Spread spread(1 + system.numbers.size(), NAN);
    Results results;
    results.outputs.sigma_energy_per_atom = spread.data();
    results.outputs.sigma_forces = spread.data() + 1;
    const SystemView view = system.view();
    session.evaluate({&view, 1}, {&results, 1});
    return spread;
}

// The sum of the domains, what ghosts have added to the atoms they copy. One session for each domain.
Result evaluate_parts(std::vector<std::unique_ptr<Session>>& sessions, const System& system,
                      const std::vector<Part>& parts, int64_t list_version = 0,
                      RowTransport transport = RowTransport::host, bool can_return = true, const Ask& ask = {},
                      double factor = 1, int* exchange_count = nullptr) {
    const size_t domain_count = parts.size();
    Meeting meeting(parts);
    meeting.factor = factor;
    meeting.transport = transport;
    meeting.can_return = can_return;
    std::vector<Result> results;
    for (const Part& part : parts) results.push_back(empty_result(part.atoms.size(), part.numbers.size()));
    std::vector<std::string> errors(domain_count);
    std::vector<int> exchange_counts(domain_count);
    {
        std::vector<std::jthread> threads;
        for (size_t d = 0; d < domain_count; ++d)
            threads.emplace_back([&, d] {
                const Part& part = parts[d];
                PartHalo halo(meeting, d);
                Domain domain;
                domain.atoms.atom_count = static_cast<int64_t>(part.numbers.size());
                domain.atoms.atomic_numbers = part.numbers.data();
                domain.atoms.positions = part.positions.data();
                domain.atoms.total_charge = system.charge;
                domain.atoms.spin_multiplicity = system.spin;
                domain.owned_count = static_cast<int64_t>(part.atoms.size());
                domain.cell = system.cell;
                domain.periodic = system.periodic;
                domain.first = part.first.data();
                domain.neighbors = part.neighbors.data();
                domain.halo = {part.sent, static_cast<int64_t>(part.received_count), part.source, &halo, transport};
                domain.list_version = list_version;
                Outputs outputs = outputs_of(results[d]);
                if (ask) ask(d, outputs);
                try {
                    sessions[d]->evaluate_domain(domain, outputs);
                } catch (const std::exception& error) {
                    errors[d] = error.what();
                    meeting.leave_failed();
                }
                exchange_counts[d] = halo.exchange_count;
            });
    }
    for (size_t d = 0; d < domain_count; ++d) {
        CHECK(errors[d] == "");
        CHECK(exchange_counts[d] == exchange_counts[0]);
    }
    if (exchange_count) *exchange_count = exchange_counts[0];
    const size_t atoms = system.numbers.size();
    Result sum;
    sum.forces.assign(3 * atoms, 0.0);
    sum.virial.assign(9, 0.0);
    sum.atom_energies.assign(atoms, NAN);
    sum.atom_virials.assign(9 * atoms, 0.0);
    for (size_t d = 0; d < domain_count; ++d) {
        sum.energy += results[d].energy;
        for (size_t k = 0; k < 9; ++k) sum.virial[k] += results[d].virial[k];
        for (size_t i = 0; i < parts[d].numbers.size(); ++i) {
            const auto atom = static_cast<size_t>(parts[d].whole[i]);
            if (i < parts[d].atoms.size()) sum.atom_energies[atom] = results[d].atom_energies[i];
            for (size_t k = 0; k < 3; ++k) sum.forces[3 * atom + k] += results[d].forces[3 * i + k];
            for (size_t k = 0; k < 9; ++k) sum.atom_virials[9 * atom + k] += results[d].atom_virials[9 * i + k];
        }
    }
    return sum;
}

std::vector<std::unique_ptr<Session>> make_sessions(const std::shared_ptr<const mlff::Model>& model, size_t count,
                                                    Precision precision, const std::string& head, int threads = 1,
                                                    bool exact_radial = false, const std::string& device = "cpu") {
    SessionOptions options;
    options.device = device;
    options.precision = precision;
    options.thread_count = threads;
    options.head = head;
    options.exact_radial = exact_radial;
    std::vector<std::unique_ptr<Session>> sessions;
    for (size_t i = 0; i < count; ++i) sessions.push_back(std::make_unique<Session>(model, options));
    return sessions;
}

// With 3 domains the second has no atoms, and with 8 most of a small system's have none.
size_t domain_of_atom(size_t atom, size_t domain_count) {
    return domain_count == 3 ? 2 * (atom % 2) : (atom * 5) % domain_count;
}

std::vector<Part> cut(const Session& session, const System& system, size_t domain_count) {
    std::vector<size_t> domain_of;
    for (size_t atom = 0; atom < system.numbers.size(); ++atom) domain_of.push_back(domain_of_atom(atom, domain_count));
    return cut(system, domain_of, domain_count, session.model().summary().reach());
}

void check_same(const Result& sum, const Result& whole, double tolerance) {
    CHECK(std::abs(sum.energy - whole.energy) <= tolerance * std::max(1.0, std::abs(whole.energy)));
    mace_test::check_close(sum.atom_energies, whole.atom_energies, tolerance);
    mace_test::check_close(sum.forces, whole.forces, tolerance);
    mace_test::check_close(sum.virial, whole.virial, tolerance);
    mace_test::check_close(sum.atom_virials, whole.atom_virials, tolerance);
}

void compare_cuts(std::vector<std::unique_ptr<Session>>& sessions, const System& system,
                  const std::vector<size_t>& domain_counts, double tolerance,
                  RowTransport transport = RowTransport::host, bool can_return = true) {
    const Result whole = evaluate_whole(*sessions[0], system);
    for (const size_t domain_count : domain_counts) {
        CAPTURE(domain_count);
        check_same(evaluate_parts(sessions, system, cut(*sessions[0], system, domain_count), 0, transport, can_return),
                   whole, tolerance);
    }
}

// Positions and elements change while lists and halos stay, as between two lists of an engine.
void compare_steps(std::vector<std::unique_ptr<Session>>& sessions, System system, size_t domain_count,
                   double tolerance, RowTransport transport = RowTransport::host) {
    std::vector<Part> parts = cut(*sessions[0], system, domain_count);
    for (int step = 0; step < 3; ++step) {
        CAPTURE(step);
        for (Part& part : parts) place_atoms(part, system);
        check_same(evaluate_parts(sessions, system, parts, 4711, transport), evaluate_whole(*sessions[0], system),
                   tolerance);
        for (size_t i = 0; i < system.positions.size(); ++i)
            system.positions[i] += 0.03 * std::sin(static_cast<double>(17 * i));
        std::swap(system.numbers.front(), system.numbers.back());
    }
}

System student_crystal(size_t atom_count = 60, double length = 9.0) {
    struct {
        std::vector<int> atomic_numbers = {1, 8};
    } elements;
    return mace_test::random_crystal(elements, 5, atom_count, length);
}

constexpr double kDomainsDouble = 1e-10,
                 kDomainsMixed = 2e-5;  // relative to the largest number of an array, at least 1

// visit(model, its name, a periodic system of its goldens, the head)
template <class Visit>
void for_each_periodic_golden(const Visit& visit) {
    for (const char* directory : {MLFF_GOLDEN_DIR, MLFF_NEQUIP_GOLDEN_DIR, MLFF_PAINN_GOLDEN_DIR})
        for (const auto& path : mace_test::golden_cases(directory)) {
            CAPTURE(path.string());
            std::ifstream file(path);
            const nlohmann::json golden = nlohmann::json::parse(file);
            if (golden.value("container", "") == "state_dict") continue;
            const std::string model_file = golden.value("model_file", path.stem().string() + ".safetensors");
            const std::shared_ptr<const mlff::Model> model = load_model((path.parent_path() / model_file).string());
            if (!model->summary().why_not_runnable.empty()) continue;
            for (const nlohmann::json& record : golden["systems"]) {
                const System system = mace_test::read_system(record);
                if (!system.view().is_periodic()) continue;
                CAPTURE(record["name"].get<std::string>());
                const auto& heads = model->summary().heads;
                const int fixed = model->summary().fixed_head;
                visit(model, path.stem().string(), system,
                      heads[static_cast<size_t>(fixed >= 0 ? fixed : record.value("head_index", 0))]);
            }
        }
}

// Sessions of one model and head, which are kept until those of another are wanted.
class KeptSessions {
public:
    template <class Make>
    std::vector<std::unique_ptr<Session>>& of(const std::shared_ptr<const mlff::Model>& model, const std::string& head,
                                              const Make& make) {
        if (model != model_) by_head_.clear();
        model_ = model;
        auto& sessions = by_head_[head];
        if (sessions.empty()) sessions = make();
        return sessions;
    }

private:
    std::shared_ptr<const mlff::Model> model_;
    std::map<std::string, std::vector<std::unique_ptr<Session>>> by_head_;
};

}  // namespace

TEST_CASE("periodic goldens cut into domains" * test::kSlowUnderSanitizers) {
    int compared = 0;
    KeptSessions exact, mixed;
    for_each_periodic_golden([&](const auto& model, const std::string& name, const System& system,
                                 const std::string& head) {
        // Making tables takes longer than evaluating small systems: those in fp64 are left to the student. Many domains
        // for one model of each kind.
        const bool is_cut_finely =
            name == "p04_density_agnesi_zbl" || name == "p07_nonlinear_mh" || name == "two_blocks_f32";
        auto& sessions = exact.of(
            model, head, [&] { return make_sessions(model, is_cut_finely ? 8 : 3, Precision::fp64, head, 1, true); });
        compare_cuts(sessions, system, is_cut_finely ? std::vector<size_t>{1, 2, 3, 8} : std::vector<size_t>{2, 3},
                     kDomainsDouble);
        ++compared;
        if (is_cut_finely)
            compare_cuts(mixed.of(model, head, [&] { return make_sessions(model, 2, Precision::mixed, head); }), system,
                         {2}, kDomainsMixed);
    });
    CHECK(compared >= 20);
}

TEST_CASE("on a GPU: periodic goldens cut into domains") {
    if (!has_gpu()) return;
    int compared = 0;
    KeptSessions exact, mixed;
    for_each_periodic_golden([&](const auto& model, const std::string&, const System& system, const std::string& head) {
        if (!model->runs_on_gpu()) return;
        compare_cuts(
            exact.of(model, head, [&] { return make_sessions(model, 3, Precision::fp64, head, 1, false, "cuda"); }),
            system, {1, 2, 3}, kDomainsDouble);
        auto& sessions =
            mixed.of(model, head, [&] { return make_sessions(model, 3, Precision::mixed, head, 1, false, "cuda"); });
        compare_cuts(sessions, system, {1, 2, 3}, kDomainsMixed);
        compare_cuts(sessions, system, {2}, kDomainsMixed, RowTransport::shared);
        compare_cuts(sessions, system, {3}, kDomainsMixed, RowTransport::window);
        // Where the gradients of ghosts cannot return.
        compare_cuts(sessions, system, {2, 3}, kDomainsMixed, RowTransport::host, false);
        ++compared;
    });
    CHECK(compared >= 20);
}

TEST_CASE("on a GPU: a random crystal of the embedded student cut into domains, and steps with the same lists") {
    if (!has_gpu()) return;
    const std::shared_ptr<const mlff::Model> model = load_model("builtin");
    auto exact = make_sessions(model, 8, Precision::fp64, "", 1, false, "cuda");
    compare_cuts(exact, student_crystal(), {1, 2, 3, 8}, kDomainsDouble);
    compare_steps(exact, student_crystal(), 3, kDomainsDouble);
    auto mixed = make_sessions(model, 3, Precision::mixed, "", 1, false, "cuda");
    compare_cuts(mixed, student_crystal(), {1, 2, 3}, kDomainsMixed);
    compare_steps(mixed, student_crystal(), 2, kDomainsMixed);
    for (const RowTransport transport : {RowTransport::device, RowTransport::shared, RowTransport::window}) {
        compare_cuts(exact, student_crystal(), {2, 3, 8, 2}, kDomainsDouble, transport);
        compare_steps(exact, student_crystal(), 3, kDomainsDouble, transport);
        compare_cuts(mixed, student_crystal(), {3}, kDomainsMixed, transport);
    }
    for (const RowTransport transport : {RowTransport::window, RowTransport::shared}) {
        const GpuAddress address = exact[0]->halo_sharing().gpu_address(transport);
        CHECK(address == exact[0]->halo_sharing().gpu_address(transport));
        CHECK_NOTHROW(exact[1]->halo_sharing().reach_gpu(address));
    }
    GpuAddress address = exact[0]->halo_sharing().gpu_address(RowTransport::shared);
    ++address.token;
    CHECK_THROWS_WITH_AS(
        exact[1]->halo_sharing().reach_gpu(address),
        "cannot read the GPU memory of another process: the token was not found in the 2.1 MB that were opened", Error);
    --address.token;
    ++address.machine;
    CHECK_THROWS_WITH_AS(exact[1]->halo_sharing().reach_gpu(address),
                         "cannot read the GPU memory of another process: it is on another machine", Error);
}

TEST_CASE("a random crystal of the embedded student cut into domains, on several threads" *
          test::kSlowUnderSanitizers) {
    const std::shared_ptr<const mlff::Model> model = load_model("builtin");
    const System crystal = student_crystal();
    auto exact = make_sessions(model, 8, Precision::fp64, "", 2);
    compare_cuts(exact, crystal, {1, 2, 3, 8}, kDomainsDouble);
    auto mixed = make_sessions(model, 3, Precision::mixed, "");
    compare_cuts(mixed, crystal, {1, 2, 3}, kDomainsMixed);
}

TEST_CASE("sums of terms cut into domains") {
    const std::shared_ptr<const mlff::Model> model = load_model("builtin+zbl");
    System dense = student_crystal();  // where the repulsion acts
    for (double& x : dense.positions) x *= 0.85;
    for (auto& row : dense.cell)
        for (double& x : row) x *= 0.85;
    auto sessions = make_sessions(model, 3, Precision::fp64, "", 2);
    compare_cuts(sessions, dense, {1, 2, 3}, kDomainsDouble);
    auto pairs = make_sessions(load_model("analytic"), 3, Precision::fp64, "", 2);
    compare_cuts(pairs, dense, {1, 2, 3}, kDomainsDouble);
    if (!has_gpu()) return;
    auto on_gpu = make_sessions(model, 3, Precision::fp64, "", 1, false, "cuda");
    compare_cuts(on_gpu, dense, {1, 2, 3}, kDomainsDouble);
    compare_steps(on_gpu, dense, 3, kDomainsDouble);
    compare_cuts(on_gpu, dense, {2}, kDomainsDouble, RowTransport::shared);
    check_same(evaluate_whole(*on_gpu[0], dense), evaluate_whole(*sessions[0], dense), 1e-8);  // tables of filters
}

namespace {

// Mean and spread of committees: cut as they are whole, with the bits of the mean that there are without a spread.
void compare_committees(std::vector<std::unique_ptr<Session>>& sessions, const System& system,
                        const std::vector<size_t>& domain_counts, double tolerance) {
    const auto members = static_cast<size_t>(sessions[0]->model().summary().member_count);
    const Result whole = evaluate_whole(*sessions[0], system);
    const Spread whole_spread = spread_of_whole(*sessions[0], system);
    const double scale = tolerance * std::max(1.0, *std::max_element(whole_spread.begin(), whole_spread.end()));
    CHECK(*std::min_element(whole_spread.begin(), whole_spread.end()) > 10 * scale);
    for (const size_t domain_count : domain_counts) {
        CAPTURE(domain_count);
        const std::vector<Part> parts = cut(*sessions[0], system, domain_count);
        SpreadOfParts spread(parts, system.numbers.size(), members);
        const Result mean = evaluate_parts(sessions, system, parts, 0, RowTransport::host, true, spread.asks());
        check_same(mean, whole, tolerance);
        CHECK_ALL_CLOSE(spread.sum(), whole_spread, scale);
        CHECK(mean.forces == evaluate_parts(sessions, system, parts).forces);
    }
}

// Three members with weights, one of which is a sum and one of which is not PaiNN.
std::shared_ptr<const mlff::Model> three_members() {
    return make_committee_model({{"first", load_model("builtin"), 2},
                                 {"second", load_model("self-test")},
                                 {"third", load_model("builtin+zbl")}},
                                "three");
}

}  // namespace

TEST_CASE("committees cut into domains: mean and spread" * test::kSlowUnderSanitizers) {
    const System crystal = student_crystal();
    auto sessions = make_sessions(three_members(), 8, Precision::fp64, "", 2);
    compare_committees(sessions, crystal, {1, 2, 3, 8}, kDomainsDouble);
    auto mixed = make_sessions(three_members(), 3, Precision::mixed, "");
    compare_committees(mixed, crystal, {2, 3}, kDomainsMixed);
    if (!has_gpu()) return;
    auto on_gpu = make_sessions(three_members(), 3, Precision::fp64, "", 1, false, "cuda");
    compare_committees(on_gpu, crystal, {1, 2, 3}, kDomainsDouble);
    check_same(evaluate_whole(*on_gpu[0], crystal), evaluate_whole(*sessions[0], crystal), 1e-8);
    auto mixed_on_gpu = make_sessions(three_members(), 3, Precision::mixed, "", 1, false, "cuda");
    compare_committees(mixed_on_gpu, crystal, {2, 3}, kDomainsMixed);
}

TEST_CASE("members that agree have no deviations, and each can be asked for alone") {
    const System crystal = student_crystal(20, 6.3);
    for (const std::string device : {"cpu", "cuda"}) {
        if (device == "cuda" && !has_gpu()) continue;
        auto same = make_sessions(load_model("builtin,builtin,builtin"), 2, Precision::fp64, "", 1, false, device);
        const std::vector<Part> parts = cut(*same[0], crystal, 2);
        SpreadOfParts none(parts, 20, 3);
        evaluate_parts(same, crystal, parts, 0, RowTransport::host, true, none.asks());
        CHECK(none.sum() == Spread(21, 0.0));

        auto session = make_sessions(three_members(), 1, Precision::fp64, "", 1, false, device);
        const std::vector<Part> whole = cut(*session[0], crystal, 1);
        const Part& part = whole[0];
        const size_t count = 2 * 3 * part.numbers.size();
        Meeting meeting(whole);
        PartHalo halo(meeting, 0);
        Domain domain;
        domain.atoms.atom_count = static_cast<int64_t>(part.numbers.size());
        domain.atoms.atomic_numbers = part.numbers.data();
        domain.atoms.positions = part.positions.data();
        domain.owned_count = 20;
        domain.first = part.first.data();
        domain.neighbors = part.neighbors.data();
        domain.halo = {part.sent, 0, part.source, &halo};
        std::vector<double> energies(2, NAN), energies_alone(2, NAN), forces(count, NAN), forces_alone(count, NAN);
        Outputs all, only_energies, only_forces;
        all.energy_deviations = energies.data(), all.force_deviations = forces.data();
        only_energies.energy_deviations = energies_alone.data();
        only_forces.force_deviations = forces_alone.data();
        for (const Outputs& outputs : {all, only_energies, only_forces}) session[0]->evaluate_domain(domain, outputs);
        CHECK_ALL_CLOSE(energies_alone, energies, 0.0);
        CHECK_ALL_CLOSE(forces_alone, forces, 0.0);
        CHECK(std::any_of(forces.begin(), forces.end(), [](double x) { return std::abs(x) > 0.01; }));
    }
}

namespace {

// What the trust meter says of each atom.
struct Trust {
    std::vector<double> expected_errors, novelties;
    explicit Trust(size_t atom_count) : expected_errors(atom_count, NAN), novelties(atom_count, NAN) {}
};

// [atom of the whole system], from all domains.
class TrustOfParts {
public:
    TrustOfParts(const std::vector<Part>& parts, size_t atom_count) : parts_(parts), atom_count_(atom_count) {
        for (const Part& part : parts_) found_.emplace_back(part.atoms.size() + 1);  // a place without atoms too
    }
    Ask asks() {
        return [this](size_t domain, Outputs& outputs) {
            outputs.expected_errors = found_[domain].expected_errors.data();
            outputs.novelties = found_[domain].novelties.data();
        };
    }
    Trust whole() const {
        Trust whole(atom_count_);
        for (size_t p = 0; p < parts_.size(); ++p) {
            for (size_t i = 0; i < parts_[p].atoms.size(); ++i) {
                const auto atom = static_cast<size_t>(parts_[p].atoms[i]);
                whole.expected_errors[atom] = found_[p].expected_errors[i];
                whole.novelties[atom] = found_[p].novelties[i];
            }
            CHECK(std::isnan(found_[p].expected_errors.back()));  // nothing of ghosts
            CHECK(std::isnan(found_[p].novelties.back()));
        }
        return whole;
    }

private:
    const std::vector<Part>& parts_;
    size_t atom_count_;
    std::vector<Trust> found_;  // [domain]
};

Trust trust_of_whole(Session& session, const System& system) {
    Trust trust(system.numbers.size());
    Results results;
    results.outputs.expected_errors = trust.expected_errors.data();
    results.outputs.novelties = trust.novelties.data();
    const SystemView view = system.view();
    session.evaluate({&view, 1}, {&results, 1});
    return trust;
}

// The largest difference of two arrays in units of the number itself; NaN if there is one.
double relative_difference(const std::vector<double>& found, const std::vector<double>& expected) {
    REQUIRE(found.size() == expected.size());
    double largest = 0;
    for (size_t i = 0; i < found.size(); ++i) {
        const double difference = std::abs(found[i] - expected[i]) / std::abs(expected[i]);
        if (!(difference <= largest)) largest = difference;
        if (std::isnan(largest)) break;
    }
    return largest;
}

// Cut as it is whole; and what ghosts bring counts, so that a wrong exchange would be seen.
void compare_trust(std::vector<std::unique_ptr<Session>>& sessions, const System& system,
                   const std::vector<size_t>& domain_counts, double tolerance,
                   RowTransport transport = RowTransport::host) {
    const Trust whole = trust_of_whole(*sessions[0], system);
    for (const size_t domain_count : domain_counts) {
        CAPTURE(domain_count);
        const std::vector<Part> parts = cut(*sessions[0], system, domain_count);
        TrustOfParts trust(parts, system.numbers.size()), wrong(parts, system.numbers.size());
        int exchanges = 0, exchanges_without = 0;
        const Result found = evaluate_parts(sessions, system, parts, 0, transport, true, trust.asks(), 1, &exchanges);
        CHECK(relative_difference(trust.whole().expected_errors, whole.expected_errors) <= tolerance);
        CHECK(relative_difference(trust.whole().novelties, whole.novelties) <= tolerance);
        const Result plain = evaluate_parts(sessions, system, parts, 0, transport, true, {}, 1, &exchanges_without);
        CHECK(found.forces == plain.forces);
        CHECK(exchanges == exchanges_without + 1);
        if (domain_count == 1) continue;
        evaluate_parts(sessions, system, parts, 0, transport, true, wrong.asks(), 1.5);
        CHECK(relative_difference(wrong.whole().expected_errors, whole.expected_errors) > 10 * tolerance);
        CHECK(relative_difference(wrong.whole().novelties, whole.novelties) <= tolerance);
    }
}

// A model of the goldens with a meter that does not know its last element. It lives while its folder does.
std::shared_ptr<const mlff::Model> measured_golden(const test::TemporaryDirectory& folder, const std::string& path) {
    const std::string copy = folder.file(std::filesystem::path(path).filename().string());
    std::filesystem::copy_file(path, copy);
    const ModelSummary summary = load_model(copy)->summary();
    std::vector<int> seen = summary.elements;
    if (seen.size() > 1) seen.pop_back();
    test::add_trust_file(copy, test::random_trust_meter(summary.descriptor_count, seen));
    return load_model(copy);
}

// Relative to each number. The meter reads descriptors in single precision, so that other last digits in double
// precision may become other last digits in single precision.
constexpr double kTrustDouble = 1e-6, kTrustMixed = 1e-3;

}  // namespace

TEST_CASE("expected errors and novelties of atoms in domains are those of the whole system" *
          test::kSlowUnderSanitizers) {
    const System crystal = student_crystal(), small = student_crystal(20, 6.3);
    auto exact = make_sessions(load_model("builtin"), 8, Precision::fp64, "", 2);
    compare_trust(exact, crystal, {1, 2, 3, 8}, kTrustDouble);
    System molecule = small;
    molecule.periodic = {false, false, false};
    compare_trust(exact, molecule, {2, 3}, kTrustDouble);
    auto mixed = make_sessions(load_model("builtin"), 3, Precision::mixed, "");
    compare_trust(mixed, crystal, {2, 3}, kTrustMixed);
    for (const char* name : {"builtin+zbl", "builtin+d3:pbe"}) {
        CAPTURE(name);
        auto sums = make_sessions(load_model(name), 3, Precision::fp64, "");
        compare_trust(sums, small, {2, 3}, kTrustDouble);
    }
    if (!has_gpu()) return;
    auto on_gpu = make_sessions(load_model("builtin"), 3, Precision::fp64, "", 1, false, "cuda");
    for (const RowTransport transport : {RowTransport::host, RowTransport::shared, RowTransport::window})
        compare_trust(on_gpu, crystal, {2, 3}, kTrustDouble, transport);
}

TEST_CASE("expected errors in domains: every family, and atoms that change while lists stay" *
          test::kSlowUnderSanitizers) {
    const test::TemporaryDirectory folder;
    for (const char* path : {MLFF_GOLDEN_DIR "/p09_l2_ell3.model", MLFF_NEQUIP_GOLDEN_DIR "/n03_lmax1_two_layers.nqx",
                             MLFF_PAINN_GOLDEN_DIR "/two_blocks_f32.safetensors"}) {
        CAPTURE(path);
        const auto model = measured_golden(folder, path);
        struct {
            std::vector<int> atomic_numbers;
        } elements = {model->summary().elements};
        System crystal = mace_test::random_crystal(elements, 5, 24, 7.5);
        auto sessions = make_sessions(model, 3, Precision::fp64, "", 1, true);
        compare_trust(sessions, crystal, {1, 2, 3}, kTrustDouble);
        std::vector<Part> parts = cut(*sessions[0], crystal, 2);
        for (int step = 0; step < 3; ++step) {
            CAPTURE(step);
            for (Part& part : parts) place_atoms(part, crystal);
            const Trust whole = trust_of_whole(*sessions[0], crystal);
            TrustOfParts trust(parts, crystal.numbers.size());
            evaluate_parts(sessions, crystal, parts, 4712, RowTransport::host, true, trust.asks());
            CHECK(relative_difference(trust.whole().expected_errors, whole.expected_errors) <= kTrustDouble);
            CHECK(relative_difference(trust.whole().novelties, whole.novelties) <= kTrustDouble);
            CHECK(std::count(whole.novelties.begin(), whole.novelties.end(), 1000.0) > 0);  // an element not seen
            for (size_t i = 0; i < crystal.positions.size(); ++i)
                crystal.positions[i] += 0.03 * std::sin(static_cast<double>(17 * i));
            std::swap(crystal.numbers.front(), crystal.numbers.back());
        }
    }
}

TEST_CASE("novelties of a domain alone take no exchange, and descriptors may be asked for too") {
    auto sessions = make_sessions(load_model("builtin"), 2, Precision::fp64, "");
    const System crystal = student_crystal(20, 6.3);
    const std::vector<Part> parts = cut(*sessions[0], crystal, 2);
    TrustOfParts all(parts, 20);
    const auto width = static_cast<size_t>(sessions[0]->model().summary().descriptor_count);
    std::vector<std::vector<double>> novelties(2, std::vector<double>(20, NAN)),
        descriptors(2, std::vector<double>(20 * width, NAN)), again = descriptors;
    int with = 0, without = 0, novelties_only = 0;
    evaluate_parts(
        sessions, crystal, parts, 0, RowTransport::host, true,
        [&](size_t domain, Outputs& outputs) { outputs.descriptors = descriptors[domain].data(); }, 1, &without);
    evaluate_parts(
        sessions, crystal, parts, 0, RowTransport::host, true,
        [&](size_t domain, Outputs& outputs) {
            all.asks()(domain, outputs);
            outputs.descriptors = again[domain].data();
        },
        1, &with);
    evaluate_parts(
        sessions, crystal, parts, 0, RowTransport::host, true,
        [&](size_t domain, Outputs& outputs) { outputs.novelties = novelties[domain].data(); }, 1, &novelties_only);
    CHECK(with == without + 1);
    CHECK(novelties_only == without);
    const Trust whole = all.whole();
    for (size_t p = 0; p < 2; ++p)
        for (size_t i = 0; i < parts[p].atoms.size(); ++i) {
            CHECK(novelties[p][i] == whole.novelties[static_cast<size_t>(parts[p].atoms[i])]);
            for (size_t k = 0; k < width; ++k) CHECK(again[p][i * width + k] == descriptors[p][i * width + k]);
        }
}

TEST_CASE("dispersion cut into domains, whose ghosts reach as far as its pairs") {
    const System crystal = student_crystal(14, 8.0);
    for (const char* name : {"d3:pbe", "d3:pbe:zero:smooth"}) {
        CAPTURE(name);
        auto sessions = make_sessions(load_model(name), 3, Precision::fp64, "", 2);
        compare_cuts(sessions, crystal, {1, 2, 3}, kDomainsDouble);
        compare_steps(sessions, crystal, 2, kDomainsDouble);
        if (!has_gpu()) continue;
        auto on_gpu = make_sessions(load_model(name), 3, Precision::fp64, "", 1, false, "cuda");
        compare_cuts(on_gpu, crystal, {1, 2, 3}, kDomainsDouble);
        compare_steps(on_gpu, crystal, 2, kDomainsDouble);
        compare_cuts(on_gpu, crystal, {2}, kDomainsDouble, RowTransport::shared);
        check_same(evaluate_whole(*on_gpu[0], crystal), evaluate_whole(*sessions[0], crystal), 1e-8);
    }
    System wire = student_crystal(6, 9.0);
    wire.periodic = {true, false, false};
    auto sessions = make_sessions(load_model("d3:pbe:atm"), 3, Precision::fp64, "", 2);
    compare_cuts(sessions, wire, {2, 3}, kDomainsDouble);
}

TEST_CASE("a sum with a term that finds its neighbours itself, cut into domains" * test::kSlowUnderSanitizers) {
    const System crystal = student_crystal(20, 6.3);
    auto sums = make_sessions(load_model("builtin+d3:pbe"), 4, Precision::fp64, "", 2);
    compare_cuts(sums, crystal, {1, 2, 4}, kDomainsDouble);
    compare_steps(sums, crystal, 2, kDomainsDouble);
    auto alone = make_sessions(load_model("d3:pbe+d3:b3lyp:zero"), 3, Precision::fp64, "");  // nothing reads edges
    compare_cuts(alone, crystal, {3}, kDomainsDouble);
    auto committee = make_sessions(load_model("builtin+d3:pbe,builtin+zbl+d3:b3lyp"), 2, Precision::fp64, "");
    compare_cuts(committee, crystal, {2}, kDomainsDouble);
    if (!has_gpu()) return;
    auto on_gpu = make_sessions(load_model("builtin+d3:pbe"), 3, Precision::fp64, "", 1, false, "cuda");
    compare_cuts(on_gpu, crystal, {1, 2, 3}, kDomainsDouble);
    check_same(evaluate_whole(*on_gpu[0], crystal), evaluate_whole(*sums[0], crystal), 1e-8);
}

TEST_CASE("several domains want the same atom") {
    // Otherwise the comparisons above would not try it: rows that are sent twice, rows that several ghosts share, and
    // images of own atoms.
    const auto sessions = make_sessions(load_model("builtin"), 1, Precision::fp64, "");
    const std::vector<Part> parts = cut(*sessions[0], student_crystal(), 8);
    const auto has_repeats = [](std::vector<int32_t> numbers) {
        std::sort(numbers.begin(), numbers.end());
        return std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end();
    };
    for (const Part& part : parts) {
        std::vector<int32_t> rows;
        std::copy_if(part.source.begin(), part.source.end(), std::back_inserter(rows),
                     [](int32_t source) { return source >= 0; });
        CHECK(has_repeats(part.sent));
        CHECK(has_repeats(rows));
        CHECK(rows.size() < part.source.size());
    }
}

TEST_CASE("atoms move and change their elements while lists and halos stay") {
    auto exact = make_sessions(load_model("builtin"), 3, Precision::fp64, "");
    compare_steps(exact, student_crystal(20, 6.3), 3, kDomainsDouble);
}

TEST_CASE("bad domains are refused") {
    struct Nobody : HaloExchange {
        void exchange(const void*, void* received, size_t row_bytes) override {
            std::memset(received, 0, 2 * row_bytes);
        }
    } nobody;
    const int32_t numbers[] = {8, 1, 1};
    const double positions[] = {0, 0, 0, 0.96, 0, 0, -0.24, 0.93, 0}, same_place[] = {0, 0, 0, 0, 0, 0, 1, 0, 0};
    const int64_t first[] = {0, 2, 3}, backwards[] = {0, 2, 1};
    const int32_t neighbors[] = {1, 2, 0}, too_high[] = {1, 3, 0}, itself[] = {1, 0, 0}, one_way[] = {2, 2, 0};
    const int32_t sent[] = {1, 0, 1}, ghost_sent[] = {1, 0, 2}, below_zero[] = {1, 0, -1}, received[] = {1},
                  not_received[] = {2}, image[] = {-2}, image_of_ghost[] = {-3};
    const auto status_of = [&](Session& session, const auto& change) {
        Domain domain;
        domain.atoms.atom_count = 3;
        domain.atoms.atomic_numbers = numbers;
        domain.atoms.positions = positions;
        domain.owned_count = 2;
        domain.first = first;
        domain.neighbors = neighbors;
        domain.halo = {sent, 2, received, &nobody};
        change(domain);
        double energy = NAN;
        try {
            session.evaluate_domain(domain, {&energy});
        } catch (const Error& error) {
            return error.status();
        }
        CHECK(std::isfinite(energy));
        return Status::ok;
    };
    for (const std::string device : {"cpu", "cuda"}) {
        if (device == "cuda" && !has_gpu()) continue;
        const auto sessions = make_sessions(load_model("builtin"), 1, Precision::fp64, "", 1, false, device);
        Session& session = *sessions[0];
        CHECK(status_of(session, [](Domain&) {}) == Status::ok);
        CHECK(status_of(session, [](Domain& d) { d.owned_count = 4; }) == Status::argument);
        CHECK(status_of(session, [](Domain& d) { d.owned_count = -1; }) == Status::argument);
        CHECK(status_of(session, [](Domain& d) { d.halo.exchange = nullptr; }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) { d.halo.sent = ghost_sent; }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) { d.halo.sent = below_zero; }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) {
                  d.halo.sent = {static_cast<const int32_t*>(nullptr), 2};
              }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) { d.halo.source = {}; }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) {
                  d.halo.source = {static_cast<const int32_t*>(nullptr), 1};
              }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) { d.halo.source = sent; }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) { d.halo.source = not_received; }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) { d.halo.source = image; }) == Status::ok);
        CHECK(status_of(session, [&](Domain& d) { d.halo.source = image_of_ghost; }) == Status::argument);
        CHECK(status_of(session, [](Domain& d) { d.halo.received_count = -1; }) == Status::argument);
        CHECK(status_of(session, [](Domain& d) { d.halo.received_count = int64_t{1} << 62; }) == Status::argument);
        // What is promised to be the same is not checked again, what is not or has other counts is.
        const auto with_version = [](int64_t version, std::span<const int32_t> source, int64_t received_count = 2) {
            return [=](Domain& d) {
                d.list_version = version, d.halo.source = source, d.halo.received_count = received_count;
            };
        };
        CHECK(status_of(session, with_version(1, not_received)) == Status::argument);
        CHECK(status_of(session, with_version(1, received)) == Status::ok);
        CHECK(status_of(session, with_version(1, received)) == Status::ok);
        CHECK(status_of(session, with_version(2, not_received)) == Status::argument);
        CHECK(status_of(session, with_version(2, received)) == Status::ok);
        CHECK(status_of(session, with_version(2, received, 1)) == Status::argument);
        CHECK(status_of(session, with_version(2, received, 3)) ==
              Status::argument);  // a list that is the same has the same numbers
        CHECK(status_of(session, with_version(0, not_received)) == Status::argument);
        CHECK(status_of(session, [](Domain& d) { d.first = nullptr; }) == Status::argument);
        CHECK(status_of(session, [](Domain& d) { d.neighbors = nullptr; }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) { d.first = backwards; }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) { d.first = first + 1; }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) { d.neighbors = too_high; }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) { d.neighbors = itself; }) == Status::argument);
        CHECK(status_of(session, [&](Domain& d) { d.atoms.positions = same_place; }) == Status::system);
        CHECK(status_of(session, [](Domain& d) { d.atoms.periodic[0] = true; }) == Status::argument);
        CHECK(status_of(session, [](Domain&) {}) == Status::ok);
        CHECK(status_of(session, [&](Domain& d) { d.neighbors = one_way; }) == Status::argument);
        if (device == "cpu")
            for (const RowTransport transport : {RowTransport::shared, RowTransport::window})
                CHECK(status_of(session, [&](Domain& d) { d.halo.transport = transport; }) == Status::argument);
    }
    // The check of lists alone, as GPUs need it.
    const auto list_status = [&](int64_t receiver_count, const int64_t* starts, const int32_t* listed) {
        try {
            check_listed_neighbors(3, {receiver_count, starts, listed});
        } catch (const Error& error) {
            return error.status();
        }
        return Status::ok;
    };
    CHECK(list_status(2, first, neighbors) == Status::ok);
    CHECK(list_status(0, first, nullptr) == Status::ok);
    CHECK(list_status(4, first, neighbors) == Status::argument);
    CHECK(list_status(-1, first, neighbors) == Status::argument);
    CHECK(list_status(2, nullptr, neighbors) == Status::argument);
    CHECK(list_status(2, first, nullptr) == Status::argument);
    CHECK(list_status(2, backwards, neighbors) == Status::argument);
    CHECK(list_status(2, first + 1, neighbors) == Status::argument);
    CHECK(list_status(2, first, too_high) == Status::argument);
    CHECK(list_status(2, first, itself) == Status::argument);
    SessionOptions reference;
    reference.device = "reference";
    Session on_reference(load_model("builtin"), reference);
    CHECK(status_of(on_reference, [](Domain&) {}) == Status::unsupported);
}
