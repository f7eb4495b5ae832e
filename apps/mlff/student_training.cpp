// SPDX-License-Identifier: MIT
#include "student_training.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "command.h"
#include "core/error.h"
#include "formats/extxyz.h"
#include "run_program.h"

namespace mlff::app {
namespace {

namespace fs = std::filesystem;
constexpr const char* kModel = "model.safetensors";  // in the folder of a run

// The command that puts the trainer beside this program, which may have been installed with a prefix.
std::string install_command(const fs::path& program) {
    const fs::path prefix = program.parent_path().parent_path();
    std::error_code ignored;
    const bool is_installed = fs::exists(prefix / "share/mlff/install_manifest.txt", ignored);
    return is_installed ? concat("scripts/install --trainer --prefix '", prefix.string(), "'")
                        : "scripts/install --trainer";
}

// The student is whole at all times.
void replace_file(const fs::path& source, const fs::path& target) {
    const fs::path temporary = target.string() + ".new";
    fs::copy_file(source, temporary, fs::copy_options::overwrite_existing);
    fs::rename(temporary, target);
}

}  // namespace

std::string find_trainer(const std::string& named) {
    if (!named.empty()) {
        if (access(named.c_str(), X_OK) != 0) fail(Status::argument, "--trainer ", named, " cannot be run");
        return fs::absolute(named).string();
    }
    std::error_code ignored;
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored), beside = program.parent_path() / "mlff-train";
    if (access(beside.c_str(), X_OK) == 0) return beside.string();
    const char* path = std::getenv("PATH");
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (access((fs::path(folder) / "mlff-train").c_str(), X_OK) == 0)
            return fs::absolute(fs::path(folder) / "mlff-train").string();
    fail(Status::unsupported,
         "mlff-train was found neither next to mlff nor in PATH; install it from the sources of mlff with: ",
         install_command(program));
}

StudentFolder StudentFolder::open(const fs::path& folder) {
    int members = 0;
    std::error_code ignored;
    while (fs::exists(folder / "run" / concat("member-", members + 1) / kModel, ignored)) ++members;
    if (members == 0 && fs::exists(folder / "run" / kModel, ignored)) members = 1;
    if (members == 0)
        fail(Status::argument, "--output ", folder.string(),
             " has no student to go on from; make one with 'mlff distill FILE --teacher MODEL --output ",
             folder.string(), "'");
    return {folder, members};
}

fs::path StudentFolder::student() const { return members_ == 1 ? member(1) : folder_ / "committee.txt"; }

fs::path StudentFolder::member(int number) const {
    return folder_ / (members_ == 1 ? "student.safetensors" : concat("student-", number, ".safetensors"));
}

fs::path StudentFolder::run(int round, int member) const {
    const fs::path all = folder_ / (round == 0 ? "run" : concat("continued-", round));
    return members_ == 1 ? all : all / concat("member-", member);
}

void StudentFolder::train(int round, const TrainingOrder& order) const {
    for (int number = 1; number <= members_; ++number)
        if (round == 0 || !fs::exists(run(round, number) / kModel)) train_member(round, number, order);
    std::string committee = "mlff committee\n";
    for (int number = 1; number <= members_; ++number) {
        replace_file(run(round, number) / kModel, member(number));
        committee += member(number).filename().string() + "\n";
    }
    if (members_ > 1) write_text(student(), committee);
}

void StudentFolder::train_member(int round, int number, const TrainingOrder& order) const {
    std::vector<std::string> words = {
        order.program,       "train",   order.frames.string(), "--output", run(round, number).string(), "--card",
        order.card.string(), "--resume"};
    const auto add = [&](const char* option, const std::string& value) { words.insert(words.end(), {option, value}); };
    if (round > 0) {
        add("--start", (run(round - 1, number) / kModel).string());
        add("--more", order.more.string());
    }
    std::istringstream more(order.options);
    for (std::string word; more >> word;) words.push_back(word);
    if (members_ > 1) add("--seed", std::to_string(number));
    const std::string failure = run_silently(words).why_failed();
    if (!failure.empty())
        fail(Status::internal, order.program, " failed: ", failure,
             "; the frames are kept, and the same command continues from them");
    if (!fs::exists(run(round, number) / kModel))
        fail(Status::internal, order.program, " wrote no ", (run(round, number) / kModel).string());
}

nlohmann::json StudentFolder::cards() const {
    nlohmann::json cards = nlohmann::json::array();
    for (int number = 1; number <= members_; ++number)
        cards.push_back(load_model(member(number).string())->description()["card"]);
    return cards;
}

nlohmann::json student_errors(const fs::path& student, const fs::path& frames_path) {
    SessionOptions options;
    options.device = "cpu";
    options.precision = Precision::fp64;
    Session session(load_model(student.string()), options);
    ExtxyzReader reader(frames_path.string());
    Frame frame;
    double force_sum = 0, energy_sum = 0;
    int64_t component_count = 0, frame_count = 0;
    while (reader.next(frame)) {
        const SystemView system = frame.view();
        double energy = 0;
        std::vector<double> forces(frame.positions.size());
        Results results;
        results.outputs.energy = &energy;
        results.outputs.forces = forces.data();
        session.evaluate({&system, 1}, {&results, 1});
        const auto energy_label = frame.info_number("energy");
        const AtomColumn* column = frame.find_column("forces");
        const auto* labels = column && column->width == 3 ? std::get_if<std::vector<double>>(&column->values) : nullptr;
        if (!energy_label || !labels) continue;  // the trainer has named it
        for (size_t i = 0; i < forces.size(); ++i) force_sum += std::abs(forces[i] - (*labels)[i]);
        energy_sum += std::abs(energy - *energy_label) / static_cast<double>(frame.atom_count());
        component_count += static_cast<int64_t>(forces.size());
        ++frame_count;
    }
    if (frame_count == 0) fail(Status::format, frames_path.string(), ": no frame with energy and forces");
    return {{"frames", frame_count},
            {"force_meV_per_A", 1e3 * force_sum / static_cast<double>(component_count)},
            {"energy_meV_per_atom", 1e3 * energy_sum / static_cast<double>(frame_count)}};
}

}  // namespace mlff::app
