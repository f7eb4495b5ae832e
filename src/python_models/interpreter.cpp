// SPDX-License-Identifier: MIT
// libmlff_python.so: CPython in this process, with the packages of one environment. teachers.py, which is embedded in
// this library, runs the models.
#include <dlfcn.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>

#include <pybind11/embed.h>

#include <nlohmann/json.hpp>

#include "core/embed_file.h"
#include "core/error.h"
#include "python_models/interface.h"

namespace mlff::python {
namespace {

namespace fs = std::filesystem;
namespace py = pybind11;

#define MLFF_TEXT_OF(value) #value
#define MLFF_VERSION_TEXT(major, minor) MLFF_TEXT_OF(major) "." MLFF_TEXT_OF(minor)
constexpr const char* kPythonVersion = MLFF_VERSION_TEXT(PY_MAJOR_VERSION, PY_MINOR_VERSION);

// Lets the current thread of the host run Python.
class PythonLock {
public:
    PythonLock() : state_(PyGILState_Ensure()) {}
    ~PythonLock() { PyGILState_Release(state_); }
    PythonLock(const PythonLock&) = delete;
    PythonLock& operator=(const PythonLock&) = delete;

private:
    PyGILState_STATE state_;
};

std::mutex start_mutex;
std::string started_environment;  // "" until the interpreter runs
bool is_interpreter_ours = false;
LogLine log_line = nullptr;
void* log_to = nullptr;
py::object* teachers =
    nullptr;  // the module; never freed, because the interpreter never ends: torch cannot be loaded twice

MLFF_EMBED_FILE(mlff_teachers, MLFF_TEACHERS_FILE)
MLFF_EMBED_FILE(mlff_student_source, MLFF_STUDENT_FILE)

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_log(int level, const std::string& line) {
    const py::gil_scoped_release others_may_run;  // the host's callback may use Python too
    if (log_line) log_line(log_to, level, line.c_str());
}

// "3.12" for an environment made by Python 3.12; "" if unknown.
std::string version_of(const fs::path& environment) {
    std::ifstream file(environment / "pyvenv.cfg");
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("version")) continue;
        const size_t first = line.find_first_of("0123456789");
        const size_t dot = line.find('.', first);
        if (first == std::string::npos || dot == std::string::npos) continue;
        return line.substr(first, line.find_first_not_of("0123456789", dot + 1) - first);
    }
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(environment / "lib", ignored)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("python3.") && fs::exists(entry.path() / "os.py", ignored)) return name.substr(6);
    }
    return "";
}

