// SPDX-License-Identifier: MIT
#include "tools/fetch/curl.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace mlff::fetch {
namespace {

constexpr size_t kMostComplaints = 4096;

// Between fork and exec: only calls that are safe there.
[[noreturn]] void become_curl(char* const* words, int output, int errors) {
    setpgid(0, 0);                     // Ctrl-C is for mlff, which ends curl
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // and if mlff goes, curl goes
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execvp(words[0], words);
    _exit(Curl::kNotStarted);
}

void close_both(const std::array<int, 2>& ends) {
    ::close(ends[0]);
    ::close(ends[1]);
}

}  // namespace

Curl::Curl(const std::vector<std::string>& arguments) {
    std::vector<std::string> copies = arguments;
    copies.insert(copies.begin(), "curl");
    std::vector<char*> words;
    for (std::string& copy : copies) words.push_back(copy.data());
    words.push_back(nullptr);
    std::array<int, 2> output{}, errors{};
    if (pipe2(output.data(), O_CLOEXEC) != 0)
        fail(Status::memory, "curl: cannot make a pipe (", std::strerror(errno), ")");
    if (pipe2(errors.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
        close_both(output);
        fail(Status::memory, "curl: cannot make a pipe (", std::strerror(errno), ")");
    }
    process_ = fork();
    if (process_ == 0) become_curl(words.data(), output[1], errors[1]);
    if (process_ < 0) {
        close_both(output);
        close_both(errors);
        fail(Status::memory, "curl: cannot start a process (", std::strerror(errno), ")");
    }
    setpgid(process_, process_);  // both do it: whoever comes first
    ::close(output[1]);
    ::close(errors[1]);
    output_ = output[0];
    errors_ = errors[0];
}

Curl::~Curl() {
    if (process_ > 0) {
        kill(-process_, SIGKILL);
        while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {}
    }
    ::close(output_);
    ::close(errors_);
}

Curl::Read Curl::read(std::string& output) {
    std::array<char, 1 << 16> buffer{};
    std::array<pollfd, 2> waiting = {pollfd{output_, POLLIN, 0}, pollfd{errors_, POLLIN, 0}};
    if (poll(waiting.data(), waiting.size(), 200) <= 0) return Read::nothing_yet;
    if (waiting[1].revents != 0) {
        const ssize_t got = ::read(errors_, buffer.data(), buffer.size());
        if (got > 0)
            complaints_.append(buffer.data(), std::min(static_cast<size_t>(got), kMostComplaints - complaints_.size()));
    }
    if (waiting[0].revents == 0) {
        if ((waiting[1].revents & POLLIN) == 0) usleep(10'000);  // its standard error is closed: do not spin
        return Read::nothing_yet;
    }
    const ssize_t got = ::read(output_, buffer.data(), buffer.size());
    if (got < 0) return errno == EINTR ? Read::nothing_yet : Read::end;
    if (got == 0) return Read::end;
    output.append(buffer.data(), static_cast<size_t>(got));
    return Read::bytes;
}

int Curl::exit_code() {
    int status = 0;
    pid_t gone = 0;
    do {
        gone = waitpid(process_, &status, 0);
    } while (gone < 0 && errno == EINTR);
    process_ = -1;
    std::array<char, 1024> buffer{};
    for (ssize_t got = 0; (got = ::read(errors_, buffer.data(), buffer.size())) > 0;)
        complaints_.append(buffer.data(), std::min(static_cast<size_t>(got), kMostComplaints - complaints_.size()));
    return gone > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string Curl::complaint() const {
    const std::string line = complaints_.substr(0, complaints_.find('\n'));
    return line.empty() ? "curl failed" : line;
}

}  // namespace mlff::fetch
