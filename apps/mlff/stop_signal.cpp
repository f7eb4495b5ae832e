// SPDX-License-Identifier: MIT
#include "stop_signal.h"

#include <csignal>

namespace mlff::app {
namespace {

volatile std::sig_atomic_t received = 0;
struct sigaction before_interrupt, before_terminate;

void remember(int number) { received = number; }

}  // namespace

StopSignal::StopSignal() {
    received = 0;
    struct sigaction action {};
    action.sa_handler = remember;
    action.sa_flags = SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before_interrupt);
    sigaction(SIGTERM, &action, &before_terminate);
}

StopSignal::~StopSignal() {
    sigaction(SIGINT, &before_interrupt, nullptr);
    sigaction(SIGTERM, &before_terminate, nullptr);
}

int StopSignal::number() const { return received; }

}  // namespace mlff::app
