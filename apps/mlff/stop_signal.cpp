// SPDX-License-Identifier: MIT
#include "stop_signal.h"

#include <atomic>
#include <csignal>

namespace mlff::app {
namespace {

std::atomic<int> received{0};  // the handler may run on any thread
static_assert(std::atomic<int>::is_always_lock_free);
struct sigaction before_interrupt, before_terminate;

void remember(int number) { received = number; }

}  // namespace

StopSignal::StopSignal() {
    received = 0;
    struct sigaction action {};
    action.sa_handler = remember;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;  // may come twice: timeout and queueing systems send it to a process and to its group
    sigaction(SIGTERM, &action, &before_terminate);
    action.sa_flags |= SA_RESETHAND;  // a second Ctrl-C ends the process
    sigaction(SIGINT, &action, &before_interrupt);
}

StopSignal::~StopSignal() {
    sigaction(SIGINT, &before_interrupt, nullptr);
    sigaction(SIGTERM, &before_terminate, nullptr);
}

int StopSignal::number() const { return received; }

}  // namespace mlff::app
