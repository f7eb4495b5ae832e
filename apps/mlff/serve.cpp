// SPDX-License-Identifier: MIT
// mlff serve: energies, forces and virials for a program that moves the atoms, i-PI, over a socket.
#include <chrono>
#include <iostream>
#include <limits>
#include <memory>
#include <thread>

#include "command.h"
#include "core/error.h"
#include "formats/extxyz.h"
#include "sessions.h"
#include "stop_signal.h"
#include "tools/ipi/client.h"

namespace mlff::app {
namespace {

struct ServeOptions {
    std::string input, tcp, unix_name;
    ModelOptions model;
    double wait_seconds = 60;
};

// The atoms of the file, whose positions and cell are the server's.
class ServedSystem {
public:
    ServedSystem(const ServeOptions& options, const Frame& frame) : frame_(frame), input_(options.input) {
        SessionOptions session_options = options.model.session_options();
        const auto model = load_model(options.model.model);
        session_options.head = head_of(frame, *model, session_options.head);
        session_options.is_trajectory = true;  // beads and steps are near one another
        session_ = std::make_unique<Session>(model, session_options);
        gives_virial_ = session_->model().gives_virial(frame_.view());
        ipi::Answer answer;  // elements and charges are refused before the server waits for us
        evaluate({frame_.cell.value_or(Mat3{}), frame_.positions}, answer);
        evaluation_count_ = 0;
    }

    void evaluate(const ipi::Positions& sent, ipi::Answer& answer) {
        frame_.positions = sent.positions;
        if (frame_.cell)
            frame_.cell = sent.cell;  // without boundaries there is no cell, and that of the server has no meaning
        const SystemView system = frame_.view();
        answer.forces.resize(frame_.positions.size());
        if (!gives_virial_)
            for (Vec3& row : answer.virial) row.fill(std::numeric_limits<double>::quiet_NaN());
        Results results;
        results.outputs.energy = &answer.energy;
        results.outputs.forces = answer.forces.data();
        results.outputs.virial = gives_virial_ ? answer.virial[0].data() : nullptr;
        try {
            session_->evaluate({&system, 1}, {&results, 1});
        } catch (const Error& error) {
            throw Error(error.status(), concat(input_, ": evaluation ", evaluation_count_, ": ", error.what()));
        }
        ++evaluation_count_;
    }

    const Session& session() const { return *session_; }
    int64_t atom_count() const { return frame_.atom_count(); }
    int64_t evaluation_count() const { return evaluation_count_; }
    bool gives_virial() const { return gives_virial_; }
    bool is_periodic() const { return frame_.view().is_periodic(); }

private:
    Frame frame_;
    std::string input_;
    std::unique_ptr<Session> session_;
    bool gives_virial_ = true;
    int64_t evaluation_count_ = 0;
};

Frame read_only_frame(const std::string& path) {
    ExtxyzReader reader(path);
    Frame frame, more;
    if (!reader.next(frame)) fail(Status::format, path, ": no frame in the file");
    if (reader.next(more)) fail(Status::format, path, ": more than one frame, expected one: the atoms that i-PI moves");
    if (frame.atom_count() == 0) fail(Status::system, path, ": no atoms");
    if (!frame.view().is_periodic()) frame.cell.reset();
    return frame;
}

int run_serve(const ServeOptions& options) {
    const ipi::Address address =
        options.unix_name.empty() ? ipi::parse_tcp_address(options.tcp) : ipi::unix_address(options.unix_name);
    if (!(options.wait_seconds >= 0)) fail(Status::argument, "--wait must not be negative");
    ServedSystem system(options, read_only_frame(options.input));
    std::cout << "model " << options.model.model << ", " << system.session().device_name() << ", "
              << precision_name(system.session().precision()) << "; " << system.atom_count() << " atoms of "
              << options.input << (system.is_periodic() ? "" : ", not periodic: the cell of i-PI is not used") << "\n";
    if (!system.gives_virial())
        std::cerr
            << "mlff: warning: the model gives no virial for these atoms: i-PI receives NaN, which breaks runs at "
               "constant pressure\n";

    StopSignal signal;
    const auto stop = [&] { return signal.number() != 0; };
    const auto finished = [&](const char* why) {
        std::cout << why << " after " << system.evaluation_count() << " evaluations\n";
    };
    auto last_use = std::chrono::steady_clock::now();  // somebody else may listen there, who hangs up on us each time
    for (bool is_first = true;; is_first = false) {
        const int64_t count_before = system.evaluation_count();
        const auto connect = [&] {
            try {
                return ipi::connect(address, options.wait_seconds, stop);
            } catch (const Error& error) {
                if (is_first) throw;
                throw Error(error.status(), concat("i-PI closed the connection after ", system.evaluation_count(),
                                                   " evaluations; connecting again failed: ", error.what()));
            }
        };
        try {
            ipi::Connection connection = connect();
            std::cout << (is_first ? "connected to " : "connected again to ") << address.text() << std::endl;
            switch (ipi::answer_server(
                connection, system.atom_count(),
                [&](const ipi::Positions& sent, ipi::Answer& answer) { system.evaluate(sent, answer); })) {
                case ipi::End::exit: return finished("i-PI said EXIT"), kGood;
                case ipi::End::stopped: return finished("stopped by a signal"), kStoppedBySignal + signal.number();
                case ipi::End::closed: break;
            }
        } catch (const ipi::Connection::Stopped&) {
            return finished("stopped by a signal"), kStoppedBySignal + signal.number();
        }
        const auto now = std::chrono::steady_clock::now();
        if (system.evaluation_count() > count_before) last_use = now;
        if (std::chrono::duration<double>(now - last_use).count() > options.wait_seconds)
            fail(Status::file, "the server at ", address.text(), " closed the connection after ",
                 system.evaluation_count(), " evaluations and requested none in the last ", options.wait_seconds, " s");
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        std::cout << "i-PI closed the connection; trying to connect for " << options.wait_seconds << " s" << std::endl;
    }
}

}  // namespace

void add_serve(CLI::App& app, Work& work) {
    auto options = std::make_shared<ServeOptions>();
    CLI::App* command = app.add_subcommand("serve", "compute energies and forces for i-PI over a socket");
    command
        ->add_option("FILE", options->input,
                     "extended XYZ with one frame: elements, charge and periodic directions, in the atom order of i-PI")
        ->required();
    auto* tcp = command->add_option("--ipi", options->tcp, "address of i-PI's TCP socket (mode='inet')")
                    ->option_text("HOST:PORT");
    auto* unix_name =
        command->add_option("--unix", options->unix_name, "name of i-PI's UNIX socket (mode='unix'), or its path")
            ->option_text("NAME");
    tcp->excludes(unix_name);
    options->model.add_to(*command);
    command
        ->add_option("--wait", options->wait_seconds,
                     "time in s to wait for i-PI to start, or to come back after it closed the connection")
        ->capture_default_str()
        ->option_text("SECONDS");
    command->footer(
        R"(i-PI moves the atoms; mlff sends energies, forces and virials until i-PI says EXIT.

Examples:
  # i-PI listens on TCP port 31415 of this machine
  mlff serve water.xyz --model X.model --ipi localhost:31415
  # i-PI listens on the UNIX socket with the address 'water'
  mlff serve water.xyz --unix water)");
    command->callback([options, &work] {
        if (options->tcp.empty() == options->unix_name.empty())
            throw CLI::RequiredError("--ipi HOST:PORT or --unix NAME");
        work = [options] { return run_serve(*options); };
    });
}

}  // namespace mlff::app
