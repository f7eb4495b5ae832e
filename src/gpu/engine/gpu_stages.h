// SPDX-License-Identifier: MIT
// Times the stages of a step with events in its stream, while a profile is being recorded. Steps are then launched
// kernel by kernel, not as graphs. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "core/stage_profile.h"
#include "gpu/engine/step_work.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/nvtx_range.h"

namespace mlff::gpu {

class GpuStages {
public:
    GpuStages() = default;
    GpuStages(const GpuStages&) = delete;
    GpuStages& operator=(const GpuStages&) = delete;
    ~GpuStages() {
        for (cudaEvent_t event : events_) cudaEventDestroy(event);
    }

    // While it lives, stages are timed for this profile. nullptr: nothing is timed.
    class Watch {
    public:
        Watch(GpuStages& stages, StageProfile* profile) : stages_(stages) { stages.profile_ = profile; }
        Watch(const Watch&) = delete;
        Watch& operator=(const Watch&) = delete;
        ~Watch() { stages_.forget(); }

    private:
        GpuStages& stages_;
    };
    bool is_watched() const { return profile_ != nullptr; }

    // Also ends the stage before.
    void begin(const Stage& stage, cudaStream_t stream, const StepWork& work = kUnknownStepWork) {
        if (!is_watched()) return;
        end_range();
        begin_nvtx_range(stage_text(stage).c_str());
        has_range_ = true;
        mark(stage, work, stream);
    }
    void finish(cudaStream_t stream) {
        if (!is_watched() || marks_.empty()) return;
        end_range();
        mark({}, {}, stream);
    }
    // Adds the times to the profile. The stream must have finished.
    void collect(int64_t atom_count, int64_t edge_count) {
        for (size_t i = 0; i + 1 < marks_.size(); ++i) {
            const Mark& mark = marks_[i];
            const StageWork work = mark.work.of_atom * static_cast<double>(atom_count) +
                                   mark.work.of_edge * static_cast<double>(edge_count);
            if (*mark.stage.name) profile_->device().add(mark.stage, nanoseconds_at(i), nanoseconds_at(i + 1), work);
        }
        marks_.clear();
    }

private:
    void forget() {
        end_range();  // after an error
        marks_.clear();
        profile_ = nullptr;
    }
    void mark(const Stage& stage, const StepWork& work, cudaStream_t stream) {
        if (marks_.size() == events_.size()) {
            cudaEvent_t event = nullptr;
            check(cudaEventCreateWithFlags(&event, 0), "making an event");
            events_.push_back(event);
        }
        check(cudaEventRecord(events_[marks_.size()], stream), "timing a stage");
        marks_.push_back({stage, work});
    }
    void end_range() {
        if (has_range_) end_nvtx_range();
        has_range_ = false;
    }
    int64_t nanoseconds_at(size_t i) const {
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, events_.front(), events_[i]), "timing a stage");
        return static_cast<int64_t>(1e6 * static_cast<double>(milliseconds));
    }

    StageProfile* profile_ = nullptr;
    bool has_range_ = false;
    std::vector<cudaEvent_t> events_;
    struct Mark {
        Stage stage;
        StepWork work;
    };
    std::vector<Mark> marks_;  // [event]: the stage that begins there; without a name: none
};

}  // namespace mlff::gpu
