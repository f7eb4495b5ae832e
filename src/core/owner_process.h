// SPDX-License-Identifier: MIT
// A forked process has a copy of everything but the other threads and the processes of its parent: what needs these
// must know that it is a copy.
#pragma once

#include <unistd.h>

namespace mlff {

// The process that made it. Asking takes one short system call; a handler by pthread_atfork() would save it, but stays
// in the host program and misses processes that are made by other calls.
class OwnerProcess {
public:
    bool is_here() const { return pid_ == getpid(); }

private:
    pid_t pid_ = getpid();
};

}  // namespace mlff
