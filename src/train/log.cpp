// SPDX-License-Identifier: MIT
#include "train/log.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <iostream>

#include "core/error.h"

namespace mlff::train {
namespace {

template <class... Values>
std::string text(const char* format, Values... values) {
    std::array<char, 400> buffer{};
    std::snprintf(buffer.data(), buffer.size(), format, values...);
    return buffer.data();
}

}  // namespace

RunLog::RunLog(const std::string& csv_path, bool append) : is_terminal_(isatty(STDERR_FILENO) != 0) {
    csv_.open(csv_path, append ? std::ios::app : std::ios::trunc);
    if (!csv_) fail(Status::file, csv_path, ": cannot be written");
    if (!append)
        csv_ << "step,epoch,seconds,learning_rate,loss,energy_loss,force_loss,gradient_norm,steps_per_second,frames_"
                "per_second,"
                "valid_energy_mae_meV_per_atom,valid_energy_rmse_meV_per_atom,valid_force_mae_meV_per_A,valid_force_"
                "rmse_meV_per_A,valid_score\n";
}

void RunLog::training(const TrainingRow& row, double progress) {
    rows_.push_back(row);
    csv_ << text("%lld,%lld,%.3f,%.6g,%.6g,%.6g,%.6g,%.6g,%.4g,%.4g,,,,,\n", static_cast<long long>(row.step),
                 static_cast<long long>(row.epoch), row.seconds, row.learning_rate, row.loss, row.energy_loss,
                 row.force_loss, row.gradient_norm, row.steps_per_second, row.frames_per_second);
    csv_.flush();
    const std::string line = text(
        "step %lld  epoch %lld  %.0f s  rate %.2e  loss %.4g (energy %.4g, force %.4g)  |g| %.3g  %.1f steps/s  %.0f "
        "frames/s",
        static_cast<long long>(row.step), static_cast<long long>(row.epoch), row.seconds, row.learning_rate, row.loss,
        row.energy_loss, row.force_loss, row.gradient_norm, row.steps_per_second, row.frames_per_second);
    const auto now = std::chrono::steady_clock::now();
    if (is_terminal_) {
        constexpr int kWidth = 24;
        std::string bar(kWidth, '.');
        for (int i = 0; i < static_cast<int>(progress * kWidth); ++i) bar[static_cast<size_t>(i)] = '#';
        std::cerr << "\r\033[K[" << bar << "] " << text("%3.0f%% ", 100 * progress) << line << std::flush;
        has_bar_ = true;
    } else if (!last_line_ || now - *last_line_ > std::chrono::seconds(10)) {
        std::cerr << line << "\n";
        last_line_ = now;
    }
}

void RunLog::validation(const ValidationRow& row, bool is_best) {
    csv_ << text("%lld,,%.3f,,,,,,,,%.5g,%.5g,%.5g,%.5g,%.6g\n", static_cast<long long>(row.step), row.seconds,
                 1000 * row.energy_mae, 1000 * row.energy_rmse, 1000 * row.force_mae, 1000 * row.force_rmse, row.score);
    csv_.flush();
    note(text("step %lld  validation: energy MAE %.2f meV/atom, force MAE %.2f meV/A, RMSE %.2f, score %.5g%s",
              static_cast<long long>(row.step), 1000 * row.energy_mae, 1000 * row.force_mae, 1000 * row.force_rmse,
              row.score, is_best ? "  best" : ""));
}

void RunLog::note(const std::string& line) {
    clear_bar();
    std::cerr << line << "\n";
}

void RunLog::clear_bar() {
    if (has_bar_) std::cerr << "\r\033[K";
    has_bar_ = false;
}

void RunLog::end() {
    if (has_bar_) std::cerr << "\n";
    has_bar_ = false;
}

}  // namespace mlff::train
