// SPDX-License-Identifier: MIT
// Device pointers in the C interface, against the entry point for the host. Tests that need a GPU pass without one,
// unless MLFF_REQUIRE_GPU is set.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "gpu/runtime/gpu.h"
#include "mlff/mlff.h"
#include "test_gpu_support.h"
#include "test_mace_backends.h"

#ifdef MLFF_HAS_CUDA
#include <cuda_runtime.h>
#endif

using namespace mace_test;

namespace {

// A model and a session of the C interface.
struct Handles {
    mlff_model* model = nullptr;
    mlff_session* session = nullptr;

    Handles(const std::string& path, const char* device, mlff_precision precision) {
        mlff_session_options options{};
        options.struct_size = sizeof options;
        options.device = device;
        options.precision = precision;
        REQUIRE(mlff_model_load(path.c_str(), &model) == MLFF_OK);
        REQUIRE(mlff_session_create(model, &options, &session) == MLFF_OK);
    }
    Handles(const Handles&) = delete;
    ~Handles() {
        mlff_session_free(session);
        mlff_model_free(model);
    }
};

[[maybe_unused]] mlff_system system_of(const System& system, const double* positions) {
    mlff_system view{};
    view.struct_size = sizeof view;
    view.atom_count = static_cast<int64_t>(system.numbers.size());
    view.atomic_numbers = system.numbers.data();
    view.positions = positions;
    view.cell = system.cell[0].data();
    for (size_t k = 0; k < 3; ++k) view.periodic[k] = system.periodic[k];
    return view;
}

bool last_error_has(const char* text) { return std::string(mlff_last_error()).find(text) != std::string::npos; }

}  // namespace

TEST_CASE("device pointers are refused by sessions that are not on a GPU") {
    for (const char* device : {"cpu", "reference"}) {
        const Handles handles(golden_model("p09_l2_ell3").string(), device, MLFF_PRECISION_FP64);
        double energy = 7;
        mlff_system empty{};
        empty.struct_size = sizeof empty;
        mlff_result result{};
        result.struct_size = sizeof result;
        result.energy = &energy;
        CHECK(mlff_session_evaluate_device(handles.session, &empty, &result, nullptr) == MLFF_ERROR_UNSUPPORTED);
        CHECK(last_error_has("need a session on a GPU"));
        CHECK(last_error_has(device));
        CHECK(energy == 7);
        CHECK(mlff_session_evaluate_device(nullptr, &empty, &result, nullptr) == MLFF_ERROR_ARGUMENT);
        CHECK(mlff_session_evaluate_device(handles.session, nullptr, &result, nullptr) == MLFF_ERROR_ARGUMENT);
        CHECK(mlff_session_evaluate_device(handles.session, &empty, nullptr, nullptr) == MLFF_ERROR_ARGUMENT);
        CHECK(mlff_session_evaluate(handles.session, &empty, &result) == MLFF_OK);
        CHECK(energy == 0);
    }
}

#ifdef MLFF_HAS_CUDA

namespace {

// Numbers on the device.
class DeviceNumbers {
public:
    explicit DeviceNumbers(size_t count) : count_(count) {
        REQUIRE(cudaMalloc(&data_, count * sizeof(double)) == cudaSuccess);
        REQUIRE(cudaMemset(data_, 0xff, count * sizeof(double)) == cudaSuccess);
    }
    DeviceNumbers(const DeviceNumbers&) = delete;
    ~DeviceNumbers() { cudaFree(data_); }

    double* data() const { return data_; }
    std::vector<double> download() const {
        std::vector<double> numbers(count_);
        REQUIRE(cudaMemcpy(numbers.data(), data_, count_ * sizeof(double), cudaMemcpyDeviceToHost) == cudaSuccess);
        return numbers;
    }

private:
    double* data_ = nullptr;
    size_t count_;
};

}  // namespace

