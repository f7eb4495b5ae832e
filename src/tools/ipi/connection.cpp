// SPDX-License-Identifier: MIT
#include "tools/ipi/connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "core/error.h"

namespace mlff::ipi {
namespace {

constexpr int kMillisecondsBetweenQuestions = 100;  // between calls of Stop
constexpr double kLongestWait = 1e8;                // seconds; keeps 64-bit nanoseconds from overflowing

using Clock = std::chrono::steady_clock;

// Tries one address. Returns a non-blocking socket, or -1 and the reason. An address that never answers must not delay
// Stop.
int try_address(int family, const sockaddr* address, socklen_t length, Clock::time_point end,
                const Connection::Stop& stop, std::string& why) {
    const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    if (socket < 0 || ::connect(socket, address, length) != 0) error = errno;
    while (error == EINPROGRESS) {
        pollfd wanted{socket, POLLOUT, 0};
        socklen_t size = sizeof error;
        if (poll(&wanted, 1, kMillisecondsBetweenQuestions) > 0)
            getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
        else if ((stop && stop()) || Clock::now() >= end)
            error = ETIMEDOUT;
    }
    if (error == 0) return socket;
    if (socket >= 0) close(socket);
    why = std::strerror(error);
    return -1;
}

int try_server(const Address& server, Clock::time_point end, const Connection::Stop& stop, std::string& why) {
    if (!server.path.empty()) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        server.path.copy(address.sun_path, sizeof address.sun_path - 1);
        return try_address(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address, end, stop, why);
    }
    addrinfo hints{}, *list = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int code = getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &list); code != 0) {
        why = gai_strerror(code);
        return -1;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(list, freeaddrinfo);
    for (const addrinfo* one = list; one; one = one->ai_next)
        if (const int socket = try_address(one->ai_family, one->ai_addr, one->ai_addrlen, end, stop, why);
            socket >= 0) {
            const int yes = 1;  // messages are short, and the peer waits for each
            setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
            return socket;
        }
    return -1;
}

}  // namespace

Address parse_tcp_address(const std::string& text) {
    const size_t colon = text.rfind(':');
    Address address;
    if (colon != std::string::npos) {
        address.host = text.substr(0, colon);
        address.port = text.substr(colon + 1);
    }
    if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']')
        address.host = address.host.substr(1, address.host.size() - 2);
    const bool is_number = !address.port.empty() && address.port.size() <= 5 &&
                           address.port.find_first_not_of("0123456789") == std::string::npos;
    if (address.host.empty() || !is_number || std::stoi(address.port) < 1 || std::stoi(address.port) > 65535)
        fail(Status::argument, "--ipi '", text, "' is not HOST:PORT with a port from 1 to 65535");
    return address;
}

Address unix_address(const std::string& name) {
    Address address;
    address.path = name.find('/') == std::string::npos ? "/tmp/ipi_" + name : name;
    if (name.empty() || address.path.size() >= sizeof(sockaddr_un::sun_path))
        fail(Status::argument, "--unix '", name, "': the path of a socket must have 1 to ",
             sizeof(sockaddr_un::sun_path) - 1, " characters");
    return address;
}

Connection::~Connection() {
    if (socket_ >= 0) close(socket_);
}

void Connection::await(short events) {
    while (true) {
        if (stop_ && stop_()) throw Stopped{};
        pollfd wanted{socket_, events, 0};
        const int count = poll(&wanted, 1, kMillisecondsBetweenQuestions);
        if (count > 0) return;
        if (count < 0 && errno != EINTR) fail(Status::file, "the connection to i-PI: ", std::strerror(errno));
    }
}

void Connection::read(void* bytes, size_t count) {
    for (auto* at = static_cast<char*>(bytes); count > 0;) {
        await(POLLIN);
        const ssize_t part = recv(socket_, at, count, 0);
        if (part == 0 || (part < 0 && errno == ECONNRESET)) throw Closed{};
        if (part < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (part < 0) fail(Status::file, "the connection to i-PI: ", std::strerror(errno));
        at += part;
        count -= static_cast<size_t>(part);
    }
}

void Connection::write(const void* bytes, size_t count) {
    for (const auto* at = static_cast<const char*>(bytes); count > 0;) {
        await(POLLOUT);
        const ssize_t part = send(socket_, at, count, MSG_NOSIGNAL);
        if (part < 0 && (errno == EPIPE || errno == ECONNRESET)) throw Closed{};
        if (part < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (part < 0) fail(Status::file, "the connection to i-PI: ", std::strerror(errno));
        at += part;
        count -= static_cast<size_t>(part);
    }
}

Connection connect(const Address& address, double seconds, const Connection::Stop& stop) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(std::min(seconds, kLongestWait)));
    while (true) {
        std::string why;
        if (const int socket = try_server(address, end, stop, why); socket >= 0) return Connection(socket, stop);
        if (stop && stop()) throw Connection::Stopped{};
        if (Clock::now() >= end)
            fail(Status::file, "no i-PI server at ", address.text(), " within ", seconds, " s (", why, ")");
        std::this_thread::sleep_for(std::chrono::milliseconds(kMillisecondsBetweenQuestions));
    }
}

}  // namespace mlff::ipi
