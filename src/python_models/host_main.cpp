// SPDX-License-Identifier: MIT
// mlff-python-host: runs one Python model in a separate process. libmlff starts it with a socket, a memory file and the
// path of libmlff_python.so. It ends when the socket is closed, which the system also does when the parent dies.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "python_models/load_library.h"
#include "python_models/protocol.h"

namespace mlff::python {
namespace {

// The parent captures this output, and shows it when something goes wrong.
[[noreturn]] void give_up(const std::string& message) {
    std::cerr << "mlff-python-host: " << message << std::endl;
    _exit(2);
}

bool send_message(Message message, const char* text, size_t text_size, int flags) {
    message.text_size = static_cast<uint32_t>(std::min(text_size, kMostText));
    iovec parts[2] = {{&message, sizeof message}, {const_cast<char*>(text), message.text_size}};
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    ssize_t sent;
    do sent = sendmsg(kSocketDescriptor, &header, MSG_NOSIGNAL | flags);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

void answer(Message message, int status, const std::string& text) {
    message.kind = MessageKind::answer;
    message.status = status;
    if (!send_message(message, text.data(), text.size(), 0)) _exit(0);  // the parent has closed the socket
}

void log_from_python(void*, int level, const char* line) {
    Message message;
    message.kind = MessageKind::log;
    message.status = level;
    send_message(message, line, std::strlen(line), MSG_DONTWAIT);  // drops a line rather than block an evaluation
}

// Signals that this process runs, and ends it when the parent is gone, whatever Python is doing.
void keep_beating(Heartbeat* heartbeat, pid_t parent) {
    for (;;) {
        heartbeat->count.fetch_add(1, std::memory_order_relaxed);
        pollfd socket = {kSocketDescriptor, POLLRDHUP, 0};
        poll(&socket, 1, kHeartbeatMilliseconds);
        if ((socket.revents & (POLLHUP | POLLRDHUP | POLLERR)) || getppid() != parent) _exit(0);
    }
}

class MappedArrays {
public:
    // Maps the memory file again when its capacity has grown.
    SharedArrays at(int64_t capacity) {
        if (capacity != capacity_) {
            if (memory_) munmap(memory_, SharedArrays::byte_count(capacity_));
            memory_ = mmap(nullptr, SharedArrays::byte_count(capacity), PROT_READ | PROT_WRITE, MAP_SHARED,
                           kMemoryDescriptor, kArraysOffset);
            if (memory_ == MAP_FAILED)
                give_up(concat("cannot map the memory of ", capacity, " atoms: ", std::strerror(errno)));
            capacity_ = capacity;
        }
        return {memory_, capacity};
    }

private:
    void* memory_ = nullptr;
    int64_t capacity_ = 0;
};

class Host {
public:
    explicit Host(const char* library) : library_(library) {}

    // Handles one request and sends one answer.
    void serve(const Message& request, const std::string& text) {
        std::string reply;
        const TextSink sink = {
            [](void* to, const char* part, size_t size) { static_cast<std::string*>(to)->append(part, size); }, &reply};
        Message result;
        int status = 0;
        try {
            switch (request.kind) {
                case MessageKind::start:
                    interface_ = load_interface(library_);
                    status = interface_->start(text.c_str(), &log_from_python, nullptr, sink);
                    break;
                case MessageKind::load: status = interface_->load(text.c_str(), &teacher_, sink); break;
                case MessageKind::prepare: status = interface_->prepare(teacher_, text.c_str(), sink); break;
                case MessageKind::evaluate: status = evaluate(request, result, sink); break;
                default:
                    fail(Status::internal, "libmlff sent a message of unknown kind ",
                         static_cast<uint32_t>(request.kind));
            }
        } catch (const Error& error) {
            status = static_cast<int>(error.status());
            reply = error.what();
        }
        answer(result, status, reply);
    }

private:
    int evaluate(const Message& request, Message& result, const TextSink& sink) {
        const SharedArrays shared = arrays_.at(request.capacity);
        SystemArrays system{};
        system.atom_count = request.atom_count;
        system.atomic_numbers = shared.atomic_numbers;
        system.positions = shared.positions;
        std::copy_n(request.cell, 9, system.cell);
        std::copy_n(request.periodic, 3, system.periodic);
        system.total_charge = request.total_charge;
        system.spin_multiplicity = request.spin_multiplicity;
        const ResultArrays results = {request.wants_energy ? &result.energy : nullptr,
                                      request.wants_forces ? shared.forces : nullptr,
                                      request.wants_virial ? result.virial : nullptr,
                                      request.wants_atom_energies ? shared.atom_energies : nullptr};
        return interface_->evaluate(teacher_, &system, &results, sink);
    }

    const char* library_;
    const Interface* interface_ = nullptr;
    void* teacher_ = nullptr;
    MappedArrays arrays_;
};

int run(int argc, char** argv) {
    if (argc != 3 || std::atoi(argv[1]) != static_cast<int>(kProtocolVersion))
        give_up("this program is started by libmlff of the same version, not by hand");
    for (const int descriptor : {kSocketDescriptor, kMemoryDescriptor})
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);  // programs started by Python do not inherit them
    void* page = mmap(nullptr, sizeof(Heartbeat), PROT_READ | PROT_WRITE, MAP_SHARED, kMemoryDescriptor, 0);
    if (page == MAP_FAILED) give_up(concat("cannot map the memory file: ", std::strerror(errno)));
    std::thread(keep_beating, static_cast<Heartbeat*>(page), getppid()).detach();

    Host host(argv[2]);
    std::vector<char> buffer(sizeof(Message) + kMostText);
    for (;;) {
        const ssize_t size = recv(kSocketDescriptor, buffer.data(), buffer.size(), 0);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) _exit(0);
        Message request;
        if (static_cast<size_t>(size) < sizeof request) give_up("libmlff sent an incomplete message");
        std::memcpy(&request, buffer.data(), sizeof request);
        host.serve(request, std::string(buffer.data() + sizeof request, static_cast<size_t>(size) - sizeof request));
    }
}

}  // namespace
}  // namespace mlff::python

int main(int argc, char** argv) { return mlff::python::run(argc, argv); }
