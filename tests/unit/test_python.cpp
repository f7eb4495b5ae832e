// SPDX-License-Identifier: MIT
// Python models in this process and in processes of their own: numbers against the native model, errors, crashes,
// hangs, isolation. The calculators are in tests/python/calculators.py and need numpy alone.
#include "capture_binding.h"
#include "close.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "engine/session.h"
#include "python_models/environment.h"

using namespace mlff;
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Structure {
    std::vector<int32_t> numbers;
    std::vector<double> positions;
    Mat3 cell{};
    std::array<bool, 3> periodic{};

    SystemView view() const {
        SystemView system;
        system.atom_count = static_cast<int64_t>(numbers.size());
        system.atomic_numbers = numbers.data();
        system.positions = positions.data();
        system.cell = cell;
        system.periodic = periodic;
        return system;
    }
};

// A skewed crystal, or the same atoms without boundaries.
Structure make_structure(bool is_periodic, unsigned seed = 1) {
    constexpr int kElements[] = {1, 6, 8, 14};
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> jitter(-0.3, 0.3);
    Structure structure;
    for (int i = 0; i < 12; ++i) {
        structure.numbers.push_back(kElements[i % 4]);
        for (const int coordinate : {i % 3, (i / 3) % 2, i / 6})
            structure.positions.push_back(1.7 * coordinate + jitter(random));
    }
    if (is_periodic) {
        structure.cell = {{{5.3, 0.2, -0.4}, {0.7, 4.1, 0.3}, {-0.2, 0.9, 4.4}}};
        structure.periodic = {true, true, true};
    }
    return structure;
}

// One whose first atom is where calculators misbehave.
Structure make_trigger() {
    Structure structure = make_structure(false);
    structure.positions[0] = 60;
    return structure;
}

struct Numbers {
    double energy = 0;
    std::vector<double> forces, atom_energies;
    std::array<double, 9> virial{};
    std::array<double, 6> stress{};
};

Numbers compute(Session& session, const Structure& structure, bool is_all = true) {
    Numbers found;
    found.forces.resize(structure.positions.size());
    found.atom_energies.resize(structure.numbers.size());
    const SystemView system = structure.view();
    Results results;
    results.outputs.energy = &found.energy;
    results.outputs.forces = found.forces.data();
    if (is_all) results.outputs.atom_energies = found.atom_energies.data();
    if (is_all && system.is_periodic())
        results.outputs.virial = found.virial.data(), results.stress = found.stress.data();
    session.evaluate({&system, 1}, {&results, 1});
    return found;
}

// Environments for the tests: as `python3 -m venv` makes them, with the packages of the system.
class Environments {
public:
    Environments() {
        char pattern[] = "/tmp/mlff_test_python_XXXXXX";
        root_ = mkdtemp(pattern);
        setenv("MLFF_PYTHON_LIBRARY", MLFF_TEST_PYTHON_LIBRARY, 1);
        unsetenv("MLFF_PYTHON_ENV");
        unsetenv("VIRTUAL_ENV");
        make("first", MLFF_TEST_PYTHON_VERSION ".2", 11);
        make("second", MLFF_TEST_PYTHON_VERSION ".2", 22);
        make("future", "3.99.1", 33);
        fs::create_directories(root_ / "empty");
    }
    ~Environments() { fs::remove_all(root_); }
    std::string path(const std::string& name) const { return (root_ / name).string(); }

private:
    void make(const std::string& name, const std::string& version, int number) {
        const fs::path program = MLFF_TEST_PYTHON_EXECUTABLE, folder = root_ / name,
                       packages = folder / "lib" / "python" MLFF_TEST_PYTHON_VERSION / "site-packages";
        fs::create_directories(folder / "bin");
        fs::create_directories(packages);
        fs::create_symlink(program, folder / "bin" / "python3");
        std::ofstream(folder / "pyvenv.cfg") << "home = " << program.parent_path().string()
                                             << "\ninclude-system-site-packages = true\nversion = " << version << "\n";
        std::ofstream(packages / "pin.py") << "NUMBER = " << number << "\n";
    }
    fs::path root_;
};

const Environments& environments() {
    static const Environments made;
    return made;
}

