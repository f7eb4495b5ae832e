// SPDX-License-Identifier: MIT
// C++17 over mlff.h: handles that free themselves, errors as exceptions. Header only; link libmlff.
//
//     mlff::Model model("builtin");
//     mlff::Session session(model);
//     mlff::Evaluation water = session.evaluate({numbers, positions});
#ifndef MLFF_MLFF_HPP
#define MLFF_MLFF_HPP

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <mlff/mlff.h>

namespace mlff {
inline namespace v0 {  // apart from the names inside a statically linked library

class StatusError : public std::runtime_error {
public:
    explicit StatusError(mlff_status status) : std::runtime_error(mlff_last_error()), status_(status) {}
    mlff_status status() const { return status_; }

private:
    mlff_status status_;
};

inline void check_status(mlff_status status) {
    if (status != MLFF_OK) throw StatusError(status);
}

// A handle that is freed with its owner.
template <auto free>
struct Free {
    template <class Handle>
    void operator()(Handle* handle) const {
        free(handle);
    }
};
template <class Handle, auto free>
using Owned = std::unique_ptr<Handle, Free<free>>;

// A model; copies share it.
class Model {
public:
    explicit Model(const std::string& path) {
        mlff_model* model = nullptr;
        check_status(mlff_model_load(path.c_str(), &model));
        model_ = std::shared_ptr<mlff_model>(model, mlff_model_free);
    }

    mlff_model_info info() const {
        mlff_model_info info{};
        info.struct_size = sizeof info;
        check_status(mlff_model_get_info(model_.get(), &info));
        return info;
    }
    std::vector<int32_t> elements() const {
        std::vector<int32_t> elements(static_cast<size_t>(info().element_count));
        check_status(
            mlff_model_get_elements(model_.get(), elements.data(), static_cast<int64_t>(elements.size()), nullptr));
        return elements;
    }
    std::vector<std::string> heads() const {
        std::vector<std::string> heads;
        for (int32_t i = 0; i < info().head_count; ++i) heads.emplace_back(mlff_model_head_name(model_.get(), i));
        return heads;
    }
    std::string class_name() const { return mlff_model_class_name(model_.get()); }
    std::string why_not_runnable() const { return mlff_model_why_not_runnable(model_.get()); }
    std::string description_json() const { return mlff_model_description_json(model_.get()); }

    const mlff_model* get() const { return model_.get(); }

private:
    std::shared_ptr<mlff_model> model_;
};

// Atoms by value. `cell` holds lattice vectors in rows; it may be left out if nothing is periodic.
struct Atoms {
    std::vector<int32_t> numbers;
    std::vector<double> positions;  // [atom][3], angstrom
    std::optional<std::array<double, 9>> cell;
    std::array<bool, 3> periodic{};
    double total_charge = 0;
    double spin_multiplicity = 1;

    mlff_system view() const {
        if (positions.size() != 3 * numbers.size())
            throw std::invalid_argument("mlff::Atoms: three coordinates for each atom are needed");
        mlff_system system{};
        system.struct_size = sizeof system;
        system.atom_count = static_cast<int64_t>(numbers.size());
        system.atomic_numbers = numbers.data();
        system.positions = positions.data();
        system.cell = cell ? cell->data() : nullptr;
        for (size_t k = 0; k < 3; ++k) system.periodic[k] = periodic[k];
        system.total_charge = total_charge;
        system.spin_multiplicity = spin_multiplicity;
        return system;
    }
    bool is_periodic() const { return periodic[0] || periodic[1] || periodic[2]; }
};

// How far the members of a committee are apart; see mlff_result.
struct Spread {
    double energy_per_atom = 0;
    std::vector<double> forces;  // [atom]
    double max_force = 0;
};

// What a trust meter says of each atom; see mlff_result.
struct Trust {
    std::vector<double> expected_errors;  // [atom], eV/angstrom
    std::vector<double> novelties;        // [atom]
};

struct Evaluation {
    double energy = 0;
    std::vector<double> forces;                   // [atom][3]
    std::vector<double> atom_energies;            // [atom]
    std::array<double, 9> virial{};               // [3][3] = -dE/dstrain
    std::optional<std::array<double, 6>> stress;  // xx yy zz yz xz xy; where something is periodic
    std::vector<double> descriptors;              // [atom][descriptor_count], if Options ask for them
    std::optional<Spread> spread;                 // of a committee
    std::optional<Trust> trust;                   // of a model with a trust meter
};

struct Options {
    std::string device = "auto";
    mlff_precision precision = MLFF_PRECISION_AUTO;
    int32_t thread_count = 0;
    std::string head;
    double neighbor_skin_angstrom = 0;
    bool exact_radial = false;
    int64_t gpu_memory_limit_bytes = 0;
    bool is_trajectory = false;
    bool want_descriptors = false;
    bool want_trust = true;  // where the model has a trust meter
};

struct HessianOptions {  // as mlff_hessian_options
    double step_angstrom = 0, symmetry_tolerance_angstrom = 0;
};

// Movable, not copyable; one thread at a time.
class Session {
public:
    explicit Session(const Model& model, const Options& options = {}) {
        mlff_session_options given{};
        given.struct_size = sizeof given;
        given.device = options.device.c_str();
        given.precision = options.precision;
        given.thread_count = options.thread_count;
        given.head = options.head.empty() ? nullptr : options.head.c_str();
        given.neighbor_skin_angstrom = options.neighbor_skin_angstrom;
        given.exact_radial = options.exact_radial;
        given.gpu_memory_limit_bytes = options.gpu_memory_limit_bytes;
        given.is_trajectory = options.is_trajectory;
        if (options.want_descriptors) descriptor_count_ = static_cast<size_t>(model.info().descriptor_count);
        if (options.want_descriptors && descriptor_count_ == 0)
            throw std::invalid_argument("mlff::Session: the model has no descriptors");
        has_spread_ = model.info().member_count > 0;
        mlff_session* session = nullptr;
        check_status(mlff_session_create(model.get(), &given, &session));
        session_.reset(session);
        has_trust_ = options.want_trust && info().has_trust_meter == 1;
    }

    Evaluation evaluate(const Atoms& atoms) { return std::move(evaluate(std::vector<Atoms>{atoms}).front()); }

    std::vector<Evaluation> evaluate(const std::vector<Atoms>& batch) {
        std::vector<Evaluation> evaluations(batch.size());
        std::vector<mlff_system> systems;
        std::vector<mlff_result> results;
        for (size_t i = 0; i < batch.size(); ++i) {
            Evaluation& evaluation = evaluations[i];
            systems.push_back(batch[i].view());
            evaluation.forces.resize(batch[i].positions.size());
            evaluation.atom_energies.resize(batch[i].numbers.size());
            evaluation.descriptors.resize(batch[i].numbers.size() * descriptor_count_);
            if (batch[i].is_periodic()) evaluation.stress.emplace();
            mlff_result result{};
            result.struct_size = sizeof result;
            result.energy = &evaluation.energy;
            result.forces = evaluation.forces.data();
            result.stress = evaluation.stress ? evaluation.stress->data() : nullptr;
            result.virial = evaluation.virial.data();
            result.atom_energies = evaluation.atom_energies.data();
            result.descriptors = descriptor_count_ > 0 ? evaluation.descriptors.data() : nullptr;
            if (has_spread_) {
                Spread& spread = evaluation.spread.emplace();
                spread.forces.resize(batch[i].numbers.size());
                result.sigma_energy_per_atom = &spread.energy_per_atom;
                result.sigma_forces = spread.forces.data();
                result.sigma_max_force = &spread.max_force;
            }
            if (has_trust_) {
                Trust& trust = evaluation.trust.emplace();
                trust.expected_errors.resize(batch[i].numbers.size());
                trust.novelties.resize(batch[i].numbers.size());
                result.expected_errors = trust.expected_errors.data();
                result.novelties = trust.novelties.data();
            }
            results.push_back(result);
        }
        check_status(mlff_session_evaluate_batch(session_.get(), static_cast<int64_t>(batch.size()), systems.data(),
                                                 results.data()));
        return evaluations;
    }

    // [3 atom][3 atom], eV/angstrom^2; the session needs Options::precision = MLFF_PRECISION_FP64.
    std::vector<double> hessian(const Atoms& atoms, const HessianOptions& options = {},
                                mlff_hessian_report* report = nullptr) {
        mlff_hessian_options given{};
        given.struct_size = sizeof given;
        given.step_angstrom = options.step_angstrom;
        given.symmetry_tolerance_angstrom = options.symmetry_tolerance_angstrom;
        if (report) report->struct_size = sizeof *report;
        std::vector<double> values(9 * atoms.numbers.size() * atoms.numbers.size());
        const mlff_system system = atoms.view();
        check_status(mlff_session_hessian(session_.get(), &system, &given, values.data(), report));
        return values;
    }

    mlff_session_info info() const {
        mlff_session_info info{};
        info.struct_size = sizeof info;
        check_status(mlff_session_get_info(session_.get(), &info));
        return info;
    }
    std::string device() const { return mlff_session_device(session_.get()); }
    std::string device_reason() const { return mlff_session_device_reason(session_.get()); }

    mlff_session* get() { return session_.get(); }

private:
    Owned<mlff_session, mlff_session_free> session_;
    size_t descriptor_count_ = 0;
    bool has_spread_ = false, has_trust_ = false;
};

// ---- Devices; names of them as in mlff.h: "auto", "cpu", "cuda", "cuda:1" ----

inline mlff_device_info device_info(const std::string& device = "auto") {
    mlff_device_info info{};
    info.struct_size = sizeof info;
    check_status(mlff_device_describe(device.c_str(), &info));
    return info;
}

inline mlff_device_memory device_memory(const std::string& device = "auto") {
    mlff_device_memory memory{};
    memory.struct_size = sizeof memory;
    check_status(mlff_device_get_memory(device.c_str(), &memory));
    return memory;
}

inline void synchronize(const std::string& device = "auto") { check_status(mlff_device_synchronize(device.c_str())); }

// A stream of a GPU; on the CPU its handle is null.
class Stream {
public:
    explicit Stream(const std::string& device = "auto") {
        mlff_stream* stream = nullptr;
        check_status(mlff_stream_create(device.c_str(), &stream));
        stream_.reset(stream);
    }
    void* handle() const { return mlff_stream_handle(stream_.get()); }  // a cudaStream_t
    void synchronize() { check_status(mlff_stream_synchronize(stream_.get())); }

private:
    Owned<mlff_stream, mlff_stream_free> stream_;
};

// Time between start() and stop(): of the CPU's clock, or between events in a stream of a GPU.
class Timer {
public:
    explicit Timer(const std::string& device = "cpu", void* stream = nullptr) {
        mlff_timer* timer = nullptr;
        check_status(mlff_timer_create(device.c_str(), stream, &timer));
        timer_.reset(timer);
    }
    void start() { check_status(mlff_timer_start(timer_.get())); }
    void stop() { check_status(mlff_timer_stop(timer_.get())); }
    double seconds() const {
        double seconds = 0;
        check_status(mlff_timer_get_seconds(timer_.get(), &seconds));
        return seconds;
    }

private:
    Owned<mlff_timer, mlff_timer_free> timer_;
};

// ---- Measurements ----

// Begins with a first reading; read() after each of several equal pieces of work.
class MemoryWatch {
public:
    explicit MemoryWatch(const std::string& device = "cpu") {
        mlff_memory_watch* watch = nullptr;
        check_status(mlff_memory_watch_create(device.c_str(), &watch));
        watch_.reset(watch);
    }
    void read() { check_status(mlff_memory_watch_read(watch_.get())); }
    mlff_memory_report report() {
        mlff_memory_report report{};
        report.struct_size = sizeof report;
        check_status(mlff_memory_watch_get_report(watch_.get(), &report));
        return report;
    }

private:
    Owned<mlff_memory_watch, mlff_memory_watch_free> watch_;
};

inline mlff_statistics statistics(const std::vector<double>& samples) {
    mlff_statistics statistics{};
    statistics.struct_size = sizeof statistics;
    check_status(mlff_get_statistics(samples.data(), static_cast<int64_t>(samples.size()), &statistics));
    return statistics;
}

struct MeasureOptions {  // 0: none
    int32_t warm_up_calls = 3;
    double warm_up_seconds = 0.2;
    int32_t least_samples = 20;
    int32_t most_samples = 1000;
    double seconds = 1;
    std::string device;  // to wait for after each call; "": none
};

// Seconds of each call, [function][sample]; functions take turns. What a function throws ends the measurement.
inline std::vector<std::vector<double>> measure(const std::vector<std::function<void()>>& functions,
                                                const MeasureOptions& options = {}) {
    if (functions.empty()) throw std::invalid_argument("mlff::measure: there are no functions");
    if (options.least_samples < 1 || options.most_samples < options.least_samples)
        throw std::invalid_argument("mlff::measure: expected 1 <= least_samples <= most_samples");
    struct Call {
        const std::function<void()>* function;
        std::exception_ptr problem;
    };
    std::vector<Call> calls;
    for (const std::function<void()>& function : functions) calls.push_back({&function, nullptr});
    std::vector<void*> user_data;
    for (Call& call : calls) user_data.push_back(&call);
    const mlff_measured_function run = [](void* data) -> int32_t {
        Call& call = *static_cast<Call*>(data);
        try {
            (*call.function)();
            return 0;
        } catch (...) {
            call.problem = std::current_exception();
            return 1;
        }
    };
    const std::vector<mlff_measured_function> runs(functions.size(), run);
    mlff_measure_options given{};
    given.struct_size = sizeof given;
    given.warm_up_calls = options.warm_up_calls == 0 ? -1 : options.warm_up_calls;  // in C, 0 is the default
    given.warm_up_seconds = options.warm_up_seconds == 0 ? -1 : options.warm_up_seconds;
    given.least_samples = options.least_samples;
    given.most_samples = options.most_samples;
    given.seconds = options.seconds == 0 ? -1 : options.seconds;
    given.device = options.device.empty() ? nullptr : options.device.c_str();
    const auto capacity = static_cast<size_t>(options.most_samples);
    std::vector<double> samples(functions.size() * capacity);
    int64_t count = 0;
    const mlff_status status = mlff_measure(static_cast<int64_t>(functions.size()), runs.data(), user_data.data(),
                                            &given, samples.data(), static_cast<int64_t>(capacity), &count);
    for (const Call& call : calls)
        if (call.problem) std::rethrow_exception(call.problem);
    check_status(status);
    std::vector<std::vector<double>> times;
    for (size_t i = 0; i < functions.size(); ++i) {
        const double* first = samples.data() + i * capacity;
        times.emplace_back(first, first + count);
    }
    return times;
}

inline std::vector<double> measure(const std::function<void()>& function, const MeasureOptions& options = {}) {
    return measure(std::vector<std::function<void()>>{function}, options).front();
}

}  // namespace v0
}  // namespace mlff

#endif
