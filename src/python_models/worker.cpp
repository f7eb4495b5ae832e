// SPDX-License-Identifier: MIT
#include "python_models/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/log.h"

extern char** environ;

namespace mlff::python {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollMilliseconds = 50;
constexpr int kMostSilentPolls = 60;  // 3 s without a heartbeat. Counted in polls, so that a pause of the host program
                                      // itself does not count against the worker
constexpr size_t kMostOutput = 4000;  // bytes of output that are kept
constexpr int64_t kLeastCapacity = 256;  // atoms

void close_descriptor(int& descriptor) {
    if (descriptor >= 0) close(descriptor);
    descriptor = -1;
}

// The host program's environment without the variables that configure Python: they must not affect the model's Python.
std::vector<char*> environment_of_child() {
    std::vector<char*> kept;
    for (char** entry = environ; *entry; ++entry)
        if (!std::string_view(*entry).starts_with("PYTHON")) kept.push_back(*entry);
    kept.push_back(nullptr);
    return kept;
}

// Destroys what was set up for posix_spawn.
struct SpawnSetup {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    SpawnSetup() {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setpgroup(&attributes,
                                  0);  // Ctrl-C is for the host program, which may want to shut down cleanly
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    }
    ~SpawnSetup() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
};

}  // namespace

Worker::Worker(const std::filesystem::path& program, const std::filesystem::path& library, std::string name,
               double time_limit)
    : name_(std::move(name)), time_limit_(time_limit), buffer_(sizeof(Message) + kMostText, '\0') {
    int sockets[2] = {-1, -1}, output[2] = {-1, -1};
    int error = 0;
    // All descriptors are closed on exec. posix_spawn puts those for the child in place, and the child gets no others.
    // The child cannot shrink the memory file, which would make our next access to it a bus error. It can only grow.
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0 || pipe2(output, O_CLOEXEC) != 0 ||
        (memory_file_ = memfd_create("mlff-python", MFD_CLOEXEC | MFD_ALLOW_SEALING)) < 0 ||
        ftruncate(memory_file_, static_cast<off_t>(kArraysOffset)) != 0 ||
        fcntl(memory_file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        error = errno;
    socket_ = sockets[0];
    output_ = output[0];
    if (error == 0) {
        fcntl(output_, F_SETFL, O_NONBLOCK);
        void* page = mmap(nullptr, sizeof(Heartbeat), PROT_READ | PROT_WRITE, MAP_SHARED, memory_file_, 0);
        if (page == MAP_FAILED)
            error = errno;
        else
            heartbeat_ = static_cast<Heartbeat*>(page);
    }
    if (error == 0) {
        SpawnSetup setup;
        // First move them above 0 ... 4, then to their places.
        std::array<int, 3> high = {fcntl(sockets[1], F_DUPFD_CLOEXEC, 16), fcntl(memory_file_, F_DUPFD_CLOEXEC, 16),
                                   fcntl(output[1], F_DUPFD_CLOEXEC, 16)};
        posix_spawn_file_actions_addopen(&setup.actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&setup.actions, high[2], 1);
        posix_spawn_file_actions_adddup2(&setup.actions, high[2], 2);
        posix_spawn_file_actions_adddup2(&setup.actions, high[0], kSocketDescriptor);
        posix_spawn_file_actions_adddup2(&setup.actions, high[1], kMemoryDescriptor);
        posix_spawn_file_actions_addclosefrom_np(&setup.actions, kMemoryDescriptor + 1);
        const std::string version = std::to_string(kProtocolVersion);
        std::array<char*, 4> arguments = {const_cast<char*>(program.c_str()), const_cast<char*>(version.c_str()),
                                          const_cast<char*>(library.c_str()), nullptr};
        error = high[0] < 0 || high[1] < 0 || high[2] < 0
                    ? EMFILE
                    : posix_spawn(&pid_, program.c_str(), &setup.actions, &setup.attributes, arguments.data(),
                                  environment_of_child().data());
        for (int& descriptor : high) close_descriptor(descriptor);
        if (error != 0) pid_ = -1;
    }
    close_descriptor(sockets[1]);
    close_descriptor(output[1]);
    if (error != 0) {
        end();
        fail(Status::device, "model '", name_, "': ", program.string(), " cannot be started: ", std::strerror(error));
    }
    pid_descriptor_ =
        static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));  // unlike the pid, it cannot be reused by another process
}

Worker::~Worker() { end(); }

