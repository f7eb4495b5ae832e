// SPDX-License-Identifier: MIT
// The i-PI protocol from the side of the server: every byte that goes over the socket, in atomic units.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "close.h"
#include "core/error.h"
#include "tools/ipi/client.h"
#include "tools/ipi/units.h"

using namespace mlff;

namespace {

constexpr double kBohrHere = 0.529177210903,
                 kHartreeHere = 27.211386245988;  // written out once more: an error in units.h must show

// The other end of a client that runs on a thread of its own.
class FakeServer {
public:
    explicit FakeServer(int64_t atom_count) {
        int pair[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
        socket_ = pair[0];
        client_ = std::thread([this, socket = pair[1], atom_count] {
            ipi::Connection connection(socket, [this] { return is_stopped.load(); });
            try {
                end =
                    ipi::answer_server(connection, atom_count, [this](const ipi::Positions& sent, ipi::Answer& answer) {
                        received = sent;
                        answer = given;
                    });
            } catch (const Error& error) {
                status = error.status();
                message = error.what();
            }
        });
    }
    ~FakeServer() {
        hang_up();
        join();
    }

    void send(const std::string& header) {
        std::string padded = header;
        padded.resize(12, ' ');
        send_bytes(padded.data(), padded.size());
    }
    template <class Value>
    void send_value(const Value& value) {
        send_bytes(&value, sizeof value);
    }
    void send_bytes(const void* bytes, size_t count) {
        CHECK(::send(socket_, bytes, count, MSG_NOSIGNAL) == static_cast<ssize_t>(count));
    }
    // In one piece: a client that refuses the number of atoms hangs up before it reads their positions.
    void send_positions(const std::array<double, 9>& cell, const std::vector<double>& positions) {
        std::string message = "POSDATA     ";
        const auto append = [&](const void* bytes, size_t count) {
            message.append(static_cast<const char*>(bytes), count);
        };
        const std::array<double, 9> inverse{};  // is not used
        const auto atom_count = static_cast<int32_t>(positions.size() / 3);
        append(cell.data(), sizeof cell);
        append(inverse.data(), sizeof inverse);
        append(&atom_count, sizeof atom_count);
        append(positions.data(), positions.size() * sizeof(double));
        send_bytes(message.data(), message.size());
    }

    template <class Value>
    Value receive() {
        Value value{};
        CHECK(recv(socket_, &value, sizeof value, MSG_WAITALL) == static_cast<ssize_t>(sizeof value));
        return value;
    }
    std::string receive_header() {
        const auto letters = receive<std::array<char, 12>>();
        return {letters.begin(), letters.end()};
    }
    std::string ask_status() {
        send("STATUS");
        return receive_header();
    }

    void hang_up() {
        if (socket_ >= 0) close(socket_);
        socket_ = -1;
    }
    void join() {
        if (client_.joinable()) client_.join();
    }

    ipi::Answer given;  // by the model
    ipi::Positions received;
    ipi::End end = ipi::End::stopped;
    Status status = Status::ok;
    std::string message;
    std::atomic<bool> is_stopped{false};

private:
    int socket_ = -1;
    std::thread client_;
};

}  // namespace

TEST_CASE("i-PI: a conversation with all its numbers") {
    FakeServer server(2);
    server.given.energy = -3.5;
    server.given.forces = {0.1, -0.2, 0.3, 1.5, 2.5, -4.5};
    server.given.virial = {{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}};
    CHECK(server.ask_status() == "NEEDINIT    ");
    server.send("INIT");
    server.send_value(int32_t{3});
    server.send_value(int32_t{5});
    server.send_bytes("water", 5);
    CHECK(server.ask_status() == "READY       ");
    // i-PI: lattice vectors in columns, row by row.
    const std::array<double, 9> h = {10, 1, 2, 0, 11, 3, 0, 0, 12};
    const std::vector<double> bohr = {0, 1, -2, 3.5, 4.5, 5.5};
    for (int round = 0; round < 2; ++round) {  // twice: nothing is left over in between
        server.send_positions(h, bohr);
        CHECK(server.ask_status() == "HAVEDATA    ");
        const std::vector<double> rows = {10, 0, 0, 1, 11, 0, 2, 3, 12};
        std::vector<double> cell, expected_cell, expected_positions;
        for (const Vec3& row : server.received.cell) cell.insert(cell.end(), row.begin(), row.end());
        for (const double value : rows) expected_cell.push_back(value * kBohrHere);
        for (const double value : bohr) expected_positions.push_back(value * kBohrHere);
        CHECK_ALL_CLOSE(cell, expected_cell, 1e-14);
        CHECK_ALL_CLOSE(server.received.positions, expected_positions, 1e-14);

        server.send("GETFORCE");
        CHECK(server.receive_header() == "FORCEREADY  ");
        CHECK(test::is_close(server.receive<double>(), -3.5 / kHartreeHere, 1e-15));
        CHECK(server.receive<int32_t>() == 2);
        std::vector<double> forces, expected_forces, virial, expected_virial;
        for (const double force : server.given.forces)
            forces.push_back(server.receive<double>()), expected_forces.push_back(force * kBohrHere / kHartreeHere);
        CHECK_ALL_CLOSE(forces, expected_forces, 1e-15);
        for (const double value : {1., 4., 7., 2., 5., 8., 3., 6., 9.})
            virial.push_back(server.receive<double>()), expected_virial.push_back(value / kHartreeHere);
        CHECK_ALL_CLOSE(virial, expected_virial, 1e-15);
        CHECK(server.receive<int32_t>() == 0);
        CHECK(server.ask_status() == "READY       ");
    }
    server.send("EXIT");
    server.join();
    CHECK(server.end == ipi::End::exit);
    CHECK(server.message == "");
}

TEST_CASE("i-PI: positions and the question for forces may come in one piece") {
    FakeServer server(1);
    server.given.forces = {1, 2, 3};
    server.send_positions({9, 0, 0, 0, 9, 0, 0, 0, 9}, {1, 2, 3});
    server.send("GETFORCE");
    CHECK(server.receive_header() == "FORCEREADY  ");
    server.hang_up();
    server.join();
    CHECK(server.end == ipi::End::closed);
}

TEST_CASE("i-PI: what is wrong is said") {
    const auto check = [](FakeServer& server, Status status, const std::string& words) {
        server.join();
        CHECK(server.status == status);
        CHECK_MESSAGE(server.message.find(words) != std::string::npos, server.message);
    };
    {
        FakeServer server(2);
        server.send_positions({}, {1, 2, 3});
        check(server, Status::system, "the i-PI server sent 1 atoms, expected 2");
    }
    {
        FakeServer server(2);
        server.send("GETFORCE");
        check(server, Status::format, "before it sent positions");
    }
    {
        FakeServer server(2);
        server.send("HTTP/1.1 400");
        check(server, Status::format, "sent 'HTTP/1.1 400', expected STATUS");
    }
    for (const int32_t length : {-1, 1 << 30}) {
        FakeServer server(2);
        server.send("INIT");
        server.send_value(int32_t{0});
        server.send_value(length);
        check(server, Status::format, "INIT with a text of");
    }
    {
        FakeServer server(2);
        server.send("INIT");
        server.send_value(int32_t{0});
        server.send_value(int32_t{13});
        server.send_bytes("batch_size: 4", 13);
        check(server, Status::unsupported, "leave batch_size out");
    }
    {  // in the middle of a message
        FakeServer server(2);
        server.send("POSDATA");
        server.send_value(1.0);
        server.hang_up();
        server.join();
        CHECK(server.end == ipi::End::closed);
    }
    {
        FakeServer server(2);
        server.end = ipi::End::exit;
        server.is_stopped = true;
        server.join();
        CHECK(server.end == ipi::End::stopped);
    }
}

TEST_CASE("i-PI: addresses") {
    CHECK(ipi::parse_tcp_address("localhost:31415").text() == "localhost:31415");
    CHECK(ipi::parse_tcp_address("[::1]:80").host == "::1");
    CHECK(ipi::unix_address("water").text() == "/tmp/ipi_water");
    CHECK(ipi::unix_address("./here").text() == "./here");
    for (const char* text : {"", "localhost", "localhost:", ":80", "localhost:0", "localhost:65536", "localhost:http"})
        CHECK_THROWS_AS(ipi::parse_tcp_address(text), Error);
    CHECK_THROWS_AS(ipi::unix_address(""), Error);
    CHECK_THROWS_AS(ipi::unix_address(std::string(200, 'x')), Error);
    CHECK_THROWS_AS(ipi::connect(ipi::unix_address("/no/such/socket"), 0, {}), Error);
    CHECK_THROWS_AS(ipi::connect(ipi::unix_address("/no/such/socket"), 5, [] { return true; }),
                    ipi::Connection::Stopped);
}
