// SPDX-License-Identifier: MIT
#include "run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/error.h"

namespace mlff::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostOutput = 1 << 20;

// Pointers into `arguments` and a null pointer, for exec.
std::vector<char*> words_of(std::vector<std::string>& arguments) {
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    return words;
}

[[noreturn]] void become_program(const std::vector<char*>& words, int output) {
    setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDERR_FILENO);
    dup2(output, STDOUT_FILENO);
    execvp(words[0], words.data());
    _exit(127);
}

}  // namespace

std::string ProgramResult::why_failed() const {
    if (is_timed_out) return "it did not end in time";
    if (signal != 0) return concat("it was ended by signal ", signal, " (", strsignal(signal), ")");
    if (exit_code == 127) return "it could not be started";
    return exit_code == 0 ? "" : concat("it ended with exit code ", exit_code);
}

ProgramResult run_program(const std::vector<std::string>& arguments, double seconds) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::vector<std::string> copies = arguments;
    const std::vector<char*> words = words_of(copies);
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        fail(Status::memory, arguments[0], ": cannot make a pipe (", std::strerror(errno), ")");
    const pid_t child = fork();
    if (child == 0) become_program(words, ends[1]);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        fail(Status::memory, arguments[0], ": cannot start a process (", std::strerror(errno), ")");
    }
    setpgid(child, child);  // both do it: whoever comes first

    ProgramResult result;
    std::array<char, 4096> buffer{};
    for (bool is_open = true; is_open;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0) {
            result.is_timed_out = true;
            break;
        }
        pollfd waiting{ends[0], POLLIN, 0};
        const int ready = poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
        if (ready < 0 && errno != EINTR) break;
        if (ready <= 0) continue;
        const ssize_t got = read(ends[0], buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        is_open = got > 0;
        if (got > 0)
            result.output.append(buffer.data(), std::min(static_cast<size_t>(got),
                                                         kMostOutput - std::min(kMostOutput, result.output.size())));
    }
    close(ends[0]);
    // It may have closed its output and go on.
    int status = 0;
    pid_t gone = 0;
    while (!result.is_timed_out && (gone = waitpid(child, &status, WNOHANG)) == 0) {
        if (Clock::now() >= end)
            result.is_timed_out = true;
        else
            usleep(1000);
    }
    if (result.is_timed_out) {
        kill(-child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
        return result;
    }
    if (gone == child && WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (gone == child && WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    return result;
}

ProgramResult run_silently(const std::vector<std::string>& arguments) {
    std::vector<std::string> copies = arguments;
    const std::vector<char*> words = words_of(copies);
    const pid_t child = fork();
    if (child < 0) fail(Status::memory, arguments[0], ": cannot start a process (", std::strerror(errno), ")");
    if (child == 0) {
        const int nothing = open("/dev/null", O_RDWR);
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
        execvp(words[0], words.data());
        _exit(127);
    }
    int status = 0;
    pid_t gone = 0;
    while ((gone = waitpid(child, &status, 0)) < 0 && errno == EINTR) {}
    ProgramResult result;
    if (gone == child && WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (gone == child && WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    return result;
}

}  // namespace mlff::app
