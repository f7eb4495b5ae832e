// SPDX-License-Identifier: MIT
// mlff._core: the C interface for the Python package, and nothing more. The Python files handle defaults, conversions
// and messages about arguments. Values that arrive here have the right type; shapes are checked again only because a
// wrong one would access memory out of bounds.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <mlff/mlff.hpp>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T, class... Shape>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu, Shape...>;
using Numbers = Array<const int32_t, nb::ndim<1>>;
using Positions = Array<const double, nb::shape<-1, 3>>;
using Cell = Array<const double, nb::shape<3, 3>>;
using Output = Array<double>;

// An error raised by this file, with the status that Python's mlff.Error shows.
class Refusal : public std::runtime_error {
public:
    Refusal(mlff_status status, const char* message) : std::runtime_error(message), status_(status) {}
    mlff_status status() const { return status_; }

private:
    mlff_status status_;
};

// A message may contain a file name, which need not be UTF-8.
nb::object text(const char* message) {
    PyObject* decoded = PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "replace");
    if (!decoded) throw nb::python_error();
    return nb::steal(decoded);
}

// Sets the exception of mlff.errors for the status.
void set_python_error(mlff_status status, const char* message) {
    try {
        const nb::object error = nb::module_::import_("mlff.errors").attr("from_status")(status, text(message));
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    } catch (nb::python_error& other) {
        other.restore();
    }
}

void translate_errors(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const mlff::StatusError& error) {
        set_python_error(error.status(), error.what());
    } catch (const Refusal& error) {
        set_python_error(error.status(), error.what());
    }
}

// ---- Log lines ----

PyObject* log_handler = nullptr;  // used only while holding the GIL

void forward_log(mlff_log_level level, const char* message, void*) {
    const nb::gil_scoped_acquire gil;
    if (!log_handler) return;
    try {
        nb::borrow(log_handler)(level, text(message));
    } catch (nb::python_error& error) {
        error.discard_as_unraisable("the log handler of mlff");
    }
}

void set_log_handler(nb::object handler) {
    const bool is_wanted = !handler.is_none();
    const nb::object old = nb::steal(std::exchange(log_handler, is_wanted ? handler.release().ptr() : nullptr));
    const nb::gil_scoped_release no_gil;  // another thread may be in forward_log, waiting for the GIL
    mlff::check_status(mlff_set_log_callback(is_wanted ? forward_log : nullptr, MLFF_LOG_DEBUG, nullptr));
}

// ---- Models ----

void make_model(mlff::Model* place, const nb::bytes& path) {
    const std::string name(path.c_str(), path.size());
    const nb::gil_scoped_release no_gil;
    new (place) mlff::Model(name);
}

nb::dict model_info(const mlff::Model& model) {
    const mlff_model_info info = model.info();
    nb::dict result;
    result["cutoff"] = info.cutoff_angstrom;
    result["layer_count"] = info.layer_count;
    result["dtype"] = info.dtype == MLFF_DTYPE_FLOAT64 ? "float64" : "float32";
    result["parameter_count"] = info.parameter_count;
    result["is_runnable"] = info.is_runnable == 1;
    result["why_not_runnable"] = text(model.why_not_runnable().c_str());
    result["descriptor_count"] = info.descriptor_count;
    result["member_count"] = info.member_count;
    result["has_trust_meter"] = info.has_trust_meter == 1;
    result["alarm_error"] = info.alarm_error;
    result["class_name"] = text(model.class_name().c_str());
    result["energy_unit"] = text(mlff_model_energy_unit(model.get()));
    result["length_unit"] = text(mlff_model_length_unit(model.get()));
    nb::list heads;
    for (const std::string& head : model.heads()) heads.append(text(head.c_str()));
    result["heads"] = heads;
    result["elements"] = model.elements();
    return result;
}

// ---- Sessions ----

// One system with its outputs. Keeps the arrays alive while the GIL is released.
struct Job {
    Numbers numbers;
    Positions positions;
    Cell cell;
    std::vector<Output> outputs;
    mlff_system system{};
    mlff_result result{};
    double energy = 0;
};

// An output of `size` numbers; NULL for None.
double* output_pointer(Job& job, nb::handle object, size_t size) {
    if (object.is_none()) return nullptr;
    job.outputs.push_back(nb::cast<Output>(object, false));
    if (job.outputs.back().size() != size) throw nb::value_error("an output array has the wrong size");
    return job.outputs.back().data();
}

