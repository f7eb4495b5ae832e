// SPDX-License-Identifier: MIT
// Steps on the GPU give a model the positions and the cells of now, also where a graph of an earlier step is launched
// again. The model here copies what it sees into the results: forces are positions, and the virial is the cell. Tests
// pass without a GPU, unless MLFF_REQUIRE_GPU is set; the emulated GPU runs them too.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "close.h"
#include "gpu/engine/step_evaluator.h"
#include "gpu/engine/step_model.h"
#include "gpu/runtime/cuda_check.h"
#include "potential/batch_evaluation.h"
#include "potential/device_stepper.h"
#include "potential/domain_evaluation.h"
#include "test_gpu_support.h"

using namespace mlff;
using Numbers = std::vector<double>;

namespace {

class GeometryModel : public gpu::StepModel {
public:
    explicit GeometryModel(cudaStream_t stream) {
        facts_.cutoff = 2;
        facts_.atomic_numbers = {1};
        const gpu::ElementEnergy none;
        of_element_.upload(&none, 1, "the model", stream);
    }
    const gpu::StepModelFacts& facts() const override { return facts_; }
    bool prepare(const SystemView&, const std::vector<int>&, ThreadTeam&, cudaStream_t) override { return false; }
    void list_buffers(gpu::BufferList&, const gpu::StepSize&) override {}
    int64_t most_ghost_row_bytes() const override { return 8; }

    // All systems of a batch have as many atoms. The energy of a system is 1 and a bit for each periodic direction.
    void enqueue(const gpu::Step& step, gpu::StepResults& results, cudaStream_t stream) override {
        const size_t owned = static_cast<size_t>(step.edges.atom_count),
                     all = owned + static_cast<size_t>(step.ghost_count);
        const auto systems = static_cast<size_t>(step.systems.system_count);
        const auto clear = [&](void* at, int value, size_t bytes) {
            gpu::check(cudaMemsetAsync(at, value, bytes, stream), "clearing");
        };
        const auto copy = [&](void* to, const void* from, size_t bytes) {
            gpu::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copying");
        };
        clear(results.energies.data(), 0, owned * sizeof(double));
        clear(results.virials.data(), 0, 9 * all * sizeof(double));
        copy(results.forces.data(), step.positions, 3 * all * sizeof(double));
        for (size_t s = 0; s < systems; ++s) {
            const size_t first = s * owned / systems;
            auto* energy = reinterpret_cast<char*>(results.energies.data() + first);
            clear(energy + 6, 0xf0, 1);  // 1.0 is 0x3ff0000000000000
            clear(energy + 7, 0x3f, 1);
            copy(energy, &step.cells[s].periodic, 3);
            copy(results.virials.data() + 9 * first, &step.cells[s].vectors, 9 * sizeof(double));
        }
    }
    gpu::EnergyView energy_view(const gpu::Step& step) const override {
        return {step.edges.elements, of_element_.data()};
    }
    [[noreturn]] void refuse_short_edges() const override { throw 0; }

private:
    gpu::StepModelFacts facts_;
    gpu::DeviceBuffer<gpu::ElementEnergy> of_element_;
};

std::unique_ptr<Evaluator> make_evaluator(double skin) {
    BackendOptions options;
    options.device = *parse_device("cuda:0");
    options.neighbor_skin = skin;
    return gpu::make_step_evaluator(
        options, [](void* stream) { return std::make_shared<GeometryModel>(static_cast<cudaStream_t>(stream)); });
}

struct Atoms {
    std::vector<int32_t> numbers;
    Numbers positions;
    Mat3 cell{};
    std::array<bool, 3> periodic{};

    explicit Atoms(int count) : numbers(static_cast<size_t>(count), 1) {
        for (int i = 0; i < count; ++i)
            for (const double x : {1.1 * i, 0.3 * i, 0.2}) positions.push_back(x);
    }
    void set_cell(double length) {
        cell = {Vec3{length, 0, 0.5}, Vec3{0.25, length + 1, 0}, Vec3{0, 0, length + 2}};
        periodic = {true, false, true};
    }
    void move(double by) {
        for (double& x : positions) x += by;
    }
    SystemView view() const {
        SystemView view;
        view.atom_count = static_cast<int64_t>(numbers.size());
        view.atomic_numbers = numbers.data();
        view.positions = positions.data();
        view.cell = cell;
        view.periodic = periodic;
        return view;
    }
    Numbers cell_numbers() const {
        Numbers all;
        for (const Vec3& row : cell) all.insert(all.end(), row.begin(), row.end());
        return all;
    }
    double energy() const {
        return 1 + (periodic[0] + 256.0 * periodic[1] + 65536.0 * periodic[2]) * std::ldexp(1.0, -52);
    }
};

struct Seen {
    double energy = NAN;
    Numbers forces, virial = Numbers(9, NAN);
    explicit Seen(size_t atoms) : forces(3 * atoms, NAN) {}
    Outputs outputs() {
        Outputs to;
        to.energy = &energy;
        to.forces = forces.data();
        to.virial = virial.data();
        return to;
    }
    void check(const Atoms& atoms) const {
        CHECK(energy == atoms.energy());
        CHECK(forces == atoms.positions);
        CHECK(virial == atoms.cell_numbers());
    }
};

}  // namespace

