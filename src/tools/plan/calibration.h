// SPDX-License-Identifier: MIT
// A calibration: the measured cost model of one model on one machine, stored in a file of the user.
//
//     FOLDER/cpu-mixed-2-xxxx.json   {"format": "mlff calibration", "version": 1, ...}; see docs/planning.md
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/plan/cost_model.h"

namespace mlff::plan {

// What a calibration applies to. It is not valid for anything else.
struct CalibrationKey {
    std::string processor, architecture, instructions, gpu;  // gpu "": the device is not a GPU
    int cores = 0;
    std::string model;   // SHA-256 of the file, or the name of a model without a file
    std::string device;  // "cpu", "reference", or "cuda" for any GPU of that name
    std::string precision;
    int threads = 0;
    bool exact_radial = false;
    bool operator==(const CalibrationKey&) const = default;
};

// How `key` differs from `other`, in words: "device cpu, not cuda"; "" if they are the same.
std::string difference_text(const CalibrationKey& key, const CalibrationKey& other);

struct Calibration {
    CalibrationKey key;
    std::string mlff_version, made, model_name, material;
    bool is_quick = false;         // few samples of small systems
    double process_bytes = 0;      // host memory with the model but without a session
    FlooredCost memory;            // device memory of a session and its evaluation, bytes
    FlooredCost evaluation, step;  // seconds: energy, forces and virial on the host; a step of dynamics
    std::vector<Sample> memory_samples, evaluation_samples, step_samples;
    double memory_error = 0, evaluation_error = 0, step_error = 0;  // largest relative errors over the samples
};

// Errors below this many bytes count less: pages and arenas that are allocated or released by chance are megabytes, and
// memory matters only when it is large.
inline constexpr double kMemoryResolution = 1 << 22;
// Fits the costs to the samples, and computes the errors.
void fit(Calibration& calibration);

std::string calibration_text(const Calibration& calibration);
// Parses untrusted text. Throws Error{format}; the message begins with `where`.
Calibration parse_calibration(std::string_view text, const std::string& where);

class CalibrationStore {
public:
    CalibrationStore();  // the user's folder: $MLFF_CALIBRATIONS, $XDG_DATA_HOME/mlff/calibrations or
                         // ~/.local/share/mlff/calibrations
    explicit CalibrationStore(std::string folder);  // "" = none

    std::string path_of(const CalibrationKey& key) const;
    // Throws Error{file}.
    std::string put(const Calibration& calibration) const;
    // The calibration for this key and this version of mlff. Nothing if there is none; *why then gives the reason. A
    // damaged file, or one from another version, counts as none.
    std::optional<Calibration> find(const CalibrationKey& key, std::string* why) const;
    // All readable calibrations of this version of mlff.
    std::vector<Calibration> list() const;

private:
    std::string folder_;
};

// Reads a calibration from a file given by the user. Throws Error{file} or {format} if it is missing or damaged, or for
// another machine, model, device, precision or version.
Calibration read_calibration(const std::string& path, const CalibrationKey& key);

}  // namespace mlff::plan
