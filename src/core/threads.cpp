// SPDX-License-Identifier: MIT
#include "core/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/owner_process.h"
#include "core/stage_profile.h"

namespace mlff {

int available_cores() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

namespace {

void relax_processor() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

// An evaluation is many short jobs, and waking a sleeping thread can take longer than a job. So spin briefly before
// going to sleep.
template <class Condition>
bool came_soon(const Condition& condition) {
    constexpr auto kMoment = std::chrono::microseconds(50);
    const auto end = std::chrono::steady_clock::now() + kMoment;
    do {
        for (int i = 0; i < 16; ++i) {
            if (condition()) return true;
            relax_processor();
        }
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

}  // namespace

// The caller writes a job before it increments the job number; workers read it after. The next job is written only when
// all workers have finished.
struct ThreadTeam::Shared {
    std::mutex mutex;
    std::condition_variable job_ready;
    std::condition_variable job_done;
    const std::function<void(int64_t, int)>* work = nullptr;
    int64_t chunk_count = 0;
    std::atomic<int64_t> next_chunk{0};
    std::atomic<uint64_t> job_number{0};
    std::atomic<int> busy{0};
    std::atomic<bool> stopping{false};
    bool may_look = true;  // spin before sleeping; off if threads share cores
    std::exception_ptr first_error;
    std::vector<std::thread> threads;
    OwnerProcess owner;
    StageProfile* profile = nullptr;
    Stage stage;  // the caller's stage, while profiling

    void take_chunks(int worker) {
        for (;;) {
            const int64_t chunk = next_chunk.fetch_add(1, std::memory_order_relaxed);
            if (chunk >= chunk_count) return;
            try {
                (*work)(chunk, worker);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!first_error) first_error = std::current_exception();
                next_chunk.store(chunk_count, std::memory_order_relaxed);
            }
        }
    }

    // Time outside any nested stage counts for the caller's stage.
    void work_profiled(int worker) {
        Stages stages(profile ? &profile->log(worker) : nullptr, stage.direction, stage.layer);
        stages.begin(stage.name);
        take_chunks(worker);
    }

    void serve(int worker) {
        uint64_t last_job = 0;
        const auto has_job = [&] { return stopping || job_number != last_job; };
        for (;;) {
            wait(job_ready, has_job);
            if (stopping) return;
            last_job = job_number;
            work_profiled(worker);
            if (--busy == 0) {
                const std::lock_guard lock(mutex);
                job_done.notify_one();
            }
        }
    }

    template <class Condition>
    void wait(std::condition_variable& change, const Condition& condition) {
        if (may_look && came_soon(condition)) return;
        std::unique_lock lock(mutex);
        change.wait(lock, condition);
    }

    void stop() {
        {
            const std::lock_guard lock(mutex);
            stopping = true;
        }
        job_ready.notify_all();
        for (auto& thread : threads) thread.join();
        threads.clear();
    }
};

ThreadTeam::ThreadTeam(int thread_count) : shared_(std::make_unique<Shared>()) {
    const int cores = available_cores();
    if (thread_count <= 0) thread_count = cores;
    shared_->may_look = thread_count <= cores;
    shared_->threads.reserve(static_cast<size_t>(thread_count));
    try {
        for (int worker = 1; worker < thread_count; ++worker)
            shared_->threads.emplace_back([shared = shared_.get(), worker] { shared->serve(worker); });
    } catch (const std::system_error&) {  // the system allows no more threads: use those that started
    } catch (...) {                       // out of memory: stop the running threads before destroying them
        shared_->stop();
        throw;
    }
}

ThreadTeam::~ThreadTeam() {
    if (shared_->threads.empty()) return;
    if (shared_->owner.is_here())
        shared_->stop();
    else
        (void)shared_.release();  // In a forked process there are no workers to join, and they may have held
                                  // locks at the time of the fork: leak the state.
}

void ThreadTeam::require_threads() const {
    if (!shared_->threads.empty() && !shared_->owner.is_here())
        fail(Status::argument,
             "this object was created before the process was forked, and threads do not survive a fork: create one in "
             "each process");
}

int ThreadTeam::size() const { return static_cast<int>(shared_->threads.size()) + 1; }

void ThreadTeam::set_profile(StageProfile* profile) {
    if (profile) profile->reserve_logs(size());
    shared_->profile = profile;
}

StageProfile* ThreadTeam::profile() const { return shared_->profile; }

StageLog* ThreadTeam::stage_log(int worker) const {
    return shared_->profile ? &shared_->profile->log(worker) : nullptr;
}

void ThreadTeam::run(int64_t chunk_count, const std::function<void(int64_t, int)>& work) {
    if (chunk_count <= 0) return;
    if (chunk_count == 1 || shared_->threads.empty()) {
        for (int64_t chunk = 0; chunk < chunk_count; ++chunk) work(chunk, 0);
        return;
    }
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->work = &work;
        shared_->chunk_count = chunk_count;
        shared_->next_chunk.store(0, std::memory_order_relaxed);
        shared_->busy = static_cast<int>(shared_->threads.size());
        if (shared_->profile) {
            const Stage* current = shared_->profile->log(0).current();
            shared_->stage = current ? *current : Stage{"other work"};
        }
        ++shared_->job_number;
    }
    shared_->job_ready.notify_all();
    shared_->take_chunks(0);
    shared_->wait(shared_->job_done, [&] { return shared_->busy == 0; });
    if (shared_->first_error) std::rethrow_exception(std::exchange(shared_->first_error, nullptr));
}

}  // namespace mlff
