// SPDX-License-Identifier: MIT
// A stream socket to an i-PI server: reads and writes whole messages, with waits that the caller can end.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace mlff::ipi {

// The address of the server: HOST:PORT ([HOST]:PORT for IPv6), or the path of a UNIX socket.
struct Address {
    std::string host, port;  // TCP
    std::string path;        // UNIX socket, if not ""

    std::string text() const { return path.empty() ? host + ":" + port : path; }
};
Address parse_tcp_address(const std::string& text);  // throws Error{argument}
// i-PI creates the socket NAME at /tmp/ipi_NAME; a name with a slash is a path.
Address unix_address(const std::string& name);  // throws Error{argument}

class Connection {
public:
    using Stop = std::function<bool()>;  // called several times per second while waiting

    struct Stopped {};  // thrown when Stop returns true
    struct Closed {};   // thrown when the peer has closed the connection

    Connection(int socket, Stop stop)
        : socket_(socket), stop_(std::move(stop)) {}  // takes ownership of the socket, which should be non-blocking
    ~Connection();
    Connection(Connection&& other) noexcept : socket_(other.socket_), stop_(std::move(other.stop_)) {
        other.socket_ = -1;
    }
    Connection& operator=(Connection&&) = delete;
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void read(void* bytes, size_t count);  // reads exactly `count` bytes
    void write(const void* bytes, size_t count);

private:
    void await(short events);

    int socket_ = -1;
    Stop stop_;
};

// Retries for `seconds` while nobody listens. Throws Error{file} with the last reason, or Stopped.
Connection connect(const Address& address, double seconds, const Connection::Stop& stop);

}  // namespace mlff::ipi