// The name of a model of tests/python/calculators.py; `options` begin with '&'.
std::string model_name(const std::string& factory, const std::string& host, const std::string& options = "",
                       const std::string& environment = "first") {
    return "python:" MLFF_TEST_PYTHON_DIR "/calculators.py:" + factory + "?host=" + host +
           "&env=" + environments().path(environment) + options;
}

Session open_session(const std::string& name) {
    SessionOptions options;
    options.thread_count = 1;
    return Session(load_model(name), options);
}

// The error of what must fail.
template <class Work>
Error error_of(const Work& work) {
    try {
        work();
    } catch (const Error& error) {
        return error;
    }
    return Error(Status::ok, "no error at all");
}

void check_text(const Error& error, Status status, std::initializer_list<const char*> words) {
    CHECK_EQ(static_cast<int>(error.status()), static_cast<int>(status));
    for (const char* word : words) {
        const std::string text = error.what();
        CHECK_MESSAGE(text.find(word) != std::string::npos, "'", std::string(word), "' expected in: ", text);
    }
}

bool has_numpy() {
    static const bool has = [] {
        const std::string command = std::string(MLFF_TEST_PYTHON_EXECUTABLE) + " -I -c 'import numpy' >/dev/null 2>&1";
        return std::system(command.c_str()) == 0;
    }();
    if (!has) MESSAGE("skipped: " MLFF_TEST_PYTHON_EXECUTABLE " has no numpy (python3-numpy)");
    return has;
}

int64_t resident_kilobytes() {
    std::ifstream file("/proc/self/statm");
    int64_t size = 0, resident = 0;
    file >> size >> resident;
    return resident * sysconf(_SC_PAGESIZE) / 1024;
}

int64_t count_entries(const char* folder) {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

// What the library says, for as long as this lives.
class Listener {
public:
    Listener() { set_log_callback(&take, LogLevel::debug, this); }
    ~Listener() { set_log_callback(nullptr, LogLevel::warning, nullptr); }
    bool heard(const std::string& words) const {
        const std::lock_guard lock(mutex_);
        return lines_.find(words) != std::string::npos;
    }

private:
    static void take(int, const char* line, void* self) {
        auto* listener = static_cast<Listener*>(self);
        const std::lock_guard lock(listener->mutex_);
        listener->lines_ += std::string(line) + "\n";
    }
    mutable std::mutex mutex_;
    std::string lines_;
};

}  // namespace

TEST_CASE("a Python calculator gives the numbers of the native model in both hosting modes") {
    if (!has_numpy()) return;
    Session native = open_session("analytic");
    const auto handler_of_doctest = signal(SIGINT, SIG_DFL);
    for (const char* host : {"inprocess", "process"}) {
        CAPTURE(host);
        Session session = open_session(model_name("Pairs", host));
        CHECK((signal(SIGINT, SIG_DFL) == SIG_DFL));  // Python would have taken it over
        CHECK_EQ(session.device_name(), "cpu");
        for (const bool is_periodic : {false, true, false})
            for (unsigned seed = 1; seed < 4; ++seed) {
                const Structure structure = make_structure(is_periodic, seed);
                const Numbers found = compute(session, structure), expected = compute(native, structure);
                CHECK(mlff::test::is_close(found.energy, expected.energy, 1e-10));
                CHECK_ALL_CLOSE(found.forces, expected.forces, 1e-10);
                CHECK_ALL_CLOSE(found.atom_energies, expected.atom_energies, 1e-10);
                CHECK_ALL_CLOSE(found.virial, expected.virial, 1e-10);
                CHECK_ALL_CLOSE(found.stress, expected.stress, 1e-12);
            }
        // Arguments reach the factory; sizes may change; no atoms are no trouble.
        Session doubled = open_session(model_name("Pairs", host, "&scale=2.0"));
        const Structure small = make_structure(false);
        CHECK(mlff::test::is_close(compute(doubled, small).energy, 2 * compute(native, small).energy, 1e-10));
        Structure large;
        for (int64_t copy = 0; copy < 40; ++copy)
            for (size_t i = 0; i < small.numbers.size(); ++i) {
                large.numbers.push_back(small.numbers[i]);
                for (size_t k = 0; k < 3; ++k)
                    large.positions.push_back(small.positions[3 * i + k] +
                                              (k == 0 ? 20.0 * static_cast<double>(copy) : 0));
            }
        Session roomy = open_session(model_name("Pairs", host));
        compute(roomy, small);
        CHECK_ALL_CLOSE(compute(roomy, large).forces, compute(native, large).forces, 1e-9);
        CHECK_EQ(compute(roomy, Structure{}).energy, 0);
    }
    signal(SIGINT, handler_of_doctest);
}