// (numbers, positions, cell or None, (a, b, c periodic), charge, spin, forces, stress, virial, atom_energies,
// atom_virials, descriptors, sigma_energy_per_atom [1], sigma_forces, sigma_max_force [1], expected_errors, novelties;
// these eleven or None)
void read_job(Job& job, const nb::tuple& given, size_t descriptor_count) {
    if (given.size() != 17) throw nb::value_error("a job must have 17 parts");
    job.numbers = nb::cast<Numbers>(given[0], false);
    job.positions = nb::cast<Positions>(given[1], false);
    const size_t atoms = job.numbers.shape(0);
    if (job.positions.shape(0) != atoms) throw nb::value_error("expected one position per atom");
    job.system.struct_size = sizeof job.system;
    job.system.atom_count = static_cast<int64_t>(atoms);
    job.system.atomic_numbers = job.numbers.data();
    job.system.positions = job.positions.data();
    if (!given[2].is_none()) {
        job.cell = nb::cast<Cell>(given[2], false);
        job.system.cell = job.cell.data();
    }
    const auto periodic = nb::cast<nb::tuple>(given[3]);
    if (periodic.size() != 3) throw nb::value_error("expected three flags for the periodic directions");
    for (size_t k = 0; k < 3; ++k) job.system.periodic[k] = nb::cast<bool>(periodic[k]);
    job.system.total_charge = nb::cast<double>(given[4]);
    job.system.spin_multiplicity = nb::cast<double>(given[5]);
    job.result.struct_size = sizeof job.result;
    job.result.energy = &job.energy;
    job.result.forces = output_pointer(job, given[6], 3 * atoms);
    job.result.stress = output_pointer(job, given[7], 6);
    job.result.virial = output_pointer(job, given[8], 9);
    job.result.atom_energies = output_pointer(job, given[9], atoms);
    job.result.atom_virials = output_pointer(job, given[10], 9 * atoms);
    job.result.descriptors = output_pointer(job, given[11], atoms * descriptor_count);
    job.result.sigma_energy_per_atom = output_pointer(job, given[12], 1);
    job.result.sigma_forces = output_pointer(job, given[13], atoms);
    job.result.sigma_max_force = output_pointer(job, given[14], 1);
    job.result.expected_errors = output_pointer(job, given[15], atoms);
    job.result.novelties = output_pointer(job, given[16], atoms);
}

// A session serves one thread at a time; others wait.
class LockedSession {
public:
    LockedSession(const mlff::Model& model, const mlff::Options& options)
        : process_(getpid()), descriptor_count_(static_cast<size_t>(model.info().descriptor_count)) {
        const nb::gil_scoped_release no_gil;
        session_ = std::make_unique<mlff::Session>(model, options);
    }
    ~LockedSession() { close(); }
    LockedSession(const LockedSession&) = delete;
    LockedSession& operator=(const LockedSession&) = delete;

    void close() {
        const nb::gil_scoped_release no_gil;
        if (process_ != getpid()) {  // a forked process does not have the session's threads,
                                     // so there is nothing to wait for
            static_cast<void>(session_.release());
            return;
        }
        const std::lock_guard lock(mutex_);
        session_.reset();
    }

    // Writes the arrays of each job in place, and returns the energies.
    std::vector<double> evaluate(const nb::list& given) {
        std::vector<Job> jobs(given.size());
        std::vector<mlff_system> systems;
        std::vector<mlff_result> results;
        for (size_t i = 0; i < jobs.size(); ++i) {
            read_job(jobs[i], nb::cast<nb::tuple>(given[i]), descriptor_count_);
            systems.push_back(jobs[i].system);
            results.push_back(jobs[i].result);
        }
        {
            const nb::gil_scoped_release no_gil;
            const std::unique_lock lock = own();
            mlff::check_status(mlff_session_evaluate_batch(session_->get(), static_cast<int64_t>(jobs.size()),
                                                           systems.data(), results.data()));
        }
        std::vector<double> energies;
        for (const Job& job : jobs) energies.push_back(job.energy);
        return energies;
    }

