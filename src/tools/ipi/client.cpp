// SPDX-License-Identifier: MIT
#include "tools/ipi/client.h"

#include "core/error.h"

namespace mlff::ipi {

End answer_server(Connection& connection, int64_t atom_count, const Evaluate& evaluate) {
    bool is_initialised = false, has_forces = false;
    Positions positions;
    Answer answer;
    try {
        while (true) {
            const std::string header = read_header(connection);
            if (header == "STATUS") {
                write_header(connection, has_forces ? "HAVEDATA" : is_initialised ? "READY" : "NEEDINIT");
            } else if (header == "INIT") {
                const Init init = read_init(connection);
                if (init.text.find("batch_size:") != std::string::npos)
                    fail(Status::unsupported, "the i-PI server wants to send several structures at once (", init.text,
                         "): leave batch_size out of its <ffsocket>");
                is_initialised = true;
            } else if (header == "POSDATA") {
                read_positions(connection, atom_count, positions);
                evaluate(positions, answer);
                has_forces = true;
            } else if (header == "GETFORCE") {
                if (!has_forces) fail(Status::format, "the i-PI server requested forces before it sent positions");
                write_forces(connection, answer.energy, answer.forces, answer.virial);
                has_forces = false;
            } else if (header == "EXIT") {
                return End::exit;
            } else {
                fail(Status::format, "the i-PI server sent '", header,
                     "', expected STATUS, INIT, POSDATA, GETFORCE or EXIT: is it i-PI that listens there?");
            }
        }
    } catch (const Connection::Closed&) {
        return End::closed;
    } catch (const Connection::Stopped&) {
        return End::stopped;
    }
}

}  // namespace mlff::ipi
