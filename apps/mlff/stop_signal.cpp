// SPDX-License-Identifier: MIT
#include "stop_signal.h"

#include <array>
#include <atomic>
#include <csignal>

namespace mlff::app {
namespace {

std::atomic<int> received{0};  // the handler may run on any thread
static_assert(std::atomic<int>::is_always_lock_free);
// What users, terminals that go away and queueing systems (before the time is up, or when it is) send to end a run.
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU};
std::array<struct sigaction, kSignals.size()> before;

void remember(int number) { received = number; }

}  // namespace

StopSignal::StopSignal() {
    received = 0;
    struct sigaction action {};
    action.sa_handler = remember;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < kSignals.size(); ++i) {
        action.sa_flags =
            SA_RESTART;  // may come twice: timeout and queueing systems send it to a process and to its group
        if (kSignals[i] == SIGINT) action.sa_flags |= SA_RESETHAND;  // a second Ctrl-C ends the process
        sigaction(kSignals[i], nullptr, &before[i]);
        if (before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);  // nohup has it ignored
    }
}

StopSignal::~StopSignal() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
}

int StopSignal::number() const { return received; }

}  // namespace mlff::app