    // Writes the matrix [3 atoms][3 atoms] in place, and returns the report.
    nb::dict hessian(const nb::tuple& given, const Output& values, double step, double symmetry_tolerance) {
        Job job;
        read_job(job, given, descriptor_count_);
        const size_t width = 3 * job.numbers.shape(0);
        if (values.size() != width * width) throw nb::value_error("an output array has the wrong size");
        mlff_hessian_options options{};
        options.struct_size = sizeof options;
        options.step_angstrom = step;
        options.symmetry_tolerance_angstrom = symmetry_tolerance;
        mlff_hessian_report report{};
        report.struct_size = sizeof report;
        {
            const nb::gil_scoped_release no_gil;
            const std::unique_lock lock = own();
            mlff::check_status(mlff_session_hessian(session_->get(), &job.system, &options, values.data(), &report));
        }
        nb::dict result;
        result["step_error"] = report.step_error;
        result["asymmetry"] = report.asymmetry;
        result["sum_rule_error"] = report.sum_rule_error;
        result["evaluation_count"] = report.evaluation_count;
        result["operation_count"] = report.operation_count;
        result["is_extrapolated"] = report.is_extrapolated == 1;
        return result;
    }

    nb::dict info() {
        mlff_session_info info;
        std::string device, device_reason;
        {
            const nb::gil_scoped_release no_gil;
            const std::unique_lock lock = own();
            info = session_->info();
            device = session_->device();
            device_reason = session_->device_reason();
        }
        nb::dict result;
        result["device"] = device;
        result["device_reason"] = text(device_reason.c_str());
        result["precision"] = info.precision;
        result["thread_count"] = info.thread_count;
        result["evaluation_count"] = info.evaluation_count;
        result["neighbor_build_count"] = info.neighbor_build_count;
        result["has_trust_meter"] = info.has_trust_meter == 1;
        return result;
    }

private:
    // Locks the session. Call it without the GIL, because the current holder may be waiting for the GIL.
    std::unique_lock<std::mutex> own() {
        if (process_ != getpid())
            throw Refusal(
                MLFF_ERROR_ARGUMENT,
                "the session was created before this process was forked, and threads do not survive a fork: create "
                "one in each process");
        std::unique_lock lock(mutex_);
        if (!session_) throw Refusal(MLFF_ERROR_ARGUMENT, "the session is closed");
        return lock;
    }

    std::mutex mutex_;
    std::unique_ptr<mlff::Session> session_;
    pid_t process_;
    size_t descriptor_count_;
};

void make_session(LockedSession* place, const mlff::Model& model, const std::string& device, int precision,
                  int64_t threads, const std::string& head, double skin, bool exact_radial, int64_t gpu_memory_limit,
                  bool is_trajectory) {
    if (threads != static_cast<int32_t>(threads))
        throw Refusal(MLFF_ERROR_ARGUMENT, "the number of threads is too large");
    mlff::Options options;
    options.device = device;
    options.precision = precision;
    options.thread_count = static_cast<int32_t>(threads);
    options.head = head;
    options.neighbor_skin_angstrom = skin;
    options.exact_radial = exact_radial;
    options.gpu_memory_limit_bytes = gpu_memory_limit;
    options.is_trajectory = is_trajectory;
    new (place) LockedSession(model, options);
}

// ---- Neighbour lists ----

// A new numpy array with `rows` rows of `columns` numbers; columns = 0: one dimension.
template <class T>
nb::object copied(const T* values, int64_t rows, size_t columns = 0) {
    const size_t count = static_cast<size_t>(rows) * std::max<size_t>(columns, 1);
    auto copy = std::make_unique<T[]>(std::max<size_t>(count, 1));
    std::copy_n(values, count, copy.get());
    const size_t shape[2] = {static_cast<size_t>(rows), columns};
    const nb::capsule owner(copy.get(), [](void* pointer) noexcept { delete[] static_cast<T*>(pointer); });
    return nb::cast(nb::ndarray<nb::numpy, T>(copy.release(), columns > 0 ? 2 : 1, shape, owner));
}

