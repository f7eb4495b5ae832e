// SPDX-License-Identifier: MIT
// The GPU list against the CPU list, whole arrays in order and to the last bit, and against the oracle.
// Tests that need a GPU pass without one, unless MLFF_REQUIRE_GPU is set (scripts/test --gpu).
#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "gpu/neighbors/gpu_neighbor_list.h"
#include "gpu/runtime/gpu.h"
#include "neighbor_systems.h"
#ifdef MLFF_HAS_CUDA
#include <cuda_runtime.h>

#include "gpu/neighbors/exclusive_scan.h"
#include "gpu/runtime/device_buffer.h"
#include "test_gpu_support.h"
#endif

using namespace mlff;
using namespace mlff::testing;

TEST_CASE("options that make no sense are refused with and without a GPU") {
    CHECK(contains(message_of(Status::argument, [] { GpuNeighborList<double> list(with_cutoff(-1)); }), "cutoff"));
    NeighborOptions options = with_cutoff(3);
    options.skin = -1;
    CHECK(contains(message_of(Status::argument, [&] { GpuNeighborList<float> list(options); }), "skin"));
    options.skin = 0;
    options.half = options.want_reverse = true;
    CHECK(contains(message_of(Status::argument, [&] { GpuNeighborList<float> list(options); }), "half"));
}

TEST_CASE("without a GPU a list cannot be made, and says so") {
    if (!gpu_inventory().gpus.empty()) return;
    const std::string message = message_of(Status::device, [] { GpuNeighborList<double> list(with_cutoff(3)); });
    CHECK(message != "nothing was thrown");
    CHECK_FALSE(message.empty());
}

#ifdef MLFF_HAS_CUDA

namespace {

void require_success(cudaError_t status) {
    const std::string error = cudaGetErrorString(status);
    CAPTURE(error);
    REQUIRE(status == cudaSuccess);
}

// Positions on the device.
class DevicePositions {
public:
    DevicePositions() = default;
    explicit DevicePositions(const std::vector<double>& positions) { upload(positions); }
    DevicePositions(const DevicePositions&) = delete;
    DevicePositions& operator=(const DevicePositions&) = delete;
    ~DevicePositions() { cudaFree(data_); }