// Kills the process if it runs, and releases everything.
std::string Worker::end() {
    std::string how;
    is_usable_ = false;
    close_descriptor(socket_);
    if (!owner_.is_here()) pid_ = -1;  // in a forked process: the worker belongs to the process that started it
    if (pid_ > 0) {
        const auto is_over = [&](int options) {
            siginfo_t info{};
            const bool has_descriptor = pid_descriptor_ >= 0;
            const int result =
                waitid(has_descriptor ? static_cast<idtype_t>(P_PIDFD) : P_PID,
                       static_cast<id_t>(has_descriptor ? pid_descriptor_ : pid_), &info, WEXITED | options);
            if (result != 0) return errno != EINTR;  // the host program has reaped it, or lets the system do so
            if (info.si_pid == 0) return false;
            if (info.si_code == CLD_EXITED)
                how = concat("it ended with exit code ", info.si_status);
            else
                how = concat("it was killed by signal ", info.si_status, " (", strsignal(info.si_status),
                             info.si_status == SIGKILL ? ", perhaps because the system ran out of memory)" : ")");
            return true;
        };
        if (!is_over(WNOHANG)) {
            if (pid_descriptor_ < 0 || syscall(SYS_pidfd_send_signal, pid_descriptor_, SIGKILL, nullptr, 0) != 0)
                kill(pid_, SIGKILL);
            while (!is_over(0)) continue;
        }
        pid_ = -1;
    }
    if (output_ >= 0 && owner_.is_here()) read_output();
    close_descriptor(pid_descriptor_);
    close_descriptor(output_);
    close_descriptor(memory_file_);
    if (arrays_) munmap(arrays_, SharedArrays::byte_count(capacity_));
    if (heartbeat_) munmap(heartbeat_, sizeof(Heartbeat));
    arrays_ = nullptr;
    heartbeat_ = nullptr;
    capacity_ = 0;
    return how;
}

// Reads the worker's standard output: copies it to the log, and keeps the end.
void Worker::read_output() {
    char part[4096];
    for (;;) {
        const ssize_t size = read(output_, part, sizeof part);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return;
        output_text_.append(part, static_cast<size_t>(size));
        if (output_text_.size() > kMostOutput) output_text_.erase(0, output_text_.size() - kMostOutput);
        line_.append(part, static_cast<size_t>(size));
        size_t begin = 0;
        for (size_t end; (end = line_.find('\n', begin)) != std::string::npos; begin = end + 1)
            if (end > begin) log(LogLevel::info, "Python: " + line_.substr(begin, end - begin));
        line_.erase(0, begin);
        if (line_.size() > kMostOutput) line_.clear();  // not a line of text
    }
}

// The last three non-empty lines.
std::string Worker::last_words() const {
    std::vector<std::string> lines;
    std::istringstream text(output_text_);
    for (std::string line; std::getline(text, line);)
        if (!line.empty()) lines.push_back(line);
    std::string words;
    for (size_t i = lines.size() - std::min<size_t>(lines.size(), 3); i < lines.size(); ++i)
        words += (words.empty() ? "" : " | ") + lines[i];
    return words.substr(words.size() - std::min<size_t>(words.size(), 600));
}

void Worker::fail_as_dead(const std::string& what) {
    const std::string how = end();
    const std::string words = last_words();
    const std::string reason =
        !what.empty() ? what : concat("the Python process ended unexpectedly", how.empty() ? "" : ": ", how);
    fail(Status::device, "model '", name_, "': ", reason, words.empty() ? "" : "; its last output: ", words,
         "; the next call starts a new process");
}

void Worker::send(Message& request, const std::string& text) {
    if (text.size() > kMostText)
        fail(Status::argument, "model '", name_, "': a request of ", text.size(), " characters is too long");
    request.text_size = static_cast<uint32_t>(text.size());
    iovec parts[2] = {{&request, sizeof request}, {const_cast<char*>(text.data()), text.size()}};
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    ssize_t sent;
    do sent = sendmsg(socket_, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) fail_as_dead("");
}

bool Worker::read_message(Message& message, std::string& text) {
    const ssize_t size = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (size < static_cast<ssize_t>(sizeof message))
        return false;  // nothing yet, or closed; the process descriptor reports the latter
    std::memcpy(&message, buffer_.data(), sizeof message);
    text.assign(buffer_.data() + sizeof message, static_cast<size_t>(size) - sizeof message);
    return true;
}