TEST_CASE("what a Python calculator does not give is refused by name, and only when it is asked for") {
    if (!has_numpy()) return;
    for (const char* host : {"inprocess", "process"}) {
        CAPTURE(host);
        const auto model = load_model(model_name("EnergyOnly", host));
        const nlohmann::json description = model->description();
        CHECK_EQ(description["class"], "EnergyOnly");
        CHECK_EQ(description["environment"], environments().path("first"));
        CHECK_EQ(description["properties"], nlohmann::json({"energy", "forces"}));
        CHECK_FALSE(model->gives_atom_energies());
        CHECK_FALSE(model->gives_virial(make_structure(true).view()));
        Session session(model, {});
        const Structure crystal = make_structure(true);
        CHECK(std::isfinite(compute(session, crystal, /*is_all=*/false).energy));
        check_text(error_of([&] { compute(session, crystal); }), Status::unsupported,
                   {"EnergyOnly", "does not provide"});
        Session pairs = open_session(model_name("Pairs", host));
        Structure slab = crystal;
        slab.periodic = {true, true, false};
        check_text(error_of([&] { compute(pairs, slab); }), Status::system, {"periodic in three directions"});
        double virials[9 * 12];
        Results wanted;
        wanted.outputs.atom_virials = virials;
        const SystemView view = crystal.view();
        check_text(error_of([&] {
                       pairs.evaluate({&view, 1}, {&wanted, 1});
                   }),
                   Status::unsupported, {"virials of atoms"});
    }
}

TEST_CASE("the same atoms with another charge or spin are evaluated anew") {
    if (!has_numpy()) return;
    const Structure structure = make_structure(false);
    Session session(load_model(model_name("Charged", "inprocess")), {});
    const double plain = compute(session, structure, false).energy;  // charge 0, spin 1
    double before = 0;
    for (const auto& [charge, spin, expected] : {std::array{0., 1., 0.},
                                                 {2., 1., 2 * (100 + 1e4)},
                                                 {2., 3., 2 * (100 + 1e4) + 2 * (1000 + 1e5)},
                                                 {0., 1., 0.}}) {
        double energy = 0;
        SystemView system = structure.view();
        system.total_charge = charge;
        system.spin_multiplicity = spin;
        Results results;
        results.outputs.energy = &energy;
        session.evaluate({&system, 1}, {&results, 1});
        CHECK(test::is_close(energy, plain + expected, 1e-8));
        CHECK(energy != before);
        before = energy;
    }
}

TEST_CASE("an exception becomes a message with its traceback, and the next call works") {
    if (!has_numpy()) return;
    for (const char* host : {"inprocess", "process"}) {
        CAPTURE(host);
        Session session = open_session(model_name("Misbehaves", host, "&what=raises"));
        check_text(
            error_of([&] { compute(session, make_trigger()); }), Status::unsupported,
            {"ValueError: the orbitals did not converge", "traceback: calculators.py:", "in raises", "in calculate"});
        CHECK(std::isfinite(compute(session, make_structure(false)).energy));
        Session odd_text = open_session(model_name("Misbehaves", host, "&what=raises_odd_text"));
        check_text(error_of([&] { compute(odd_text, make_trigger()); }), Status::unsupported,
                   {"ValueError: half ? a character"});
        Session not_finite = open_session(model_name("NotFinite", host));
        check_text(error_of([&] { compute(not_finite, make_structure(false)); }), Status::system,
                   {"'forces'", "not finite"});
        Session wrong_shape = open_session(model_name("WrongShape", host));
        check_text(error_of([&] { compute(wrong_shape, make_structure(false)); }), Status::unsupported,
                   {"'forces' of shape (12, 2), expected (12, 3)"});
    }
}

