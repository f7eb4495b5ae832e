// SPDX-License-Identifier: MIT
// Ctrl-C, SIGTERM, SIGHUP, SIGUSR1 and SIGXCPU as a wish to stop. A second Ctrl-C ends the process as usual.
#pragma once

namespace mlff::app {

class StopSignal {
public:
    StopSignal();   // from now on the first signal is remembered
    ~StopSignal();  // what was set before is set again
    StopSignal(const StopSignal&) = delete;
    StopSignal& operator=(const StopSignal&) = delete;

    int number() const;  // 0 if none came
};

}  // namespace mlff::app
