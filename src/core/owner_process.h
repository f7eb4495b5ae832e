// SPDX-License-Identifier: MIT
// Detects use in a forked process. A fork copies memory but not the parent's threads or child processes, so objects
// that depend on these must know that they are copies.
#pragma once

#include <unistd.h>

namespace mlff {

// Remembers the process that created it. Each check costs one short system call. A pthread_atfork() handler would avoid
// it, but would stay installed in the host program and miss processes created by other calls.
class OwnerProcess {
public:
    bool is_here() const { return pid_ == getpid(); }

private:
    pid_t pid_ = getpid();
};

}  // namespace mlff
