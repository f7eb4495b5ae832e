// SPDX-License-Identifier: MIT
// A fixed team of threads that works on numbered chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace mlff {

class StageLog;
class StageProfile;

// The number of cores this process may run on.
int available_cores();

class ThreadTeam {
public:
    // thread_count 0: one thread per core this process may run on. The calling thread is part of the team. The team is
    // smaller than requested if the system allows no more threads.
    explicit ThreadTeam(int thread_count);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int size() const;

    // Throws Error{argument} in a process that was forked after the team was created: the worker threads do not exist
    // there, and run() would wait for ever. A team of one works.
    void require_threads() const;

    // Calls work(chunk, worker) once for each chunk in [0, chunk_count), with worker in [0, size()). The assignment of
    // chunks to workers is not fixed, so results must depend on the chunk alone. Returns when all chunks are done, and
    // rethrows the first exception. Not reentrant.
    void run(int64_t chunk_count, const std::function<void(int64_t chunk, int worker)>& work);

    // Records the workers' time in this profile from now on (core/stage_profile.h); nullptr stops it. The profile must
    // outlive the team or the next call of set_profile.
    void set_profile(StageProfile* profile);
    StageProfile* profile() const;
    StageLog* stage_log(int worker) const;  // where this worker records its stages; nullptr: not profiling

private:
    struct Shared;
    std::unique_ptr<Shared> shared_;
};

}  // namespace mlff
