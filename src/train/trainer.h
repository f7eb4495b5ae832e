// SPDX-License-Identifier: MIT
// The training loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/batches.h"
#include "train/errors.h"
#include "train/log.h"
#include "train/loss.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace mlff::train {

struct TrainerOptions {
    ModelShape shape;
    at::Tensor start;  // parameters to begin with, flat; undefined: random ones
    LossRule loss;
    OptimizerRule optimizer;
    Schedule schedule;
    double force_weight = 100, stress_weight = 0;
    int64_t batch_frames = 32;
    uint64_t seed = 1;
    int64_t validations = 20;          // spread over the run
    int64_t validation_frames = 2000;  // at most; 0 = all
    int64_t patience = 0;              // stop after so many validations without improvement; 0 = never
    int64_t log_every = 100;           // steps
    int64_t stop_after = 0;            // steps in this process, then write a checkpoint and end; 0 = no limit
    bool pads_batches = false, uses_graph = false;
    bool uses_kernels = false;       // message_kernels.h
    bool counts_operations = false;  // prints the operations of one step
    std::string checkpoint_path;
};

// Everything needed to continue a run as if it had not stopped.
struct TrainerState {
    int64_t step = 0, epoch = 0, position = 0;
    double seconds = 0;
    int64_t next_validation = 1, stale_validations = 0;
    double best_score = 0;
    int64_t best_step = -1;
    std::vector<ValidationRow> history;
};

struct TrainerResult {
    at::Tensor parameters;  // averaged, of the best validation; flat, on the CPU
    TrainerState state;
    bool is_complete = false;  // false: stopped early by --stop-after or a signal; can be resumed
    bool used_graph = false;
    double steps_per_second = 0, frames_per_second = 0;  // without validation
};

TrainerResult run_training(const TrainerOptions& options, const ElementTable& elements, const TrainingSet& training,
                           const TrainingSet& validation, size_t kind_count, bool resume, RunLog& log);

}  // namespace mlff::train