nb::tuple find_neighbors(const Positions& positions, double cutoff, const nb::object& cell_object,
                         const std::vector<bool>& periodic, bool half, int threads) {
    mlff_system system{};
    system.struct_size = sizeof system;
    system.atom_count = static_cast<int64_t>(positions.shape(0));
    system.positions = positions.data();
    Cell cell;
    if (!cell_object.is_none()) {
        cell = nb::cast<Cell>(cell_object, false);
        system.cell = cell.data();
    }
    if (periodic.size() != 3) throw nb::value_error("expected three flags for the periodic directions");
    for (size_t k = 0; k < 3; ++k) system.periodic[k] = periodic[k];
    mlff_neighbor_options options{};
    options.struct_size = sizeof options;
    options.cutoff_angstrom = cutoff;
    options.half = half;
    options.thread_count = threads;
    options.want_shifts = options.want_vectors = options.want_distances = 1;
    mlff_neighbor_view view{};
    view.struct_size = sizeof view;
    struct Free {
        void operator()(mlff_neighbors* neighbors) const { mlff_neighbors_free(neighbors); }
    };
    std::unique_ptr<mlff_neighbors, Free> neighbors;
    {
        const nb::gil_scoped_release no_gil;
        mlff_neighbors* made = nullptr;
        mlff::check_status(mlff_neighbors_create(&options, &made));
        neighbors.reset(made);
        mlff::check_status(mlff_neighbors_update(made, &system));
        mlff::check_status(mlff_neighbors_get_view(made, &view));
    }
    return nb::make_tuple(copied(view.first, view.atom_count + 1), copied(view.sender, view.edge_count),
                          copied(view.shifts, view.edge_count, 3), copied(view.vectors, view.edge_count, 3),
                          copied(view.distances, view.edge_count));
}

// ---- Devices ----

nb::list devices() {
    nb::list result;
    for (int32_t index = 0; index < mlff_device_count(); ++index) {
        mlff_device_info info{};
        info.struct_size = sizeof info;
        mlff::check_status(mlff_device_get_info(index, &info));
        nb::dict device;
        device["name"] = text(info.name);
        device["compute_capability"] = info.compute_capability;
        device["memory_bytes"] = info.memory_bytes;
        result.append(device);
    }
    return result;
}

nb::dict device_info(const std::string& device) {
    const mlff_device_info info = mlff::device_info(device);
    nb::dict result;
    result["name"] = text(info.name);
    result["compute_capability"] = info.compute_capability;
    result["memory_bytes"] = info.memory_bytes;
    result["l2_cache_bytes"] = info.l2_cache_bytes;
    result["shared_memory_per_block_bytes"] = info.shared_memory_per_block_bytes;
    result["shared_memory_per_multiprocessor_bytes"] = info.shared_memory_per_multiprocessor_bytes;
    result["memory_bandwidth"] = info.memory_bandwidth;
    result["multiprocessor_count"] = info.multiprocessor_count;
    result["clock_kHz"] = info.clock_kHz;
    result["memory_clock_kHz"] = info.memory_clock_kHz;
    result["memory_bus_bits"] = info.memory_bus_bits;
    result["cuda_runtime_version"] = info.cuda_runtime_version;
    result["cuda_driver_version"] = info.cuda_driver_version;
    result["core_count"] = info.core_count;
    result["kernels"] = text(info.kernels);
    return result;
}

nb::tuple device_memory(const std::string& device) {
    const mlff_device_memory memory = [&] {
        const nb::gil_scoped_release no_gil;
        return mlff::device_memory(device);
    }();
    return nb::make_tuple(memory.total_bytes, memory.free_bytes, memory.used_bytes, memory.process_bytes);
}

void synchronize(const std::string& device) {
    const nb::gil_scoped_release no_gil;
    mlff::synchronize(device);
}

void make_timer(mlff::Timer* place, const std::string& device, uintptr_t stream) {
    new (place) mlff::Timer(device, reinterpret_cast<void*>(stream));
}

double timer_seconds(const mlff::Timer& timer) {
    const nb::gil_scoped_release no_gil;
    return timer.seconds();
}

void synchronize_stream(mlff::Stream& stream) {
    const nb::gil_scoped_release no_gil;
    stream.synchronize();
}

// ---- Measurements ----

using Samples = Array<const double, nb::ndim<1>>;

nb::dict statistics(const Samples& samples) {
    mlff_statistics found{};
    found.struct_size = sizeof found;
    mlff::check_status(mlff_get_statistics(samples.data(), static_cast<int64_t>(samples.shape(0)), &found));
    nb::dict result;
    result["mean"] = found.mean;
    result["median"] = found.median;
    result["std"] = found.deviation;
    result["minimum"] = found.minimum;
    result["maximum"] = found.maximum;
    result["p95"] = found.p95;
    result["p99"] = found.p99;
    result["interval"] = nb::make_tuple(found.median_low, found.median_high);
    result["outlier_count"] = found.outlier_count;
    return result;
}

nb::tuple median_ratio(const Samples& numerators, const Samples& denominators) {
    if (numerators.shape(0) != denominators.shape(0))
        throw nb::value_error("a ratio needs as many numerators as denominators");
    double ratio = 0, low = 0, high = 0;
    mlff::check_status(mlff_get_median_ratio(numerators.data(), denominators.data(),
                                             static_cast<int64_t>(numerators.shape(0)), &ratio, &low, &high));
    return nb::make_tuple(ratio, low, high);
}