TEST_CASE("device pointers give the bits of the host's entry point, ordered after the caller's stream") {
    if (!has_gpu()) return;
    for (const char* name : {"p09_l2_ell3", "p04_density_agnesi_zbl"})
        for (const mlff_precision precision : {MLFF_PRECISION_MIXED, MLFF_PRECISION_FP64}) {
            CAPTURE(name);
            const auto path = golden_model(name);
            System system = random_crystal(*mace_test::Model(path).weights, 5, 60, 10.0);
            const Handles on_host(path.string(), "cuda", precision), on_device(path.string(), "cuda", precision);
            mlff_model_info info{};
            info.struct_size = sizeof info;
            REQUIRE(mlff_model_get_info(on_host.model, &info) == MLFF_OK);
            const size_t atoms = system.numbers.size(), width = static_cast<size_t>(info.descriptor_count);
            const DeviceNumbers positions(3 * atoms), energy(1), forces(3 * atoms), stress(6), virial(9),
                energies(atoms), virials(9 * atoms), descriptors(width * atoms);
            cudaStream_t stream = nullptr;
            REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
            double* pinned = nullptr;
            REQUIRE(cudaMallocHost(&pinned, 3 * atoms * sizeof(double)) == cudaSuccess);
            for (int step = 0; step < 5;
                 ++step) {  // a search, plain launches, capture, replay, and far enough for another search
                for (size_t i = 0; i < 3 * atoms; ++i)
                    system.positions[i] += (step == 4 ? 0.6 : 0.01) * static_cast<double>(i % 3);
                std::copy(system.positions.begin(), system.positions.end(), pinned);
                REQUIRE(cudaMemcpyAsync(positions.data(), pinned, 3 * atoms * sizeof(double), cudaMemcpyHostToDevice,
                                        stream) == cudaSuccess);
                const mlff_system device_system = system_of(system, positions.data()),
                                  host_system = system_of(system, system.positions.data());
                mlff_result device_result = {sizeof device_result, energy.data(),   forces.data(),  stress.data(),
                                             virial.data(),        energies.data(), virials.data(), descriptors.data()};
                REQUIRE(mlff_session_evaluate_device(on_device.session, &device_system, &device_result, stream) ==
                        MLFF_OK);
                std::vector<double> e(1), f(3 * atoms), s(6), v(9), es(atoms), vs(9 * atoms), d(width * atoms);
                mlff_result host_result = {sizeof host_result, e.data(),  f.data(),  s.data(),
                                           v.data(),           es.data(), vs.data(), d.data()};
                REQUIRE(mlff_session_evaluate(on_host.session, &host_system, &host_result) == MLFF_OK);
                CHECK(energy.download() == e);
                CHECK(forces.download() == f);
                CHECK(stress.download() == s);
                CHECK(virial.download() == v);
                CHECK(energies.download() == es);
                CHECK(virials.download() == vs);
                CHECK(descriptors.download() == d);
            }
            cudaFreeHost(pinned);
            cudaStreamDestroy(stream);
        }
}

TEST_CASE(
    "pointers of the host and bad atoms are refused on the device, nothing is written, and the session works on") {
    if (!has_gpu()) return;
    const auto path = golden_model("p09_l2_ell3");
    const System system = random_crystal(*mace_test::Model(path).weights, 6, 20, 8.0);
    const Handles handles(path.string(), "cuda", MLFF_PRECISION_FP64);
    const size_t atoms = system.numbers.size();
    const DeviceNumbers positions(3 * atoms), energy(1), forces(3 * atoms);
    std::vector<double> on_host(3 * atoms);
    mlff_system view = system_of(system, system.positions.data());
    mlff_result result{};
    result.struct_size = sizeof result;
    result.energy = energy.data();
    CHECK(mlff_session_evaluate_device(handles.session, &view, &result, nullptr) == MLFF_ERROR_ARGUMENT);
    CHECK(last_error_has("positions"));
    view.positions = positions.data();
    result.forces = on_host.data();
    CHECK(mlff_session_evaluate_device(handles.session, &view, &result, nullptr) == MLFF_ERROR_ARGUMENT);
    CHECK(last_error_has("forces"));
    result.forces = forces.data();
    CHECK(mlff_session_evaluate_device(handles.session, &view, &result, nullptr) ==
          MLFF_ERROR_SYSTEM);  // positions are NaN
    CHECK(std::isnan(energy.download()[0]));
    REQUIRE(cudaMemcpy(positions.data(), system.positions.data(), 3 * atoms * sizeof(double), cudaMemcpyHostToDevice) ==
            cudaSuccess);
    CHECK(mlff_session_evaluate_device(handles.session, &view, &result, nullptr) == MLFF_OK);
    check_close(forces.download(), mace_test::Model(path).evaluate(system).forces, kDouble.forces);
}

#endif
