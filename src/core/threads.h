// SPDX-License-Identifier: MIT
// A fixed team of threads that works on numbered chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace mlff {

class StageLog;
class StageProfile;

// Cores this process may run on.
int available_cores();

class ThreadTeam {
public:
    // thread_count 0: one thread for each core this process may run on. The calling thread is one of the team, which is
    // smaller than asked for where the system allows no more threads.
    explicit ThreadTeam(int thread_count);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int size() const;

    // Throws Error{argument} in a process that was forked from that which made the team: its threads are not there, and
    // run() would wait for them without end. A team of one works.
    void require_threads() const;

    // Calls work(chunk, worker) once for each chunk in [0, chunk_count), worker in [0, size()). Which worker gets a
    // chunk is not fixed, so results must depend on the chunk alone. Returns when all are done; the first
    // exception is thrown here. Not reentrant.
    void run(int64_t chunk_count, const std::function<void(int64_t chunk, int worker)>& work);

    // Where the workers' time goes is written there from now on (core/stage_profile.h), nullptr: nowhere. The profile
    // must outlive this or the next call.
    void set_profile(StageProfile* profile);
    StageProfile* profile() const;
    StageLog* stage_log(int worker) const;  // for stages that this worker is in; nullptr: nobody wants to know

private:
    struct Shared;
    std::unique_ptr<Shared> shared_;
};

}  // namespace mlff
