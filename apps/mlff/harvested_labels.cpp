// SPDX-License-Identifier: MIT
#include "harvested_labels.h"

#include <fstream>
#include <iomanip>
#include <set>
#include <sstream>

#include "command.h"
#include "core/error.h"
#include "formats/extxyz.h"
#include "harvest_folder.h"
#include "tools/distill/labelling.h"

namespace mlff::app {
namespace {

// The same for the same atoms in the same places, whatever else a file says of them. FNV-1a.
std::string fingerprint_of(const Frame& frame) {
    uint64_t hash = 14695981039346656037ull;
    const auto add = [&](const void* data, size_t size) {
        for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ull;
    };
    const SystemView system = frame.view();
    add(frame.atomic_numbers.data(), frame.atomic_numbers.size() * sizeof(int32_t));
    add(frame.positions.data(), frame.positions.size() * sizeof(double));
    add(system.cell.data(), sizeof system.cell);
    for (const bool is_periodic : system.periodic) add(&is_periodic, sizeof is_periodic);
    add(&system.total_charge, sizeof system.total_charge);
    add(&system.spin_multiplicity, sizeof system.spin_multiplicity);
    std::ostringstream text;
    text << std::hex << std::setw(16) << std::setfill('0') << hash;
    return text.str();
}

// Fixed once and for all, so that a later round trains on no frame that an earlier one was tested with.
const char* split_of(int64_t index) { return index % 10 == 4 ? "valid" : index % 10 == 9 ? "test" : "train"; }

// What training needs of a harvested frame, without labels.
Frame without_sigmas(const Frame& harvested) {
    Frame frame;
    frame.atomic_numbers = harvested.atomic_numbers;
    frame.positions = harvested.positions;
    frame.cell = harvested.cell;
    frame.periodic = harvested.periodic;
    for (const auto& [key, value] : harvested.info)
        for (const char* kept : {"step", "temperature", "sigma_max", "model", "total_charge", "total_spin"})
            if (key == kept) frame.info.emplace_back(key, value);
    return frame;
}

}  // namespace

HarvestedLabels::HarvestedLabels(const std::filesystem::path& folder, const std::string& teacher)
    : frames_path_(folder / "harvested.xyz"), record_path_(folder / "harvested.json") {
    record_ = {{"teacher", teacher},
               {"seen", nlohmann::json::array()},
               {"frames", 0},
               {"bytes", 0},
               {"skipped", nlohmann::json::object()},
               {"rounds", 0},
               {"is_open", false},
               {"trained_frames", 0},
               {"errors_before", nullptr}};
    if (!std::filesystem::exists(record_path_)) return;
    std::ifstream file(record_path_);
    const nlohmann::json before = nlohmann::json::parse(file, nullptr, false);
    for (const auto& [key, value] : record_.items())
        if (!before.is_object() || !before.contains(key))
            fail(Status::format, record_path_.string(), ": expected a JSON object with '", key, "'");
    if (before["teacher"] != teacher)
        fail(Status::argument, "the harvested frames in ", folder.string(), " have labels of ",
             before["teacher"].get<std::string>(), ", not of ", teacher);
    record_ = before;
}

bool HarvestedLabels::has_rounds(const std::filesystem::path& folder) {
    return std::filesystem::exists(folder / "continued-1");
}

// Frames are appended and then counted, so that those of a command that was killed in between are cut off.
void HarvestedLabels::label(Session& teacher, const std::vector<std::string>& harvests, double largest_force) {
    std::set<std::string> seen;
    for (const nlohmann::json& one : record_["seen"]) seen.insert(one.get<std::string>());
    const auto known_bytes = record_["bytes"].get<uintmax_t>();
    std::error_code error;
    const uintmax_t bytes = std::filesystem::file_size(frames_path_, error);
    if (error ? known_bytes > 0 : bytes < known_bytes)
        fail(Status::file, frames_path_.string(), ": frames are missing that ", record_path_.string(), " knows of");
    if (!error) std::filesystem::resize_file(frames_path_, known_bytes);
    std::ofstream labelled(frames_path_, std::ios::binary | std::ios::app);
    for (const std::string& harvest : harvests) {
        std::istringstream whole(HarvestFolder::whole_frames(harvest));
        ExtxyzReader reader(whole, HarvestFolder::frames_path(harvest));
        for (Frame harvested; reader.next(harvested);) {
            const std::string fingerprint = fingerprint_of(harvested);
            if (!seen.insert(fingerprint).second) continue;
            Frame frame = without_sigmas(harvested);
            const std::string fault = label_frame(teacher, frame, largest_force);
            if (fault.empty()) {
                frame.set_info("kind", std::string("harvested"));
                frame.set_info("molecule", std::string("harvested"));
                frame.set_info("split", std::string(split_of(frame_count())));
                std::ostringstream text;
                write_extxyz(text, frame);
                labelled << text.str() << std::flush;
                if (!labelled) fail(Status::file, frames_path_.string(), ": cannot write the file");
                record_["frames"] = frame_count() + 1;
                record_["bytes"] = record_["bytes"].get<uintmax_t>() + text.str().size();
            } else {
                record_["skipped"][fault] = record_["skipped"].value(fault, int64_t{0}) + 1;
            }
            record_["seen"].push_back(fingerprint);
            save();
        }
    }
}

void HarvestedLabels::open_round(const nlohmann::json& errors_before) {
    record_["rounds"] = round() + 1;
    record_["is_open"] = true;
    record_["errors_before"] = errors_before;
    save();
}

void HarvestedLabels::close_round() {
    record_["is_open"] = false;
    record_["trained_frames"] = frame_count();
    save();
}

void HarvestedLabels::save() const { write_text(record_path_.string(), record_.dump(1) + "\n"); }

}  // namespace mlff::app
