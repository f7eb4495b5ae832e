// SPDX-License-Identifier: MIT
// Writes frames in a thread of its own while the run goes on. The queue is short: a disk that is too slow slows the
// run, and no frame is lost.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trajectory.h"

namespace mlff::app {

class TrajectoryWriter {
public:
    explicit TrajectoryWriter(std::unique_ptr<TrajectoryFile> file);
    ~TrajectoryWriter();  // after the frames in the queue
    TrajectoryWriter(const TrajectoryWriter&) = delete;
    TrajectoryWriter& operator=(const TrajectoryWriter&) = delete;

    void put(const MolecularDynamics& dynamics);  // waits while the queue is full
    uint64_t flush();                             // waits until all frames are on disk; TrajectoryFile::flush()
    // Both throw what went wrong in the thread; frames after that are not written.

private:
    static constexpr size_t kQueueLength = 4;
    void work();

    std::unique_ptr<TrajectoryFile> file_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Snapshot> queue_;
    std::vector<Snapshot> spare_;  // memory of frames that were written
    std::exception_ptr error_;
    bool is_writing_ = false, is_ending_ = false;
    std::thread thread_;  // last: begins when all else is there
};

}  // namespace mlff::app