TEST_CASE("a step sees the positions and the cell of now") {
    if (!has_gpu()) return;
    ThreadTeam team(1);
    for (const double skin : {0.0, 0.5}) {  // without candidates, graphs of searched steps outlive their cells
        CAPTURE(skin);
        const auto evaluator = make_evaluator(skin);
        Atoms atoms(7);
        for (const double length : {0.0, 9.0, 9.0, 9.0, 9.0, 9.5, 9.5, 9.5, 9.0, 9.0, 0.0, 0.0, 0.0}) {
            CAPTURE(length);
            if (length > 0)
                atoms.set_cell(length);
            else
                atoms.cell = {}, atoms.periodic = {};
            atoms.move(0.01);
            Seen seen(7);
            evaluator->evaluate(atoms.view(), {}, seen.outputs(), team);
            seen.check(atoms);
        }
    }
}

TEST_CASE("a batch sees the positions and the cells of its systems") {
    if (!has_gpu()) return;
    ThreadTeam team(1);
    const auto evaluator = make_evaluator(0);
    for (const bool is_periodic : {true, false})
        for (int repeat = 0; repeat < 4; ++repeat) {
            CAPTURE(is_periodic);
            CAPTURE(repeat);
            std::vector<Atoms> systems(3, Atoms(4));
            std::vector<SystemView> views;
            std::vector<Seen> seen(3, Seen(4));
            std::vector<Outputs> outputs;
            std::vector<int64_t> first = {0}, reverse;
            std::vector<int32_t> sender;
            Numbers vector, distance;
            for (size_t s = 0; s < 3; ++s) {
                systems[s].move(0.1 * repeat + static_cast<double>(s));
                if (is_periodic) systems[s].set_cell(8 + repeat + static_cast<double>(s));
                views.push_back(systems[s].view());
                outputs.push_back(seen[s].outputs());
                for (int i = 0; i < 4; ++i) first.push_back(0);
            }
            Edges none;  // the model reads none
            none.atom_count = 12;
            none.first = first.data();
            none.sender = sender.data();
            none.vector = vector.data();
            none.distance = distance.data();
            none.reverse = reverse.data();
            evaluator->batches()->evaluate_batch(views, none, outputs, team);
            for (size_t s = 0; s < 3; ++s) {
                if (!is_periodic) {  // they are placed side by side
                    for (size_t k = 0; k < 3; ++k) {
                        const double shift = seen[s].forces[k] - systems[s].positions[k];
                        for (size_t i = 0; i < 4; ++i) seen[s].forces[3 * i + k] -= shift;
                    }
                    CHECK_ALL_CLOSE(seen[s].forces, systems[s].positions, 1e-12);
                    seen[s].forces = systems[s].positions;
                }
                seen[s].check(systems[s]);
            }
        }
}

TEST_CASE("steps that nobody waits for keep the cells that they were enqueued with") {
    if (!has_gpu()) return;
    ThreadTeam team(1);
    const auto evaluator = make_evaluator(0.5);
    DeviceStepper& stepper = *evaluator->device_stepper();
    const auto stream = static_cast<cudaStream_t>(stepper.stream());
    Atoms atoms(5);

    struct Motion : DeviceMotion {
        gpu::DeviceBuffer<double> at, totals;
        int64_t id() const override { return 77001; }
        const double* positions() const override { return at.data(); }
        void enqueue_move(void*) override {}
        void enqueue_finish(const DeviceStepResults& results, void* to) override {
            gpu::check(cudaMemcpyAsync(totals.data(), results.totals, gpu::kTotalCount * sizeof(double),
                                       cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(to)),
                       "copying");
        }
    } motion;
    motion.at.upload(atoms.positions.data(), static_cast<int64_t>(atoms.positions.size()), "the test", stream);
    motion.totals.resize_discard(gpu::kTotalCount, "the test");
    constexpr int kSteps = 12;
    gpu::DeviceBuffer<double> history;
    history.resize_discard(kSteps * gpu::kTotalCount, "the test");
    Numbers expected;
    for (int step = 0; step < kSteps; ++step) {
        atoms.set_cell(9 + step / 3);
        if (stepper.has_neighbors(atoms.view()))
            stepper.enqueue_step(atoms.view(), motion, {.virial = true}, team);
        else
            stepper.enqueue_searched_step(atoms.view(), motion, {.virial = true}, team);
        gpu::check(cudaMemcpyAsync(history.data() + step * gpu::kTotalCount, motion.totals.data(),
                                   gpu::kTotalCount * sizeof(double), cudaMemcpyDeviceToDevice, stream),
                   "copying");
        expected.push_back(atoms.energy());
        for (const double x : atoms.cell_numbers()) expected.push_back(x);
    }
    Numbers found(expected.size(), NAN);
    history.download(found.data(), static_cast<int64_t>(found.size()), stream);
    gpu::check(cudaStreamSynchronize(stream), "waiting");
    CHECK(found == expected);
}

TEST_CASE("a domain sees its ghosts and the cell of the whole system") {
    if (!has_gpu()) return;
    ThreadTeam team(1);
    const auto evaluator = make_evaluator(0);
    struct Silent : HaloExchange {
        void exchange(const void*, void*, size_t) override {}
    } exchange;
    for (int repeat = 0; repeat < 3; ++repeat) {
        Atoms whole(6);
        whole.set_cell(9 + repeat);
        whole.move(0.2 * repeat);
        const std::vector<int64_t> first = {0, 1, 2, 3, 3};
        const std::vector<int32_t> neighbors = {1, 0, 4}, source = {-1, -2};
        Domain domain;
        domain.atoms = whole.view();
        domain.atoms.cell = {};
        domain.atoms.periodic = {};
        domain.owned_count = 4;
        domain.cell = whole.cell;
        domain.periodic = whole.periodic;
        domain.first = first.data();
        domain.neighbors = neighbors.data();
        domain.halo = {{}, 0, source, &exchange};
        Seen seen(6);
        evaluator->domains()->evaluate_domain(domain, {}, seen.outputs(), team);
        seen.check(whole);
    }
}