TEST_CASE("each way in which a Python model cannot be loaded has its own message") {
    const std::string host = "process";
    const auto load_error = [](const std::string& name) { return error_of([&] { load_model(name); }); };
    check_text(load_error("python:"), Status::argument, {"python:mace:PATH", "python:MODULE:FACTORY"});
    check_text(load_error("python:mace"), Status::argument, {"needs the path of a model"});
    check_text(load_error("python:a:b?host=moon"), Status::argument, {"host=moon", "inprocess or process"});
    check_text(load_error("python:a:b?timeout=soon"), Status::argument, {"timeout=soon"});
    check_text(load_error("python:a:b?x"), Status::argument, {"'x' is not of the form key=value"});
    check_text(load_error("python:a:b?x=%zz"), Status::argument, {"two hexadecimal digits"});
    check_text(load_error("python:mace:x.model?dtype=half"), Status::argument, {"dtype=half", "float32 or float64"});
    check_text(load_error("python:mace:x.model?colour=red"), Status::argument, {"no key 'colour'"});

    // No environment, no Python in it, a Python of another version.
    environments();
    check_text(load_error("python:a_package.module:Calculator"), Status::unsupported,
               {"no Python environment was found", "the environment 'a_package' of scripts/install"});
    check_text(load_error("python:a:b?env=" + environments().path("empty")), Status::unsupported,
               {"no Python environment was found", "env=", "empty"});
    setenv("MLFF_PYTHON_ENV", "/there/is/none", 1);
    check_text(load_error("python:a:b"), Status::unsupported, {"MLFF_PYTHON_ENV (/there/is/none)"});
    unsetenv("MLFF_PYTHON_ENV");
    setenv("VIRTUAL_ENV", environments().path("empty").c_str(), 1);
    check_text(load_error("python:a:b"), Status::unsupported, {"VIRTUAL_ENV ("});
    unsetenv("VIRTUAL_ENV");
    check_text(load_error(model_name("Pairs", host, "", "future")), Status::unsupported,
               {"is of Python 3.99", "built for Python " MLFF_TEST_PYTHON_VERSION});

    // All that there are, each once, in the order in which they are looked at.
    setenv("MLFF_PYTHON_ENV", environments().path("second").c_str(), 1);
    setenv("VIRTUAL_ENV", environments().path("first").c_str(), 1);
    std::vector<fs::path> known = python::known_environments();
    CHECK(known.front() == environments().path("second"));
    CHECK(known.back() == environments().path("first"));
    setenv("VIRTUAL_ENV", environments().path("second").c_str(), 1);
    CHECK(python::known_environments().size() == known.size() - 1);
    unsetenv("MLFF_PYTHON_ENV");
    unsetenv("VIRTUAL_ENV");

    // By a name: in the home folder before the machine's, for a model, env= and MLFF_PYTHON_ENV alike.
    const fs::path home = environments().path("home"), installed = home / ".local/share/mlff/python";
    const char* old_home = std::getenv("HOME");
    const std::string kept = old_home ? old_home : "";
    setenv("HOME", home.c_str(), 1);
    fs::create_directories(installed);
    for (const char* name : {"a_package", "mace-cueq"})
        fs::create_symlink(environments().path("first"), installed / name);
    CHECK(python::environment_folders().end()[-2] == installed);
    CHECK(python::environment_folders().back() == "/usr/local/share/mlff/python");
    const auto environment_of = [](const std::string& name) {
        return python::find_environment(python::parse_model_name(name));
    };
    CHECK(environment_of("python:a_package.module:Calculator") == installed / "a_package");
    CHECK(environment_of("python:a:b?env=a_package") == installed / "a_package");
    CHECK(environment_of("python:mace:x.model") == installed / "mace-cueq");
    setenv("MLFF_PYTHON_ENV", "a_package", 1);
    CHECK(environment_of("python:mace:x.model") == installed / "a_package");
    CHECK(python::known_environments().front() == installed / "a_package");
    unsetenv("MLFF_PYTHON_ENV");
    check_text(load_error("python:other:Calculator"), Status::unsupported,
               {(installed.string() + "/other").c_str(), "/usr/local/share/mlff/python/other"});
    if (old_home)
        setenv("HOME", kept.c_str(), 1);
    else
        unsetenv("HOME");

    // No library.
    setenv("MLFF_PYTHON_LIBRARY", "/there/is/no/library.so", 1);
    check_text(load_error(model_name("Pairs", host)), Status::unsupported,
               {"MLFF_PYTHON_LIBRARY", "/there/is/no/library.so"});
    setenv("MLFF_PYTHON_LIBRARY", MLFF_TEST_PYTHON_LIBRARY, 1);

    const std::string first = "env=" + environments().path("first");
    check_text(load_error("python:not.there:Calculator?" + first), Status::unsupported,
               {"needs the Python module 'not'", "first"});
    check_text(load_error("python:json:Calculator?" + first), Status::unsupported,
               {"module json has no callable 'Calculator'"});
    check_text(load_error("python:nowhere.py:Calculator?" + first), Status::file, {"there is no file nowhere.py"});
    check_text(load_error("python:elsewhere?" + first), Status::unsupported, {"python:elsewhere", "python:tblite"});
    for (const auto& [name, module] : {std::pair{"tblite", "module 'tblite'"},
                                       {"orb", "module 'orb_models'"},
                                       {"sevennet", "module 'sevenn'"},
                                       {"chgnet", "module 'chgnet'"}})
        check_text(load_error(std::string("python:") + name + "?" + first), Status::unsupported,
                   {"needs the Python", module});
    check_text(load_error("python:fennol?" + first), Status::unsupported,
               {"needs a model file, which FeNNol does not include", "?model=PATH"});
    check_text(load_error("python:fennol?model=/no/such.fnx&" + first), Status::file,
               {"/no/such.fnx: there is no such file"});
    check_text(load_error("python:mace:nowhere.model?" + first), Status::file,
               {"nowhere.model: there is no such file"});
    check_text(load_error("python:mace:" MLFF_TEST_PYTHON_DIR "/calculators.py?" + first), Status::unsupported,
               {"needs the Python module 'torch'"});
    if (!has_numpy()) return;
    check_text(load_error(model_name("fails_to_start", host)), Status::unsupported,
               {"LinAlgError: Singular matrix", "in fails_to_start"});
    check_text(load_error(model_name("needs_absent_module", host)), Status::unsupported,
               {"needs the Python module 'a_module_that_is_not_there'"});
    check_text(load_error(model_name("no_calculator", host)), Status::unsupported,
               {"returned a str, which is not an ASE calculator"});
    check_text(load_error(model_name("Pairs", host, "&colour=red")), Status::unsupported, {"TypeError", "colour"});
    check_text(load_error(model_name("Nobody", host)), Status::unsupported, {"has no callable 'Nobody'"});

    SessionOptions options;
    options.device = "cuda";
    check_text(error_of([&] { Session(load_model(model_name("Pairs", host)), options); }), Status::device,
               {"device 'cuda'", "chooses its own device"});
    options.device = "auto";
    options.precision = Precision::fp32;
    check_text(error_of([&] { Session(load_model(model_name("Pairs", host)), options); }), Status::unsupported,
               {"precision fp32", "a calculator has its own"});
}

