// SPDX-License-Identifier: MIT
// What mlff neb prints and writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/extxyz.h"
#include "frame_result.h"
#include "properties/reaction_path.h"

namespace mlff::app {

struct NebResult {
    std::string model, device, precision, method, head;
    Particles atoms;
    ReactionPath path;
    PathSummary summary;
    std::optional<SaddleCheck> saddle;  // of the highest image, if there is one and the run was not stopped
    // Of each image, if the model has a trust meter or is a committee; else empty.
    std::vector<double> expected_errors;  // eV/A, the largest of a force
    std::vector<double> spreads;          // eV/A, the largest standard deviation of a force among members
    std::vector<size_t> unknown_images;   // with atoms that are unlike those of the training
    bool climbed = false, is_refined = false, is_converged = false, is_stopped = false;
    double band_force = 0;  // eV/A, the largest of the band
    int64_t band_moves = 0, refinement_moves = 0;
    double refined_distance = 0;  // A, from the highest image to the refined saddle

    // What the model says about itself, for the next image.
    void add_doubts(const FrameResult& image);
    double largest_force(size_t image) const;  // eV/A, on atoms that move
    // Whether barriers are those of an image at a saddle; else of the curve between images.
    bool is_exact() const { return climbed || is_refined; }
};

// Sentences about the highest image, and about what to do next; one each.
std::string saddle_sentence(const NebResult& result);
std::vector<std::string> path_notes(const NebResult& result);

void print_path(const NebResult& result);
nlohmann::json path_json(const NebResult& result);
// report.html, report.md and report.json.
void write_path_report(const std::string& folder, const NebResult& result);
// All images as frames like `start`.
std::string path_frames(const Frame& start, const NebResult& result);

}  // namespace mlff::app
