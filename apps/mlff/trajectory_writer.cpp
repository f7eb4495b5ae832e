// SPDX-License-Identifier: MIT
#include "trajectory_writer.h"

namespace mlff::app {

TrajectoryWriter::TrajectoryWriter(std::unique_ptr<TrajectoryFile> file)
    : file_(std::move(file)), thread_([this] { work(); }) {}

TrajectoryWriter::~TrajectoryWriter() {
    {
        const std::lock_guard lock(mutex_);
        is_ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void TrajectoryWriter::put(const MolecularDynamics& dynamics) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.size() < kQueueLength || error_; });
    if (error_) std::rethrow_exception(error_);
    Snapshot snapshot;
    if (!spare_.empty()) {
        snapshot = std::move(spare_.back());
        spare_.pop_back();
    }
    snapshot.take(dynamics);
    queue_.push_back(std::move(snapshot));
    changed_.notify_all();
}

uint64_t TrajectoryWriter::flush() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return (queue_.empty() && !is_writing_) || error_; });
    if (error_) std::rethrow_exception(error_);
    return file_->flush();  // under the lock: the thread is waiting for frames
}

void TrajectoryWriter::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return !queue_.empty() || is_ending_; });
        if (queue_.empty() || error_) return;
        Snapshot snapshot = std::move(queue_.front());
        queue_.pop_front();
        is_writing_ = true;
        lock.unlock();
        std::exception_ptr error;
        try {
            file_->write(snapshot);
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        is_writing_ = false;
        error_ = error;
        spare_.push_back(std::move(snapshot));
        changed_.notify_all();
        if (error_) return;
    }
}

}  // namespace mlff::app