Message Worker::exchange(Message request, const std::string& text, std::string& answer) {
    if (!owner_.is_here())
        fail(Status::argument, "model '", name_,
             "': the process was forked after the Python process was started: create a session in each process");
    send(request, text);
    const auto begin = Clock::now();
    uint64_t last_beat = heartbeat_->count.load(std::memory_order_relaxed);
    int silent_polls = 0;
    for (;;) {
        // The process descriptor reports the end even if a process left behind by the worker keeps the socket open.
        std::array<pollfd, 3> events = {pollfd{socket_, POLLIN, 0}, pollfd{output_, POLLIN, 0},
                                        pollfd{pid_descriptor_, POLLIN, 0}};
        const int ready = poll(events.data(), events.size(), kPollMilliseconds);
        if (events[1].revents & POLLIN) read_output();
        Message message;
        while (read_message(message, answer)) {
            if (message.kind == MessageKind::answer) {
                if (message.status != 0) fail(static_cast<Status>(message.status), "model '", name_, "': ", answer);
                return message;
            }
            log(static_cast<LogLevel>(message.status), answer);
        }
        if ((events[0].revents & (POLLHUP | POLLERR)) || events[2].revents) fail_as_dead("");
        if (ready <= 0) {
            const uint64_t beat = heartbeat_->count.load(std::memory_order_relaxed);
            silent_polls = beat == last_beat ? silent_polls + 1 : 0;
            last_beat = beat;
            if (silent_polls > kMostSilentPolls)
                fail_as_dead(
                    "the Python process no longer runs (it was stopped, or the machine is out of memory) and "
                    "was ended");
        }
        if (time_limit_ > 0 && std::chrono::duration<double>(Clock::now() - begin).count() > time_limit_)
            fail_as_dead(concat("Python gave no answer within ", time_limit_, " s (timeout=) and was ended"));
    }
}

std::string Worker::ask(MessageKind kind, const std::string& text) {
    Message request;
    request.kind = kind;
    std::string answer;
    exchange(request, text, answer);
    return answer;
}

void Worker::reserve(int64_t atom_count) {
    if (atom_count <= capacity_) return;
    const int64_t capacity = std::max({kLeastCapacity, atom_count, capacity_ + capacity_ / 2});
    if (arrays_) munmap(arrays_, SharedArrays::byte_count(capacity_));
    arrays_ = nullptr;
    capacity_ = 0;
    const size_t bytes = SharedArrays::byte_count(capacity);
    // Allocates now: running out of memory is an error here, instead of a bus error later.
    if (const int error = posix_fallocate(memory_file_, 0, static_cast<off_t>(kArraysOffset + bytes)); error != 0)
        fail(Status::memory, "model '", name_, "': cannot allocate shared memory for ", capacity,
             " atoms: ", std::strerror(error));
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_file_, kArraysOffset);
    if (mapped == MAP_FAILED)
        fail(Status::memory, "model '", name_, "': cannot map shared memory for ", capacity,
             " atoms: ", std::strerror(errno));
    arrays_ = mapped;
    capacity_ = capacity;
}

void Worker::evaluate(const SystemView& system, const Outputs& outputs) {
    reserve(std::max<int64_t>(system.atom_count, 1));
    const SharedArrays shared(arrays_, capacity_);
    const auto count = static_cast<size_t>(system.atom_count);
    std::copy_n(system.atomic_numbers, count, shared.atomic_numbers);
    std::copy_n(system.positions, 3 * count, shared.positions);
    Message request;
    request.kind = MessageKind::evaluate;
    request.atom_count = system.atom_count;
    request.capacity = capacity_;
    request.wants_energy = outputs.energy != nullptr;
    request.wants_forces = outputs.forces != nullptr;
    request.wants_virial = outputs.virial != nullptr;
    request.wants_atom_energies = outputs.atom_energies != nullptr;
    for (size_t k = 0; k < 9; ++k) request.cell[k] = system.cell[k / 3][k % 3];
    for (size_t k = 0; k < 3; ++k) request.periodic[k] = system.periodic[k];
    request.total_charge = system.total_charge;
    request.spin_multiplicity = system.spin_multiplicity;
    std::string ignored;
    const Message answer = exchange(request, "", ignored);
    if (outputs.energy) *outputs.energy = answer.energy;
    if (outputs.forces) std::copy_n(shared.forces, 3 * count, outputs.forces);
    if (outputs.virial) std::copy_n(answer.virial, 9, outputs.virial);
    if (outputs.atom_energies) std::copy_n(shared.atom_energies, count, outputs.atom_energies);
}

}  // namespace mlff::python