TEST_CASE("a crash, a hang and a lack of memory of Python are errors within a second, and the next call works") {
    if (!has_numpy()) return;
    struct Trouble {
        const char* what;
        const char* options;
        double longest;  // seconds
        Status status;
        std::initializer_list<const char*> words;
    };
    const Trouble troubles[] = {
        {"kills", "", 1, Status::device, {"ended unexpectedly", "signal 9", "the next call starts a new process"}},
        {"aborts", "", 1, Status::device, {"ended unexpectedly", "signal 6", "the last words of a calculator"}},
        {"exits", "", 1, Status::device, {"ended unexpectedly", "exit code 7"}},
        {"hangs", "&timeout=0.5", 1.5, Status::device, {"no answer within 0.5 s"}},
        {"stops", "", 5, Status::device, {"no longer runs"}},
        {"takes_memory", "", 1, Status::memory, {"Unable to allocate"}},
    };
    const Structure good = make_structure(false);
    Session native = open_session("analytic");
    const double expected = compute(native, good).energy;
    const int64_t files_before = count_entries("/proc/self/fd");
    for (const Trouble& trouble : troubles) {
        CAPTURE(trouble.what);
        Session session =
            open_session(model_name("Misbehaves", "process", std::string("&what=") + trouble.what + trouble.options));
        for (int round = 0; round < 2; ++round) {
            CHECK(mlff::test::is_close(compute(session, good).energy, expected, 1e-10));
            const auto begin = Clock::now();
            const Error error = error_of([&] { compute(session, make_trigger()); });
            CHECK_LT(seconds_since(begin), trouble.longest);
            check_text(error, trouble.status, trouble.words);
            if (std::string_view(trouble.what) == "stops") break;  // seconds each
        }
        CHECK(mlff::test::is_close(compute(session, good).energy, expected, 1e-10));
    }
    CHECK_EQ(count_entries("/proc/self/fd"), files_before);
    CHECK_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no process is left, dead or alive
}

