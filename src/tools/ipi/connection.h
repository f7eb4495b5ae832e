// SPDX-License-Identifier: MIT
// A stream socket to an i-PI server: whole messages in and out, with waits that the caller can end.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace mlff::ipi {

// Where the server listens: HOST:PORT ([HOST]:PORT for an IPv6 address), or a UNIX socket by its path.
struct Address {
    std::string host, port;  // TCP
    std::string path;        // UNIX, if not ""

    std::string text() const { return path.empty() ? host + ":" + port : path; }
};
Address parse_tcp_address(const std::string& text);  // throws Error{argument}
// i-PI puts the socket NAME at /tmp/ipi_NAME; a name with a slash is a path already.
Address unix_address(const std::string& name);  // throws Error{argument}

class Connection {
public:
    using Stop = std::function<bool()>;  // asked several times a second while nothing arrives

    struct Stopped {};  // thrown when Stop says so
    struct Closed {};   // thrown when the other side has gone

    Connection(int socket, Stop stop)
        : socket_(socket), stop_(std::move(stop)) {}  // takes the socket, which had better not block
    ~Connection();
    Connection(Connection&& other) noexcept : socket_(other.socket_), stop_(std::move(other.stop_)) {
        other.socket_ = -1;
    }
    Connection& operator=(Connection&&) = delete;
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void read(void* bytes, size_t count);  // all of them
    void write(const void* bytes, size_t count);

private:
    void await(short events);

    int socket_ = -1;
    Stop stop_;
};

// Tries again for `seconds` while nobody listens there yet. Throws Error{file} with the last reason, or Stopped.
Connection connect(const Address& address, double seconds, const Connection::Stop& stop);

}  // namespace mlff::ipi
