// SPDX-License-Identifier: MIT
// The log of a run: a CSV file, and lines or a progress bar on the terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace mlff::train {

// Validation errors of the averaged weights.
struct ValidationRow {
    int64_t step = 0;
    double seconds = 0;
    double energy_mae = 0, energy_rmse = 0;  // eV/atom
    double force_mae = 0, force_rmse = 0;    // eV/angstrom
    double score = 0;                        // the loss, with the final weights
};

// Means over the steps since the last row.
struct TrainingRow {
    int64_t step = 0, epoch = 0;
    double seconds = 0, learning_rate = 0;
    double loss = 0, energy_loss = 0, force_loss = 0, gradient_norm = 0;
    double steps_per_second = 0, frames_per_second = 0;
};

class RunLog {
public:
    RunLog(const std::string& csv_path, bool append);  // throws Error{file}
    void training(const TrainingRow& row, double progress);
    void validation(const ValidationRow& row, bool is_best);
    void note(const std::string& line);
    void end();  // ends the line of the progress bar

    const std::vector<TrainingRow>& rows() const { return rows_; }

private:
    void clear_bar();
    std::ofstream csv_;
    bool is_terminal_ = false, has_bar_ = false;
    std::optional<std::chrono::steady_clock::time_point> last_line_;
    std::vector<TrainingRow> rows_;
};

}  // namespace mlff::train
