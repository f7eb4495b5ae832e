// SPDX-License-Identifier: MIT
// Times neighbour lists of water boxes on the GPU and prints JSON.
//
//   mlff_bench_gpu_neighbors [largest number of atoms]
//
// "search": update() without skin, a search every time, host round trips included.
// "reuse": a step with candidates from a search with a skin, replayed as a CUDA graph and as plain launches.
// Every repetition has other positions, which are on the device beforehand. Times by CUDA events, median of the
// repetitions with the smallest and the largest.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "gpu/neighbors/gpu_neighbor_list.h"

using namespace mlff;
using nlohmann::json;

namespace {

constexpr double kCutoff = 6.0;
constexpr double kSkin = 1.0;
constexpr double kSpacing = 3.1043;  // angstrom between molecules: 1 g/cm^3
constexpr int kPositionSets = 8;     // more data than the caches hold at the larger sizes
constexpr int kRepetitions = 40;

void require(cudaError_t status) {
    if (status != cudaSuccess) fail(Status::device, "CUDA: ", cudaGetErrorString(status));
}

// Molecules on a cubic lattice, turned and shaken at random.
std::vector<double> water_box(int per_edge) {
    std::mt19937_64 generator(static_cast<uint64_t>(per_edge));
    std::normal_distribution<double> normal;
    const auto unit_vector = [&] {
        const Vec3 v = {normal(generator), normal(generator), normal(generator)};
        const double length = std::hypot(v[0], v[1], v[2]);
        return Vec3{v[0] / length, v[1] / length, v[2] / length};
    };
    const double bond = 0.9572;
    const double half_angle = 104.52 / 2 * 3.14159265358979 / 180;
    std::vector<double> positions;
    for (int molecule = 0; molecule < per_edge * per_edge * per_edge; ++molecule) {
        const Vec3 along = unit_vector();
        const Vec3 other = unit_vector();
        Vec3 across = {along[1] * other[2] - along[2] * other[1], along[2] * other[0] - along[0] * other[2],
                       along[0] * other[1] - along[1] * other[0]};
        const double length = std::hypot(across[0], across[1], across[2]);
        const std::array<int, 3> cell = {molecule % per_edge, molecule / per_edge % per_edge,
                                         molecule / per_edge / per_edge};
        Vec3 oxygen;
        for (size_t k = 0; k < 3; ++k) oxygen[k] = kSpacing * cell[k] + 0.1 * normal(generator);
        for (const int side : {0, 1, -1})
            for (size_t k = 0; k < 3; ++k)
                positions.push_back(oxygen[k] + (side == 0
                                                     ? 0
                                                     : bond * (std::cos(half_angle) * along[k] +
                                                               side * std::sin(half_angle) * across[k] / length)));
    }
    return positions;
}

// The same atoms shaken a little, several times, on the device.
class ShakenPositions {
public:
    explicit ShakenPositions(const std::vector<double>& positions) {
        std::mt19937_64 generator(1);
        std::uniform_real_distribution<double> shake(-0.1, 0.1);
        std::vector<double> shaken(positions.size());
        for (double*& set : sets_) {
            for (size_t k = 0; k < positions.size(); ++k) shaken[k] = positions[k] + shake(generator);
            require(cudaMalloc(&set, shaken.size() * sizeof(double)));
            require(cudaMemcpy(set, shaken.data(), shaken.size() * sizeof(double), cudaMemcpyHostToDevice));
        }
    }
    ShakenPositions(const ShakenPositions&) = delete;
    ShakenPositions& operator=(const ShakenPositions&) = delete;
    ~ShakenPositions() {
        for (double* set : sets_) cudaFree(set);
    }
    const double* operator[](int repetition) const { return sets_[static_cast<size_t>(repetition % kPositionSets)]; }

private:
    std::array<double*, kPositionSets> sets_{};
};

struct Timer {
    cudaEvent_t begin, end;
    Timer() {
        require(cudaEventCreate(&begin));
        require(cudaEventCreate(&end));
    }
    ~Timer() {
        cudaEventDestroy(begin);
        cudaEventDestroy(end);
    }
};

template <class Step>
json time_steps(int64_t atoms, cudaStream_t stream, const Step& step) {
    Timer timer;
    std::vector<double> microseconds;
    for (int repetition = 0; repetition < 5 + kRepetitions; ++repetition) {
        require(cudaEventRecord(timer.begin, stream));
        step(repetition);
        require(cudaEventRecord(timer.end, stream));
        require(cudaEventSynchronize(timer.end));
        float milliseconds = 0;
        require(cudaEventElapsedTime(&milliseconds, timer.begin, timer.end));
        if (repetition >= 5) microseconds.push_back(1e3 * milliseconds);
    }
    std::sort(microseconds.begin(), microseconds.end());
    const double median = (microseconds[kRepetitions / 2 - 1] + microseconds[kRepetitions / 2]) / 2;
    return {{"repetitions", kRepetitions},
            {"median_us", median},
            {"min_us", microseconds.front()},
            {"max_us", microseconds.back()},
            {"median_ns_per_atom", 1e3 * median / static_cast<double>(atoms)}};
}

struct Arrays {
    const char* name;
    bool shifts, reverse;
};

template <class Real>
NeighborOptions options_for(const Arrays& arrays, double skin) {
    NeighborOptions options;
    options.cutoff = kCutoff;
    options.skin = skin;
    options.want_shifts = arrays.shifts;
    options.want_reverse = arrays.reverse;
    return options;
}

template <class Real>
json measure(const SystemView& box, const ShakenPositions& positions, const Arrays& arrays, cudaStream_t stream) {
    SystemView system = box;
    const auto at = [&](int repetition) {
        system.positions = positions[repetition];
        return system;
    };
    json result = {{"atoms", box.atom_count}, {"arrays", arrays.name}};
    {
        GpuNeighborList<Real> list(options_for<Real>(arrays, 0));
        result["search"] = time_steps(box.atom_count, stream, [&](int k) { list.update(at(k), stream); });
        result["edges"] = list.edge_count();
    }
    GpuNeighborList<Real> list(options_for<Real>(arrays, kSkin));
    list.update(at(0), stream);
    result["candidates"] = list.edges().edge_capacity;
    result["reuse_launches"] =
        time_steps(box.atom_count, stream, [&](int k) { list.enqueue_reuse(positions[k], stream); });
    std::array<cudaGraphExec_t, kPositionSets> graphs{};
    for (int k = 0; k < kPositionSets; ++k) {
        cudaGraph_t graph = nullptr;
        require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        list.enqueue_reuse(positions[k], stream);
        require(cudaStreamEndCapture(stream, &graph));
        require(cudaGraphInstantiate(&graphs[static_cast<size_t>(k)], graph, 0));
        require(cudaGraphDestroy(graph));
    }
    result["reuse_graph"] = time_steps(box.atom_count, stream, [&](int k) {
        require(cudaGraphLaunch(graphs[static_cast<size_t>(k % kPositionSets)], stream));
    });
    for (cudaGraphExec_t graph : graphs) require(cudaGraphExecDestroy(graph));
    GpuNeighborReport report;
    require(cudaMemcpy(&report, list.edges().report, sizeof report, cudaMemcpyDeviceToHost));
    if (report.search_needed != 0) fail(Status::internal, "the shaking is larger than the skin");
    return result;
}

// Driver, clocks and power as nvidia-smi gives them, right after the largest box.
std::string gpu_state() {
    std::string text;
    FILE* pipe = popen(
        "nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu "
        "--format=csv,noheader 2>/dev/null",
        "r");
    if (!pipe) return text;
    for (int letter; (letter = std::fgetc(pipe)) != EOF && letter != '\n';) text.push_back(static_cast<char>(letter));
    pclose(pipe);
    return text;
}

void run(int64_t largest) {
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, 0));
    int driver = 0, runtime = 0;
    require(cudaDriverGetVersion(&driver));
    require(cudaRuntimeGetVersion(&runtime));
    cudaStream_t stream = nullptr;
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    json report = {{"gpu", properties.name},      {"cuda_driver", driver},      {"cuda_runtime", runtime},
                   {"state_before", gpu_state()}, {"cutoff_angstrom", kCutoff}, {"skin_angstrom", kSkin},
                   {"results", json::array()}};
    for (const int per_edge : {4, 8, 16, 32, 55}) {
        const std::vector<double> positions = water_box(per_edge);
        SystemView box;
        box.atom_count = static_cast<int64_t>(positions.size() / 3);
        if (box.atom_count > largest) break;
        box.periodic = {true, true, true};
        for (size_t k = 0; k < 3; ++k) box.cell[k][k] = kSpacing * per_edge;
        const ShakenPositions shaken(positions);
        report["results"].push_back(measure<float>(box, shaken, {"float vectors, distances", false, false}, stream));
        report["results"].push_back(
            measure<double>(box, shaken, {"double vectors, distances, shifts", true, false}, stream));
        report["results"].push_back(
            measure<double>(box, shaken, {"double vectors, distances, shifts, reverse", true, true}, stream));
    }
    report["state_after"] = gpu_state();
    require(cudaStreamDestroy(stream));
    std::printf("%s\n", report.dump(1).c_str());
}

}  // namespace

int main(int count, char** arguments) {
    try {
        run(count > 1 ? std::atoll(arguments[1]) : 1000000);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_gpu_neighbors: %s\n", error.what());
        return 4;
    }
    return 0;
}
