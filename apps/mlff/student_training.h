// SPDX-License-Identifier: MIT
// The training of a student in the folder of a distillation, by mlff-train, and its errors as this library sees them.
//
// A student has one or several members, which differ in their seeds. Round 0 is the first training; every further round
// goes on from the models of the one before, with harvested frames.
//   run/, continued-1/, ...    what the trainer writes; with several members in member-1/, member-2/, ...
//   student.safetensors        the newest round; with several members student-1.safetensors, ... and committee.txt
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace mlff::app {

// The trainer named by the user, beside this program, or on the path. Throws Error.
std::string find_trainer(const std::string& named);

struct TrainingOrder {
    std::string program;           // mlff-train
    std::string options;           // for it, separated by spaces
    std::filesystem::path frames;  // labelled
    std::filesystem::path more;    // harvested frames, for rounds after the first
    std::filesystem::path card;    // JSON
};

class StudentFolder {
public:
    StudentFolder(std::filesystem::path folder, int members) : folder_(std::move(folder)), members_(members) {}
    // Of a folder with a student. Throws Error{argument} if there is none.
    static StudentFolder open(const std::filesystem::path& folder);

    // What `--model` takes.
    std::filesystem::path student() const;
    // Trains all members of a round, and makes them the student. Members of a round after the first that were trained
    // before are not trained again.
    void train(int round, const TrainingOrder& order) const;
    // The cards of the members.
    nlohmann::json cards() const;

private:
    std::filesystem::path member(int number) const;
    std::filesystem::path run(int round, int member) const;
    void train_member(int round, int member, const TrainingOrder& order) const;

    std::filesystem::path folder_;
    int members_;
};

// Mean absolute errors of a student on labelled frames, in double precision.
nlohmann::json student_errors(const std::filesystem::path& student, const std::filesystem::path& frames_path);

}  // namespace mlff::app