    // Keeps the memory if the size is the same.
    void upload(const std::vector<double>& positions) {
        if (positions.size() != size_) {
            require_success(cudaFree(data_));
            data_ = nullptr;
            size_ = positions.size();
            if (size_ > 0) require_success(cudaMalloc(&data_, size_ * sizeof(double)));
        }
        if (size_ > 0)
            require_success(cudaMemcpy(data_, positions.data(), size_ * sizeof(double), cudaMemcpyHostToDevice));
    }
    const double* data() const { return data_; }

private:
    double* data_ = nullptr;
    size_t size_ = 0;
};

template <class Real>
void update(GpuNeighborList<Real>& list, const Atoms& atoms) {
    const DevicePositions positions(atoms.positions);
    SystemView system = atoms.view();
    system.positions = positions.data();
    list.update(system, nullptr);
}

template <class T>
std::vector<T> download(const T* data, int64_t count) {
    std::vector<T> host(static_cast<size_t>(data ? count : 0));
    if (!host.empty()) require_success(cudaMemcpy(host.data(), data, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

// All arrays of a list; those that are not wanted are empty.
template <class Real>
struct Arrays {
    std::vector<int64_t> first;
    std::vector<int32_t> sender;
    std::vector<int32_t> shift;
    std::vector<Real> vector;
    std::vector<Real> distance;
    std::vector<int64_t> reverse;
    bool operator==(const Arrays&) const = default;
};

template <class Real>
Arrays<Real> arrays_of(const GpuEdges<Real>& edges) {
    const int64_t count = download(edges.report, 1).at(0).edge_count;
    REQUIRE(count <= edges.edge_capacity);
    return {
        download(edges.first, edges.atom_count + 1), download(edges.sender, count),   download(edges.shift, 3 * count),
        download(edges.vector, 3 * count),           download(edges.distance, count), download(edges.reverse, count)};
}

template <class Real, class T>
std::vector<Real> rounded(const T* data, int64_t count) {
    return data ? std::vector<Real>(data, data + count) : std::vector<Real>();
}

template <class Real>
Arrays<Real> arrays_of(const Edges& edges) {
    const int64_t count = edges.edge_count;
    return {rounded<int64_t>(edges.first, edges.atom_count + 1),
            rounded<int32_t>(edges.sender, count),
            rounded<int32_t>(edges.shift, 3 * count),
            rounded<Real>(edges.vector, 3 * count),
            rounded<Real>(edges.distance, count),
            rounded<int64_t>(edges.reverse, count)};
}

// Zeros of different sign are equal for ==, so the bits are compared as well.
template <class Real>
bool same_bits(const std::vector<Real>& a, const std::vector<Real>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0);
}

template <class Real>
bool matches_cpu(const GpuNeighborList<Real>& list, const Atoms& atoms) {
    NeighborList cpu(list.options());
    cpu.update(atoms.view(), team());
    const Arrays<Real> found = arrays_of(list.edges());
    const Arrays<Real> expected = arrays_of<Real>(cpu.edges());
    return list.edges().atom_count == atoms.view().atom_count && list.edge_count() == cpu.edges().edge_count &&
           found == expected && same_bits(found.vector, expected.vector) &&
           same_bits(found.distance, expected.distance);
}

bool matches_oracle(const GpuNeighborList<double>& list, const Atoms& atoms) {
    const Arrays<double> found = arrays_of(list.edges());
    const int64_t atom_count = atoms.view().atom_count;
    return list.edges().atom_count == atom_count && list.edge_count() == static_cast<int64_t>(found.sender.size()) &&
           sorted(list_edges(found, atom_count)) == sorted(expected_edges(atoms.view(), list.options()));
}

// Searched afresh, the list is that of the CPU in order and bits, and the oracle has the same edges.
bool is_right(const Atoms& atoms, const NeighborOptions& options) {
    GpuNeighborList<double> list(options);
    update(list, atoms);
    return matches_cpu(list, atoms) && matches_oracle(list, atoms);
}

std::string cpu_refusal(const Atoms& atoms, double cutoff) {
    NeighborList list(with_cutoff(cutoff));
    return message_of(Status::system, [&] { list.update(atoms.view(), team()); });
}
std::string gpu_refusal(const Atoms& atoms, double cutoff) {
    GpuNeighborList<double> list(with_cutoff(cutoff));
    return message_of(Status::system, [&] { update(list, atoms); });
}

// A stream, and a graph of what is enqueued to it.
class CapturedSteps {
public:
    CapturedSteps() { require_success(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    CapturedSteps(const CapturedSteps&) = delete;
    CapturedSteps& operator=(const CapturedSteps&) = delete;
    ~CapturedSteps() {
        if (steps_) cudaGraphExecDestroy(steps_);
        cudaStreamDestroy(stream_);
    }

    // Once.
    template <class Enqueue>
    void capture(const Enqueue& enqueue) {
        cudaGraph_t graph = nullptr;
        require_success(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
        enqueue(stream_);
        require_success(cudaStreamEndCapture(stream_, &graph));
        require_success(cudaGraphInstantiate(&steps_, graph, 0));
        require_success(cudaGraphDestroy(graph));
    }
    void replay() {
        require_success(cudaGraphLaunch(steps_, stream_));
        require_success(cudaStreamSynchronize(stream_));
    }
    cudaStream_t stream() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
    cudaGraphExec_t steps_ = nullptr;
};

}  // namespace

TEST_CASE("GPU: an exclusive scan of few and many counts") {
    if (!has_gpu()) return;
    Random random(17);
    const gpu::ExclusiveScan scan;
    for (const int64_t count : {1, 2, 31, 1023, 1024, 1025, 70001, 1 << 20, (1 << 20) + 1, 3000001}) {
        std::vector<int32_t> counts(static_cast<size_t>(count));
        for (int32_t& value : counts) value = random.integer(0, count < 2000 ? 1 << 20 : 2000);
        std::vector<int64_t> expected(counts.size());
        std::exclusive_scan(counts.begin(), counts.end(), expected.begin(), int64_t{0});
        gpu::DeviceBuffer<int32_t> input;
        gpu::DeviceBuffer<int64_t> sums;
        gpu::DeviceBuffer<int32_t> short_sums;
        input.resize_discard(count, "a test");
        sums.resize_discard(count, "a test");
        short_sums.resize_discard(count, "a test");
        require_success(
            cudaMemcpy(input.data(), counts.data(), counts.size() * sizeof(int32_t), cudaMemcpyHostToDevice));
        scan.run(input.data(), count, sums.data(), nullptr);
        CAPTURE(count);
        CHECK(download<int64_t>(sums.data(), count) == expected);
        if (expected.back() > std::numeric_limits<int32_t>::max()) continue;
        scan.run(input.data(), count, short_sums.data(), nullptr);
        CHECK(download<int32_t>(short_sums.data(), count) == std::vector<int32_t>(expected.begin(), expected.end()));
    }
}

TEST_CASE("GPU: random cells give the edges of the CPU list in its order and of the oracle, bit for bit") {
    if (!has_gpu()) return;
    Random random(1);
    for (int round = 0; round < 1500; ++round) {
        const Atoms atoms = random_atoms(random, round % 10 == 0 ? 60 : 12);
        NeighborOptions options = with_cutoff(random_cutoff(random, atoms));
        options.half = random.integer(0, 3) == 0;
        options.want_reverse = !options.half;
        options.is_brute_force = round % 5 == 0;
        CAPTURE(round);
        REQUIRE(is_right(atoms, options));
    }
}

TEST_CASE("GPU: one list serves systems of changing size") {
    if (!has_gpu()) return;
    Random random(2);
    GpuNeighborList<double> list(with_cutoff(4.0));
    for (int round = 0; round < 200; ++round) {
        const Atoms atoms = round % 20 == 19 ? liquid(random, random.integer(3, 8)) : random_atoms(random, 30);
        update(list, atoms);
        CAPTURE(round);
        REQUIRE(matches_cpu(list, atoms));
        REQUIRE(matches_oracle(list, atoms));
    }
    CHECK(list.build_count() == 200);
}

TEST_CASE("GPU: cutoffs exactly at distances that occur") {
    if (!has_gpu()) return;
    Atoms atoms = simple_cubic(6 * 0.7);
    atoms.positions.clear();
    for (int i = 0; i < 216; ++i)
        for (const int cell : {i % 6, i / 6 % 6, i / 36}) atoms.positions.push_back(0.7 * cell);
    for (const double cutoff : {0.7, std::sqrt(2.0) * 0.7, 1.4, 2.1, 0.7 * std::sqrt(5.0)})
        CHECK(is_right(atoms, with_cutoff(cutoff)));
}

TEST_CASE("GPU: liquids of many bins, also deformed, as slabs, wires and clusters") {
    if (!has_gpu()) return;
    Random random(3);
    for (const bool half : {false, true}) {
        NeighborOptions options = with_cutoff(4.5);
        options.half = half;
        CHECK(is_right(liquid(random, 9), options));
    }
    for (int round = 0; round < 16; ++round) {
        const Atoms cubic = liquid(random, 6);
        Atoms atoms;
        atoms.cell = random_cell(random);
        for (size_t k = 0; k < 3; ++k) atoms.periodic[k] = (round >> k & 1) != 0;
        for (size_t k = 0; k < cubic.positions.size(); k += 3)
            for (size_t axis = 0; axis < 3; ++axis)
                atoms.positions.push_back((cubic.positions[k] * atoms.cell[0][axis] +
                                           cubic.positions[k + 1] * atoms.cell[1][axis] +
                                           cubic.positions[k + 2] * atoms.cell[2][axis]) /
                                          cubic.cell[0][0]);
        const double spacing = std::cbrt(std::abs(determinant(atoms.cell)) / 216);
        CAPTURE(round);
        CHECK(is_right(atoms, with_cutoff(random.uniform(1, 2.5) * spacing)));
    }
}

TEST_CASE("GPU: strongly skewed cells, atoms far outside, stray atoms") {
    if (!has_gpu()) return;
    Random random(4);
    for (const double skew : {3.0, 17.5, -40.0}) {
        Atoms atoms = liquid(random, 4);
        for (size_t axis = 0; axis < 3; ++axis) {
            atoms.cell[1][axis] += skew * atoms.cell[0][axis];
            atoms.cell[2][axis] -= 2 * skew * atoms.cell[1][axis];
        }
        CHECK(is_right(atoms, with_cutoff(3.0)));
    }
    for (const double distance : {1e3, 1e5, 1e7}) {
        Atoms atoms = liquid(random, 4);
        for (size_t k = 0; k < atoms.positions.size(); k += 7)
            atoms.positions[k] += 8.8 * std::floor(random.uniform(-distance, distance));
        CHECK(is_right(atoms, with_cutoff(4.0)));
        atoms.periodic = {false, true, false};
        CHECK(is_right(atoms, with_cutoff(4.0)));
    }
    Atoms atoms = liquid(random, 7);
    atoms.periodic = {false, false, false};
    const std::array<double, 12> stray = {1e5, -1e5, 2e5, 1e5, -1e5, 2e5 + 1, -3e5, 0, 0, 1e5, 1e5, 1e5};
    atoms.positions.insert(atoms.positions.end(), stray.begin(), stray.end());
    for (const bool periodic : {false, true}) {
        atoms.periodic[1] = periodic;
        CHECK(is_right(atoms, with_cutoff(4.0)));
    }
}

TEST_CASE("GPU: a cell much smaller than the cutoff, and a cutoff without bounds") {
    if (!has_gpu()) return;
    Atoms atoms = simple_cubic(1.1);
    atoms.positions = {0.1, 0.2, 0.3, 40.7, -3.2, 0.9};
    CHECK(is_right(atoms, with_cutoff(9.0)));
    atoms.cell[2] = {0, 0, 0};
    atoms.periodic[2] = false;
    CHECK(is_right(atoms, with_cutoff(30.0)));
    Atoms cluster;
    for (int k = 0; k < 30; ++k) cluster.positions.push_back(k % 3 == 0 ? 1e7 * k : k);
    CHECK(is_right(cluster, with_cutoff(1e300)));
}

TEST_CASE("GPU: coincident atoms and many atoms in one bin") {
    if (!has_gpu()) return;
    Atoms atoms = simple_cubic(9.0);
    atoms.positions = {1, 2, 3, 1, 2, 3};
    CHECK(is_right(atoms, with_cutoff(1.0)));
    Random random(5);
    atoms.positions.clear();
    for (int k = 0; k < 3 * 700; ++k) atoms.positions.push_back(random.uniform(4, 4.01));
    CHECK(is_right(atoms, with_cutoff(0.005)));
    CHECK(is_right(atoms, with_cutoff(1.0)));
}

TEST_CASE("GPU: no atoms and one atom") {
    if (!has_gpu()) return;
    NeighborOptions options = with_cutoff(3.0);
    options.skin = 0.5;
    options.want_reverse = true;
    GpuNeighborList<double> list(options);
    Atoms atoms = simple_cubic(9.0);
    for (const bool periodic : {true, false})
        for (const int count : {0, 1, 0})
            for (int repeat = 0; repeat < 2; ++repeat) {
                atoms.periodic = {periodic, periodic, periodic};
                atoms.positions.assign(static_cast<size_t>(3 * count), -100);
                update(list, atoms);
                CHECK(list.was_reused() == (repeat == 1));
                CHECK(list.edge_count() == 0);
                CHECK(matches_cpu(list, atoms));
            }
    atoms.positions.clear();
    atoms.cell[2] = atoms.cell[1];
    atoms.periodic = {true, true, true};
    CHECK(contains(message_of(Status::system, [&] { update(list, atoms); }), "flat"));
}

TEST_CASE("GPU: a large list is that of the CPU, and two runs give the same bits") {
    if (!has_gpu()) return;
    Random random(6);
    const Atoms atoms = liquid(random, 52);  // more than one item for each thread of a reduction
    NeighborOptions options = with_cutoff(3.5);
    options.want_reverse = true;
    GpuNeighborList<double> list(options);
    update(list, atoms);
    const Arrays<double> first = arrays_of(list.edges());
    CHECK(list.edge_count() > 2000000);
    CHECK(matches_cpu(list, atoms));
    update(list, atoms);
    CHECK(arrays_of(list.edges()) == first);
    GpuNeighborList<double> other(options);
    update(other, atoms);
    CHECK(arrays_of(other.edges()) == first);
}

TEST_CASE("GPU: the reverse edge comes from the other end with the opposite shift and vector") {
    if (!has_gpu()) return;
    Random random(7);
    for (int round = 0; round < 100; ++round) {
        const Atoms atoms = round == 0 ? liquid(random, 12) : random_atoms(random, 20);
        NeighborOptions options = with_cutoff(round == 0 ? 4.5 : random.uniform(1, 7));
        options.want_reverse = true;
        GpuNeighborList<double> list(options);
        update(list, atoms);
        const Arrays<double> edges = arrays_of(list.edges());
        bool right = edges.reverse.size() == edges.sender.size();
        for (size_t atom = 0; right && atom + 1 < edges.first.size(); ++atom)
            for (auto edge = static_cast<size_t>(edges.first[atom]); edge < static_cast<size_t>(edges.first[atom + 1]);
                 ++edge) {
                const auto other = static_cast<size_t>(edges.reverse[edge]);
                const auto from = static_cast<size_t>(edges.sender[edge]);
                REQUIRE(other < edges.sender.size());
                right =
                    right && edges.reverse[edge] >= edges.first[from] && edges.reverse[edge] < edges.first[from + 1] &&
                    static_cast<size_t>(edges.sender[other]) == atom &&
                    edges.reverse[other] == static_cast<int64_t>(edge) && edges.distance[other] == edges.distance[edge];
                for (size_t k = 0; k < 3; ++k)
                    right = right && edges.shift[3 * other + k] == -edges.shift[3 * edge + k] &&
                            edges.vector[3 * other + k] == -edges.vector[3 * edge + k];
            }
        CAPTURE(round);
        REQUIRE(right);
    }
}

TEST_CASE("GPU: a list in single precision is the rounded list in double precision") {
    if (!has_gpu()) return;
    Random random(8);
    for (const double skin : {0.0, 1.0}) {
        NeighborOptions options = with_cutoff(4.5);
        options.skin = skin;
        options.want_reverse = true;
        GpuNeighborList<float> list(options);
        const Atoms atoms = liquid(random, 8);
        update(list, atoms);
        CHECK(list.edge_count() > 10000);
        CHECK(matches_cpu(list, atoms));
    }
}

TEST_CASE("GPU: arrays that are not wanted are null") {
    if (!has_gpu()) return;
    Random random(9);
    const Atoms atoms = liquid(random, 3);
    NeighborOptions options = with_cutoff(3.0);
    options.want_shifts = options.want_vectors = options.want_distances = false;
    GpuNeighborList<double> list(options);
    update(list, atoms);
    CHECK(list.edges().shift == nullptr);
    CHECK(list.edges().vector == nullptr);
    CHECK(list.edges().distance == nullptr);
    CHECK(list.edges().reverse == nullptr);
    CHECK(matches_cpu(list, atoms));
    options.want_reverse = true;
    GpuNeighborList<double> with_reverse(options);
    update(with_reverse, atoms);
    CHECK(with_reverse.edges().shift == nullptr);
    CHECK(matches_cpu(with_reverse, atoms));
}

TEST_CASE("GPU: random walks with skin stay exact, and reuse exactly when the CPU list does") {
    if (!has_gpu()) return;
    Random random(10);
    int64_t reused = 0;
    int64_t searched = 0;
    for (int walk = 0; walk < 40; ++walk) {
        Atoms atoms = walk == 0 ? liquid(random, 5) : random_atoms(random, 25);
        NeighborOptions options = with_cutoff(random.uniform(2, 5));
        options.skin = random.uniform(0.1, 1.5);
        options.half = random.integer(0, 3) == 0;
        options.want_reverse = !options.half;
        GpuNeighborList<double> list(options);
        NeighborList cpu(options);
        for (int step = 0; step < 25; ++step) {
            update(list, atoms);
            cpu.update(atoms.view(), team());
            CAPTURE(walk);
            CAPTURE(step);
            REQUIRE(list.was_reused() == cpu.was_reused());
            const Arrays<double> found = arrays_of(list.edges());
            const Arrays<double> expected = arrays_of<double>(cpu.edges());
            REQUIRE(found == expected);
            REQUIRE(same_bits(found.vector, expected.vector));
            REQUIRE(matches_oracle(list, atoms));
            ++(list.was_reused() ? reused : searched);
            for (double& coordinate : atoms.positions)
                coordinate += random.uniform(-0.1, 0.1) * (random.integer(0, 5) == 0 ? 1 : 0.1);
        }
    }
    CHECK(reused > 200);
    CHECK(searched > 100);
}

// Few atoms take one kernel: of one block, of several blocks, with more marks than shared memory holds.
TEST_CASE("GPU: edges of moved atoms are those of the CPU list for few and for many atoms") {
    if (!has_gpu()) return;
    struct Case {
        size_t atom_count;
        double cutoff;
    };
    const Case crowded = {1000, 20};
    Random random(21);
    const Atoms all = liquid(random, 15);
    for (const Case& of : {Case{1, 5}, Case{2, 5}, Case{31, 5}, Case{32, 5}, Case{33, 5}, Case{256, 5}, Case{257, 5},
                           crowded, Case{1023, 5}, Case{1024, 5}, Case{1025, 5}, Case{3000, 5}}) {
        CAPTURE(of.atom_count);
        Atoms atoms = all;
        REQUIRE(atoms.positions.size() > 3 * of.atom_count);
        atoms.positions.resize(3 * of.atom_count);
        NeighborOptions options = with_cutoff(of.cutoff);
        options.skin = 0.8;
        options.want_reverse = true;
        GpuNeighborList<double> list(options);
        NeighborList cpu(options);
        for (int step = 0; step < 3; ++step) {
            update(list, atoms);
            cpu.update(atoms.view(), team());
            REQUIRE(list.was_reused() == (step > 0));
            const Arrays<double> found = arrays_of(list.edges()), expected = arrays_of<double>(cpu.edges());
            REQUIRE(found == expected);
            REQUIRE(same_bits(found.vector, expected.vector));
            if (of.cutoff == crowded.cutoff) REQUIRE(found.sender.size() > 32 * 8192);
            for (double& coordinate : atoms.positions) coordinate += random.uniform(-0.05, 0.05);
        }
        const DevicePositions positions(atoms.positions);
        int* flag = nullptr;
        require_success(cudaMalloc(&flag, sizeof *flag));
        require_success(cudaMemset(flag, 0xff, sizeof *flag));
        list.enqueue_reuse(positions.data(), nullptr, flag);
        CHECK(download(flag, 1).at(0) == 0);
        require_success(cudaFree(flag));
    }
}

TEST_CASE("GPU: a changed cell, periodicity or atom count forces a search") {
    if (!has_gpu()) return;
    Random random(11);
    Atoms atoms = liquid(random, 4);
    NeighborOptions options = with_cutoff(4.0);
    options.skin = 1.0;
    GpuNeighborList<double> list(options);
    update(list, atoms);
    update(list, atoms);
    CHECK(list.was_reused());
    CHECK(list.build_count() == 1);
    atoms.cell[0][1] += 1e-9;
    update(list, atoms);
    CHECK_FALSE(list.was_reused());
    atoms.periodic[2] = false;
    update(list, atoms);
    CHECK_FALSE(list.was_reused());
    atoms.positions.resize(atoms.positions.size() - 3);
    update(list, atoms);
    CHECK_FALSE(list.was_reused());
    CHECK(list.build_count() == 4);
    CHECK(matches_oracle(list, atoms));
}

TEST_CASE("GPU: steps without the host, captured once in a graph and replayed") {
    if (!has_gpu()) return;
    Random random(12);
    Atoms atoms = liquid(random, 6);
    const std::vector<double> start = atoms.positions;
    NeighborOptions options = with_cutoff(4.0);
    options.skin = 0.5;
    options.want_reverse = true;
    GpuNeighborList<double> list(options);
    CHECK(contains(message_of(Status::argument, [&] { list.enqueue_reuse(nullptr, nullptr); }), "no candidates"));
    DevicePositions positions(atoms.positions);
    SystemView system = atoms.view();
    system.positions = positions.data();
    CapturedSteps steps;
    list.update(system, steps.stream());
    const int64_t generation = list.generation();
    steps.capture([&](cudaStream_t stream) { list.enqueue_reuse(positions.data(), stream); });

    for (int step = 0; step < 10; ++step) {
        for (size_t k = 0; k < start.size(); ++k) atoms.positions[k] = start[k] + random.uniform(-0.14, 0.14);
        positions.upload(atoms.positions);
        steps.replay();
        REQUIRE(download(list.edges().report, 1).at(0).search_needed == 0);
        const Arrays<double> found = arrays_of(list.edges());
        REQUIRE(sorted(list_edges(found, system.atom_count)) == sorted(expected_edges(atoms.view(), options)));
    }

    // Too far: the report says so, and after an update the same graph serves again.
    for (double& coordinate : atoms.positions) coordinate += 0.3;
    positions.upload(atoms.positions);
    steps.replay();
    CHECK(download(list.edges().report, 1).at(0).search_needed == 1);
    list.update(system, steps.stream());
    CHECK_FALSE(list.was_reused());
    CHECK(matches_oracle(list, atoms));
    CHECK(list.generation() == generation);
    atoms.positions[5] += 0.2;
    positions.upload(atoms.positions);
    steps.replay();
    CHECK(download(list.edges().report, 1).at(0).search_needed == 0);
    CHECK(sorted(list_edges(arrays_of(list.edges()), system.atom_count)) ==
          sorted(expected_edges(atoms.view(), options)));

    // Much too far: what is in the arrays is still safe to read.
    for (double& coordinate : atoms.positions) coordinate += random.uniform(-3, 3);
    positions.upload(atoms.positions);
    steps.replay();
    CHECK(download(list.edges().report, 1).at(0).search_needed == 1);
    const Arrays<double> wrong = arrays_of(list.edges());
    CHECK(wrong.first.back() == static_cast<int64_t>(wrong.sender.size()));
    for (size_t edge = 0; edge < wrong.sender.size(); ++edge) {
        REQUIRE((wrong.sender[edge] >= 0 && wrong.sender[edge] < system.atom_count));
        REQUIRE((wrong.reverse[edge] >= 0 && wrong.reverse[edge] < wrong.first.back()));
    }

    // Positions that are no numbers never count as near enough.
    atoms.positions[7] = std::numeric_limits<double>::quiet_NaN();
    positions.upload(atoms.positions);
    steps.replay();
    CHECK(download(list.edges().report, 1).at(0).search_needed == 1);

    // Another cell makes the graph void.
    atoms.positions = start;
    positions.upload(atoms.positions);
    system.cell[0][0] += 0.1;
    list.update(system, steps.stream());
    CHECK(list.generation() != generation);
}

TEST_CASE("GPU: a steady state keeps its memory") {
    if (!has_gpu()) return;
    Random random(13);
    for (const double skin : {0.0, 0.3}) {
        Atoms atoms = liquid(random, 6);
        NeighborOptions options = with_cutoff(4.0);
        options.skin = skin;
        options.want_reverse = true;
        GpuNeighborList<double> list(options);
        DevicePositions positions(atoms.positions);
        SystemView system = atoms.view();
        system.positions = positions.data();
        list.update(system, nullptr);
        GpuEdges<double> before = list.edges();
        const int64_t generation = list.generation();
        // Other processes take memory of the GPU and give it back: what the list kept is missing each time.
        size_t free_before = 0, free_after = 0, total = 0;
        for (int attempt = 0; attempt < 5 && (attempt == 0 || free_after < free_before); ++attempt) {
            require_success(cudaMemGetInfo(&free_before, &total));
            for (int step = 0; step < 20; ++step) {
                for (double& coordinate : atoms.positions) coordinate += random.uniform(-0.05, 0.05);
                positions.upload(atoms.positions);
                list.update(system, nullptr);
                before.edge_capacity = list.edges().edge_capacity;  // what is used of the memory varies
                CHECK(list.edges() == before);
            }
            require_success(cudaMemGetInfo(&free_after, &total));
        }
        CHECK(free_after >= free_before);
        CHECK(list.generation() == generation);
        CHECK(list.build_count() > 2);
        CHECK(matches_oracle(list, atoms));
    }
}

TEST_CASE("GPU: systems that cannot be searched are refused with the words of the CPU list") {
    if (!has_gpu()) return;
    const double infinity = std::numeric_limits<double>::infinity();
    Atoms atoms = simple_cubic(4.0);
    atoms.positions = {0, 0, 0, 1, 1, 1};
    const auto same_refusal = [](const Atoms& bad, double cutoff) {
        const std::string expected = cpu_refusal(bad, cutoff);
        CHECK(expected != "nothing was thrown");
        CHECK(gpu_refusal(bad, cutoff) == expected);
    };
    Atoms bad = atoms;
    bad.positions[4] = infinity;
    same_refusal(bad, 3);
    bad.positions[4] = std::numeric_limits<double>::quiet_NaN();
    same_refusal(bad, 3);
    bad.periodic = {false, false, false};
    same_refusal(bad, 3);
    bad = atoms;
    bad.positions[3] = 1e12;
    same_refusal(bad, 3);
    bad = atoms;
    bad.cell[0][0] = 1e-3;
    bad.positions[3] = 2e6;
    same_refusal(bad, 0.1);
    bad = atoms;
    bad.cell[2] = {0, 0, 0};
    same_refusal(bad, 3);
    bad = atoms;
    bad.cell[2] = {4, 4, 1e-9};
    same_refusal(bad, 3);
    bad = atoms;
    bad.cell[1][2] = infinity;
    same_refusal(bad, 3);
    same_refusal(atoms, 2003);
    same_refusal(atoms, 1990);
    SystemView huge = atoms.view();
    huge.atom_count = int64_t{1} << 31;
    GpuNeighborList<double> list(with_cutoff(3));
    CHECK(contains(message_of(Status::system, [&] { list.update(huge, nullptr); }), "2147483648 atoms"));
    huge.atom_count = -1;
    CHECK(contains(message_of(Status::argument, [&] { list.update(huge, nullptr); }), "-1"));
}

TEST_CASE("GPU: a list recovers after a refusal") {
    if (!has_gpu()) return;
    Random random(14);
    const Atoms good = liquid(random, 4);
    Atoms bad = good;
    bad.positions[10] = std::numeric_limits<double>::quiet_NaN();
    NeighborOptions options = with_cutoff(4.0);
    options.skin = 0.5;
    GpuNeighborList<double> list(options);
    update(list, good);
    CHECK(contains(message_of(Status::system, [&] { update(list, bad); }), "atom 3 is not finite"));
    CHECK(list.edges() == GpuEdges<double>{});
    CHECK(list.edge_count() == 0);
    CHECK(contains(message_of(Status::argument, [&] { list.enqueue_reuse(nullptr, nullptr); }), "no candidates"));
    update(list, good);
    CHECK_FALSE(list.was_reused());
    CHECK(matches_oracle(list, good));
}

TEST_CASE("GPU: an error that the caller left behind is neither blamed on the list nor hidden") {
    if (!has_gpu()) return;
    Random random(16);
    const Atoms atoms = liquid(random, 4);
    const DevicePositions positions(atoms.positions);
    SystemView system = atoms.view();
    system.positions = positions.data();
    GpuNeighborList<double> list(with_cutoff(4.0));
    REQUIRE(cudaSetDevice(-1) != cudaSuccess);
    list.update(system, nullptr);
    CHECK(cudaGetLastError() != cudaSuccess);
    CHECK(matches_oracle(list, atoms));
}

TEST_CASE("GPU: too little memory is an error that says how much, and the list works afterwards") {
    if (!has_gpu()) return;
    Random random(15);
    const Atoms small = liquid(random, 5);
    const Atoms large = liquid(random, 40);
    GpuNeighborList<double> list(with_cutoff(7.0));  // about 8.6 million edges of the large one
    update(list, small);
    size_t free_bytes = 0, total = 0;
    require_success(cudaMemGetInfo(&free_bytes, &total));
    const size_t left = size_t{96} << 20;
    REQUIRE(free_bytes > left);
    void* ballast = nullptr;
    require_success(cudaMalloc(&ballast, free_bytes - left));
    const std::string message = message_of(Status::memory, [&] { update(list, large); });
    CHECK(contains(message, "B free, but "));
    CHECK(list.edges() == GpuEdges<double>{});
    update(list, small);
    CHECK(matches_oracle(list, small));
    require_success(cudaFree(ballast));
    update(list, large);
    CHECK(list.edge_count() > 5000000);
    CHECK(matches_cpu(list, large));
}

#endif
