// SPDX-License-Identifier: MIT
// Harvested frames in the folder of a student: labelled by its teacher, each once, and how far they were trained on.
//   harvested.xyz    the labelled frames, with their split;  harvested.json: what was seen, skipped and trained
// A killed command is started again: half a frame is cut off, and a round of training that was begun comes first.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/session.h"

namespace mlff::app {

class HarvestedLabels {
public:
    // `folder` is that of the student. Throws Error{argument} if its frames have labels of another teacher.
    HarvestedLabels(const std::filesystem::path& folder, const std::string& teacher);

    // Labels the frames of these harvests that were not seen before, wherever they were then.
    void label(Session& teacher, const std::vector<std::string>& harvests, double largest_force);
    int64_t frame_count() const { return record_["frames"].get<int64_t>(); }
    const std::filesystem::path& frames_path() const { return frames_path_; }
    const nlohmann::json& skipped() const { return record_["skipped"]; }  // reason -> number of frames

    // Training on all frames, in rounds: 1, 2, ... While one is open, frames must not be added.
    bool has_open_round() const { return record_["is_open"].get<bool>(); }
    bool has_new_frames() const { return frame_count() > record_["trained_frames"].get<int64_t>(); }
    int round() const { return record_["rounds"].get<int>(); }  // the newest; 0: none yet
    // `errors_before`: of the student on all frames.
    void open_round(const nlohmann::json& errors_before);
    void close_round();
    const nlohmann::json& errors_before() const { return record_["errors_before"]; }

    // Whether there was a round in this folder.
    static bool has_rounds(const std::filesystem::path& folder);

private:
    void save() const;

    std::filesystem::path frames_path_, record_path_;
    nlohmann::json record_;
};

}  // namespace mlff::app
