// SPDX-License-Identifier: MIT
// A measured cost model of one model on one machine, kept in a file of the user's.
//
//     FOLDER/cpu-mixed-2-xxxx.json   {"format": "mlff calibration", "version": 1, ...}; docs/planning.md has the rest
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/plan/cost_model.h"

namespace mlff::plan {

// What a calibration is of. One made for something else says nothing.
struct CalibrationKey {
    std::string processor, architecture, instructions, gpu;  // gpu "": the device is none
    int cores = 0;
    std::string model;   // SHA-256 of the file, or the name of a model that has none
    std::string device;  // "cpu", "reference", or "cuda" for any GPU of that name
    std::string precision;
    int threads = 0;
    bool exact_radial = false;
    bool operator==(const CalibrationKey&) const = default;
};

// What `key` has and `other` has not, in words: "device cpu, not cuda"; "" if they are the same.
std::string difference_text(const CalibrationKey& key, const CalibrationKey& other);

struct Calibration {
    CalibrationKey key;
    std::string mlff_version, made, model_name, material;
    bool is_quick = false;         // few samples of small systems
    double process_bytes = 0;      // of the host, with the model and no session
    FlooredCost memory;            // bytes of the device that a session and its evaluation take
    FlooredCost evaluation, step;  // seconds: energy, forces and virial on the host; a step of dynamics
    std::vector<Sample> memory_samples, evaluation_samples, step_samples;
    double memory_error = 0, evaluation_error = 0, step_error = 0;  // the largest relative ones of the samples
};

// Bytes below which errors count less: pages and arenas that are taken or given back by chance are megabytes, and
// memory matters where it is large.
inline constexpr double kMemoryResolution = 1 << 22;
// The fits and their errors, from the samples.
void fit(Calibration& calibration);

std::string calibration_text(const Calibration& calibration);
// Text that nobody vouches for. Throws Error{format}; the message begins with `where`.
Calibration parse_calibration(std::string_view text, const std::string& where);

class CalibrationStore {
public:
    CalibrationStore();  // the user's: $MLFF_CALIBRATIONS, $XDG_DATA_HOME/mlff/calibrations or
                         // ~/.local/share/mlff/calibrations
    explicit CalibrationStore(std::string folder);  // "" = there is none

    std::string path_of(const CalibrationKey& key) const;
    // Throws Error{file}.
    std::string put(const Calibration& calibration) const;
    // That of this key and this version of mlff. Nothing if there is none, and then *why says so in a sentence; a file
    // that is damaged or of another version is none.
    std::optional<Calibration> find(const CalibrationKey& key, std::string* why) const;
    // All that can be read and are of this version of mlff.
    std::vector<Calibration> list() const;

private:
    std::string folder_;
};

// A calibration from a file that the user names. Throws Error{file} or {format}: not there, damaged, of another
// machine, model, device, precision or version.
Calibration read_calibration(const std::string& path, const CalibrationKey& key);

}  // namespace mlff::plan