TEST_CASE("a worker can neither shrink the memory that it shares, which would be a bus error here, nor seal it") {
    if (!has_numpy()) return;
    const Structure good = make_structure(false);
    Session native = open_session("analytic");
    const double expected = compute(native, good).energy;
    for (const std::string what : {"shrinks", "seals"}) {
        CAPTURE(what);
        Session session = open_session(model_name("Misbehaves", "process", "&what=" + what));
        CHECK(mlff::test::is_close(compute(session, good).energy, expected, 1e-10));
        check_text(error_of([&] { compute(session, make_trigger()); }), Status::unsupported, {"PermissionError"});
        CHECK(mlff::test::is_close(compute(session, good).energy, expected, 1e-10));
        Structure large = good;  // for which the memory must grow
        for (size_t i = 0; i < 300; ++i) {
            large.numbers.push_back(1);
            for (const double x : {100.0 + 10 * static_cast<double>(i), 0.0, 0.0}) large.positions.push_back(x);
        }
        CHECK(mlff::test::is_close(compute(session, large).energy, expected, 1e-10));
    }
}

TEST_CASE("a worker that is killed from outside in the middle of a call is an error within a second") {
    if (!has_numpy()) return;
    Session session = open_session(model_name("Misbehaves", "process", "&what=sleeps"));
    const Structure good = make_structure(false);
    const double expected = compute(session, good).energy;
    // The only child of this process.
    const auto child_of_this = [] {
        for (const auto& entry : fs::directory_iterator("/proc")) {
            if (std::atoi(entry.path().filename().c_str()) == 0) continue;
            std::ifstream file(entry.path() / "stat");
            std::string text((std::istreambuf_iterator<char>(file)), {});
            const size_t end = text.rfind(") ");
            if (end == std::string::npos) continue;
            if (std::atoi(text.c_str() + end + 4) == getpid() && text.find("mlff-python") != std::string::npos)
                return std::atoi(text.c_str());
        }
        return -1;
    };
    const int child = child_of_this();
    REQUIRE_GT(child, 0);
    Clock::time_point killed_at;
    std::thread killer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        killed_at = Clock::now();
        kill(child, SIGKILL);
    });
    const Error error = error_of([&] { compute(session, make_trigger()); });
    killer.join();
    CHECK_LT(seconds_since(killed_at), 1);
    check_text(error, Status::device, {"signal 9"});
    CHECK(mlff::test::is_close(compute(session, good).energy, expected, 1e-12));
}

TEST_CASE("several threads use Python models at once, and a session outlives the thread that made it") {
    if (!has_numpy()) return;
    Session native = open_session("analytic");
    for (const char* host : {"inprocess", "process"}) {
        CAPTURE(host);
        const auto model = load_model(model_name("Pairs", host));
        std::atomic<int> good{0};
        std::vector<std::unique_ptr<Session>> sessions(3);
        std::vector<std::thread> threads;
        std::vector<double> expected;
        for (unsigned seed = 1; seed <= 3; ++seed)
            expected.push_back(compute(native, make_structure(true, seed)).energy);
        SessionOptions options;
        options.thread_count = 1;
        for (size_t i = 0; i < 3; ++i)
            threads.emplace_back([&, i] {
                sessions[i] = std::make_unique<Session>(model, options);
                for (int step = 0; step < 5; ++step)
                    good += mlff::test::is_close(
                        compute(*sessions[i], make_structure(true, static_cast<unsigned>(i) + 1)).energy, expected[i],
                        1e-10);
            });
        for (std::thread& thread : threads) thread.join();
        CHECK_EQ(good.load(), 15);
        for (size_t i = 0; i < 3; ++i)
            CHECK(mlff::test::is_close(compute(*sessions[i], make_structure(true, static_cast<unsigned>(i) + 1)).energy,
                                       expected[i], 1e-10));
    }
}