// Compiled Python modules (numpy) find Python's functions only among the global symbols. This library was loaded with
// local symbols.
void make_python_symbols_global() {
    Dl_info where{};
    if (dladdr(reinterpret_cast<void*>(&Py_IsInitialized), &where) && where.dli_fname)
        dlopen(where.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

void check(const PyStatus& status, const fs::path& environment) {
    if (PyStatus_Exception(status))
        fail(Status::unsupported, "Python ", kPythonVersion, " cannot start in ", environment.string(), ": ",
             status.err_msg ? status.err_msg : "unknown reason");
}

// Python's signal module takes over SIGINT on its first import if the host left it at the default. Ctrl-C belongs to
// the host.
void keep_signals_of_host() {
    struct sigaction before {};
    sigaction(SIGINT, nullptr, &before);
    const py::module_ signals = py::module_::import("signal");
    if (before.sa_handler == SIG_DFL) signals.attr("signal")(static_cast<int>(SIGINT), signals.attr("SIG_DFL"));
    sigaction(SIGINT, &before, nullptr);
}

// Ignores PYTHONHOME, PYTHONPATH and the user's own packages. Installs no signal handlers, and does not change the
// locale or the standard streams.
void initialize(const fs::path& environment) {
    const std::string version = version_of(environment);
    if (!version.empty() && version != kPythonVersion)
        fail(Status::unsupported, "the environment ", environment.string(), " is of Python ", version,
             ", but this mlff was built for Python ", kPythonVersion, "; create it with python", kPythonVersion,
             ", or build mlff with -DMLFF_PYTHON_EXECUTABLE=python", version);
    make_python_symbols_global();
    PyPreConfig before;
    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1;
    check(Py_PreInitialize(&before), environment);

    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.install_signal_handlers = 0;
    const std::string program = (environment / "bin" / "python3").string();
    PyStatus status = PyConfig_SetBytesString(&config, &config.executable, program.c_str());
    if (!PyStatus_Exception(status)) status = PyConfig_SetBytesString(&config, &config.program_name, program.c_str());
    // Uses the standard library of the Python that we are linked to: the environment may be from another patch release,
    // whose compiled modules do not fit.
    std::error_code ignored;
    if (!PyStatus_Exception(status) &&
        fs::exists(fs::path(MLFF_PYTHON_PREFIX) / "lib" / (std::string("python") + kPythonVersion) / "os.py", ignored))
        status = PyConfig_SetBytesString(&config, &config.home, MLFF_PYTHON_PREFIX);
    if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    check(status, environment);
}

void import_teachers() {
    py::module_ module = py::reinterpret_borrow<py::module_>(PyImport_AddModule("_mlff_teachers"));
    module.attr("__file__") = "<mlff>/teachers.py";
    const std::string source = text_of(MLFF_EMBEDDED(mlff_teachers));
    const py::object code =
        py::reinterpret_steal<py::object>(Py_CompileString(source.c_str(), "<mlff>/teachers.py", Py_file_input));
    if (!code) throw py::error_already_set();
    const py::dict names = module.attr("__dict__");
    names["__builtins__"] = py::module_::import("builtins");
    if (!py::reinterpret_steal<py::object>(PyEval_EvalCode(code.ptr(), names.ptr(), names.ptr())))
        throw py::error_already_set();
    module.attr("log") = py::cpp_function(&write_log);
    module.attr("student_source") = text_of(MLFF_EMBEDDED(mlff_student_source));
    if (is_interpreter_ours) module.attr("redirect_output")(module.attr("log"));
    teachers = new py::object(module);
}

void write_text(const TextSink& sink, const std::string& text) { sink.write(sink.to, text.data(), text.size()); }

// Runs `work`, and turns any exception into a status and a message.
template <class Work>
int guarded(const TextSink& sink, const Work& work) noexcept {
    try {
        work();
        return 0;
    } catch (const Error& error) {
        write_text(sink, error.what());
        return static_cast<int>(error.status());
    } catch (py::error_already_set& error) {
        const PythonLock lock;
        int status = static_cast<int>(Status::internal);
        std::string message = "Python failed, and its error message could not be formatted";
        try {
            if (teachers) {
                if (error.trace()) PyException_SetTraceback(error.value().ptr(), error.trace().ptr());
                const py::tuple explained = teachers->attr("explain")(error.value(), teachers->attr("log"));
                status = explained[0].cast<int>();
                message = explained[1].cast<std::string>();
            } else {
                message = error.what();
            }
        } catch (...) {}
        error.restore();  // drops its references while this thread holds the lock
        PyErr_Clear();
        write_text(sink, message);
        return status;
    } catch (const std::bad_alloc&) {
        write_text(sink, "out of memory");
        return static_cast<int>(Status::memory);
    } catch (const std::exception& error) {
        write_text(sink, error.what());
        return static_cast<int>(Status::internal);
    } catch (...) {
        write_text(sink, "an unknown exception");
        return static_cast<int>(Status::internal);
    }
}

// Uses the host program's interpreter if its version and environment are right.
void adopt(const fs::path& environment) {
    const std::string running = Py_GetVersion();
    if (!running.starts_with(std::string(kPythonVersion) + "."))
        fail(Status::unsupported, "this program runs Python ", running.substr(0, running.find(' ')),
             " already, but this mlff was built for Python ", kPythonVersion,
             "; run the model in a separate process (host=process)");
    const PythonLock lock;
    const auto prefix = py::module_::import("sys").attr("prefix").cast<std::string>();
    std::error_code ignored;
    if (!fs::equivalent(prefix, environment, ignored))
        fail(Status::unsupported, "this program runs Python in ", prefix, " already, but the model needs ",
             environment.string(), "; run it in a separate process (host=process)");
    import_teachers();
}

int start(const char* options, LogLine log, void* to, TextSink text) {
    return guarded(text, [&] {
        const fs::path environment = nlohmann::json::parse(options).at("environment").get<std::string>();
        const std::lock_guard once(start_mutex);
        if (!started_environment.empty()) {
            std::error_code ignored;
            if (fs::equivalent(started_environment, environment, ignored)) return;
            fail(Status::unsupported, "Python runs in this process with the environment ", started_environment,
                 " already, but the model needs ", environment.string(),
                 "; run it in a separate process (host=process)");
        }
        log_line = log;
        log_to = to;
        if (Py_IsInitialized()) {
            adopt(environment);
        } else {
            is_interpreter_ours = true;
            initialize(environment);
            struct LockRelease {  // afterwards any thread may take the lock
                ~LockRelease() { PyEval_SaveThread(); }
            } const at_the_end;
            keep_signals_of_host();
            import_teachers();
        }
        started_environment = environment.string();
    });
}

int load(const char* request, void** teacher, TextSink text) {
    *teacher = nullptr;
    return guarded(text, [&] {
        const PythonLock lock;
        const py::tuple loaded = teachers->attr("load")(request);
        write_text(text, loaded[1].cast<std::string>());
        *teacher = py::object(loaded[0]).release().ptr();
    });
}

int prepare(void* teacher, const char* request, TextSink text) {
    return guarded(text, [&] {
        const PythonLock lock;
        write_text(text,
                   teachers->attr("prepare")(py::handle(static_cast<PyObject*>(teacher)), request).cast<std::string>());
    });
}

template <class Number>
py::object view_of(Number* numbers, int64_t count) {
    if (!numbers) return py::none();
    const auto bytes = static_cast<py::ssize_t>(static_cast<size_t>(count) * sizeof(Number));
    if constexpr (std::is_const_v<Number>)
        return py::memoryview::from_memory(static_cast<const void*>(numbers), bytes);
    else
        return py::memoryview::from_memory(static_cast<void*>(numbers), bytes);
}

int evaluate(void* teacher, const SystemArrays* system, const ResultArrays* results, TextSink text) {
    return guarded(text, [&] {
        const PythonLock lock;
        const int64_t count = system->atom_count;
        py::tuple cell(9);
        for (size_t k = 0; k < 9; ++k) cell[k] = system->cell[k];
        const py::tuple periodic =
            py::make_tuple(system->periodic[0] != 0, system->periodic[1] != 0, system->periodic[2] != 0);
        py::handle(static_cast<PyObject*>(teacher))
            .attr("evaluate")(view_of(system->atomic_numbers, count), view_of(system->positions, 3 * count), cell,
                              periodic, system->total_charge, system->spin_multiplicity, view_of(results->energy, 1),
                              view_of(results->forces, 3 * count), view_of(results->virial, 9),
                              view_of(results->atom_energies, count));
    });
}

void unload(void* teacher) {
    if (!teacher) return;
    const TextSink nowhere = {[](void*, const char*, size_t) {}, nullptr};
    guarded(nowhere, [&] {
        const PythonLock lock;
        const auto object = py::reinterpret_steal<py::object>(static_cast<PyObject*>(teacher));
        teachers->attr("unload")(object);
    });
}

}  // namespace
}  // namespace mlff::python

extern "C" __attribute__((visibility("default"))) const mlff::python::Interface* mlff_python_interface(void) {
    using namespace mlff::python;
    static const Interface interface = {kInterfaceVersion, kPythonVersion, &start, &load, &prepare, &evaluate, &unload};
    return &interface;
}