// Calls Python functions without arguments, and returns an array of seconds for each. Ctrl-C ends it.
nb::list measure(const std::vector<nb::callable>& functions, int warm_up_calls, double warm_up_seconds,
                 int least_samples, int most_samples, double seconds, const std::string& device) {
    mlff::MeasureOptions options;
    options.warm_up_calls = warm_up_calls;
    options.warm_up_seconds = warm_up_seconds;
    options.least_samples = least_samples;
    options.most_samples = most_samples;
    options.seconds = seconds;
    options.device = device;
    std::vector<std::function<void()>> calls;
    for (const nb::callable& function : functions)
        calls.emplace_back([&function] {
            function();
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        });
    nb::list result;
    for (const std::vector<double>& times : mlff::measure(calls, options))
        result.append(copied(times.data(), static_cast<int64_t>(times.size())));
    return result;
}

nb::dict memory_report(mlff::MemoryWatch& watch) {
    const mlff_memory_report report = watch.report();
    nb::dict result;
    result["reading_count"] = report.reading_count;
    result["first"] = report.first_bytes;
    result["last"] = report.last_bytes;
    result["peak"] = report.peak_bytes;
    result["growth"] = report.growth_bytes;
    result["is_trend"] = report.is_trend == 1;
    result["is_leak"] = report.is_leak == 1;
    return result;
}

}  // namespace

NB_MODULE(_core, module) {
    nb::set_leak_warnings(false);  // objects that live until the interpreter ends are not a user error
    nb::register_exception_translator(translate_errors);

    module.def("version", [] { return mlff_version_string(); });
    module.def("abi_version", [] { return mlff_abi_version(); });
    module.attr("ABI_VERSION") = MLFF_ABI_VERSION;
    module.def("set_log_handler", set_log_handler, "handler"_a.none());
    module.def("devices", devices);
    module.def("device_info", device_info, "device"_a);
    module.def("device_memory", device_memory, "device"_a);
    module.def("synchronize", synchronize, "device"_a);
    module.def("statistics", statistics, "samples"_a.noconvert());
    module.def("median_ratio", median_ratio, "numerators"_a.noconvert(), "denominators"_a.noconvert());
    module.def("measure", measure, "functions"_a, "warm_up_calls"_a, "warm_up_seconds"_a, "least_samples"_a,
               "most_samples"_a, "seconds"_a, "device"_a);
    module.def("why_no_device", [] { return text(mlff_device_why_none()); });
    module.def("neighbors", find_neighbors, "positions"_a.noconvert(), "cutoff"_a, "cell"_a.none(), "periodic"_a,
               "half"_a, "threads"_a);

    nb::class_<mlff::Model>(module, "Model")
        .def("__init__", make_model, "path"_a)
        .def("info", model_info)
        .def("description_json", [](const mlff::Model& model) { return text(model.description_json().c_str()); });

    nb::class_<LockedSession>(module, "Session")
        .def("__init__", make_session, "model"_a, "device"_a, "precision"_a, "threads"_a, "head"_a, "skin"_a,
             "exact_radial"_a, "gpu_memory_limit"_a, "is_trajectory"_a)
        .def("evaluate", &LockedSession::evaluate, "jobs"_a)
        .def("hessian", &LockedSession::hessian, "job"_a, "values"_a, "step"_a, "symmetry_tolerance"_a)
        .def("info", &LockedSession::info)
        .def("close", &LockedSession::close);

    nb::class_<mlff::Stream>(module, "Stream")
        .def(nb::init<const std::string&>(), "device"_a)
        .def("handle", [](const mlff::Stream& stream) { return reinterpret_cast<uintptr_t>(stream.handle()); })
        .def("synchronize", synchronize_stream);

    nb::class_<mlff::Timer>(module, "Timer")
        .def("__init__", make_timer, "device"_a, "stream"_a)
        .def("start", &mlff::Timer::start)
        .def("stop", &mlff::Timer::stop)
        .def("seconds", timer_seconds);

    nb::class_<mlff::MemoryWatch>(module, "MemoryWatch")
        .def(nb::init<const std::string&>(), "device"_a)
        .def("read", &mlff::MemoryWatch::read)
        .def("report", memory_report);
}