TEST_CASE("two environments with different packages work at once; in one process the second is refused") {
    if (!has_numpy()) return;
    const Structure structure = make_structure(false);
    Session first = open_session(model_name("Reports", "process")),
            second = open_session(model_name("Reports", "process", "", "second"));
    Session inside = open_session(model_name("Reports", "inprocess"));
    for (int round = 0; round < 2; ++round) {
        CHECK_EQ(compute(first, structure).energy, 11);
        CHECK_EQ(compute(second, structure).energy, 22);
        CHECK_EQ(compute(inside, structure).energy, 11);
    }
    check_text(error_of([&] { load_model(model_name("Reports", "inprocess", "", "second")); }), Status::unsupported,
               {"runs in this process with the environment", "first", "second", "host=process"});
}

TEST_CASE("nothing of the host's Python settings, files and signals reaches the model's") {
    if (!has_numpy()) return;
    setenv("PYTHONPATH", "/not/for/us", 1);
    setenv("PYTHONHOME", "/not/for/us", 1);
    const int leaked = dup(0);  // open across exec
    const Structure structure = make_structure(false);
    Session isolated = open_session(model_name("Isolated", "process"));
    CHECK_EQ(compute(isolated, structure).energy, 0);
    Session descriptors = open_session(model_name("Descriptors", "process"));
    CHECK_EQ(compute(descriptors, structure).energy, 5);  // three streams, the socket and the memory
    Session inside = open_session(model_name("Isolated", "inprocess"));
    CHECK_EQ(compute(inside, structure).energy, 2);  // the variables are the host's, and stay
    CHECK_EQ(std::string(std::getenv("PYTHONPATH")), "/not/for/us");
    close(leaked);
    unsetenv("PYTHONPATH");
    unsetenv("PYTHONHOME");
}

TEST_CASE("what Python says goes to the log") {
    if (!has_numpy()) return;
    for (const char* host : {"inprocess", "process"}) {
        CAPTURE(host);
        const Listener listener;
        load_model(model_name("Talks", host));
        for (const char* words : {"hello from print", "hello from stderr", "hello from logging", "hello from warnings"})
            CHECK_MESSAGE(listener.heard(words), words);
    }
}

TEST_CASE("a thousand Python models one after the other take no memory, processes or files") {
    if (!has_numpy()) return;
    const Structure structure = make_structure(false);
    const auto cycle = [&](const char* host) {
        Session session = open_session(model_name("Pairs", host));
        CHECK(std::isfinite(compute(session, structure).energy));
    };
    for (const auto& [host, count] : {std::pair{"inprocess", 1000}, {"process", 20}}) {
        CAPTURE_BINDING(host);
        for (int warm = 0; warm < count / 10; ++warm) cycle(host);
        const int64_t before = resident_kilobytes(), files = count_entries("/proc/self/fd"),
                      threads = count_entries("/proc/self/task");
        for (int i = 0; i < count; ++i) cycle(host);
        CHECK_LT(resident_kilobytes() - before, 2048);
        CHECK_EQ(count_entries("/proc/self/fd"), files);
        CHECK_EQ(count_entries("/proc/self/task"), threads);
    }
}

TEST_CASE("what a Python process says of its model is not believed unseen") {
    if (!has_numpy()) return;
    for (const char* claim : {"huge", "beyond", "zero", "text"}) {
        CAPTURE(claim);
        check_text(error_of([&] { load_model(model_name("claims", "process", std::string("&what=") + claim)); }),
                   Status::device, {"without a proper 'elements'"});
    }
    check_text(error_of([&] { load_model(model_name("claims", "process", "&what=heads")); }), Status::device,
               {"without a proper 'heads'"});
    for (const char* claim : {"cutoff", "class"}) {
        CAPTURE(claim);
        check_text(error_of([&] { load_model(model_name("claims", "process", std::string("&what=") + claim)); }),
                   Status::format, {"its description from Python", "malformed JSON"});
    }
}

TEST_CASE("a forked process leaves the Python process of its parent alone") {
    if (!has_numpy()) return;
    SessionOptions options;
    options.thread_count = 1;
    auto session = std::make_unique<Session>(load_model(model_name("Pairs", "process")), options);
    const Structure structure = make_structure(false);
    const double energy = compute(*session, structure, /*is_all=*/false).energy;
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        alarm(20);
        const Error error = error_of([&] { compute(*session, structure, false); });
        session.reset();
        _exit(error.status() == Status::argument && std::string(error.what()).find("forked") != std::string::npos ? 0
                                                                                                                  : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
    CHECK(compute(*session, structure, false).energy == energy);
}
