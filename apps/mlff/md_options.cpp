// SPDX-License-Identifier: MIT
#include "md_options.h"

#include <filesystem>
#include <iomanip>
#include <sstream>

#include "core/error.h"

namespace mlff::app {
namespace {

using Kind = ThermostatOptions::Kind;

std::string exact_text(double number) {
    std::ostringstream text;
    text << std::setprecision(17) << number;
    return text.str();
}

void refuse_unless(bool is_allowed, const char* option, bool is_given, const char* reason) {
    if (is_given && !is_allowed) fail(Status::argument, option, " ", reason);
}

}  // namespace

void MdOptions::add_to(CLI::App& command) {
    command
        .add_option("FILE", input, "extended XYZ with the structure; columns velocities, masses and move_mask are used")
        ->required();
    command.add_option("--frame", frame, "which frame of FILE; -1 = the last")->capture_default_str();
    model.add_to(command);
    command.add_option("--ensemble", ensemble, "nve, nvt or npt")
        ->required()
        ->check(CLI::IsMember({"nve", "nvt", "npt"}));
    command.add_option("--steps", steps, "of the whole run, those before --restart included")
        ->required()
        ->check(CLI::NonNegativeNumber);
    command.add_option("--dt", time_step, "fs")->required()->check(CLI::PositiveNumber);
    command.add_option("--temperature", temperature, "K; also of the first velocities where FILE has none");
    command
        .add_option("--thermostat", thermostat, "langevin (default of nvt), nose-hoover or rescaling (default of npt)")
        ->check(CLI::IsMember({"langevin", "nose-hoover", "rescaling"}));
    command.add_option("--friction", friction, "1/fs, of the Langevin thermostat; default 0.01");
    command.add_option("--relaxation-time", relaxation_time, "fs, of the thermostat; default 100");
    command.add_option("--pressure", pressure, "bar");
    command.add_option("--barostat", barostat, "cell-rescaling, the only one")
        ->check(CLI::IsMember({"cell-rescaling"}));
    command.add_option("--barostat-time", barostat_time, "fs, relaxation time of the barostat; default 1000");
    command.add_option("--barostat-every", barostat_every, "steps; default 10");
    command.add_option("--compressibility", compressibility, "1/bar; default 4.57e-5, that of water");
    command.add_flag("--full-cell", full_cell, "npt: the shape of the cell changes too");
    command.add_option("--seed", seed, "of all random numbers")->capture_default_str();
    command
        .add_option("--remove-momentum-every", remove_momentum_every,
                    "steps; where nothing is periodic the rotation too; 0 = never")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    command.add_option("--fix", fixed, "atoms that do not move, from 0: 0,3,10-15");
    command.add_option("--output", output, "trajectory: .xyz (extended XYZ) or .h5 (H5MD)");
    command.add_option("--output-every", output_every, "steps")->capture_default_str()->check(CLI::PositiveNumber);
    command.add_option("--log", log, "CSV with time, temperature, energies, pressure");
    command.add_option("--log-every", log_every, "steps")->capture_default_str()->check(CLI::PositiveNumber);
    command.add_option("--checkpoint", checkpoint,
                       "restart file to write; default: beside the trajectory, ending in .restart");
    command.add_option("--checkpoint-every", checkpoint_every, "steps; at the end and on Ctrl-C always; 0 = only then")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    command.add_option("--restart", restart, "go on from this restart file");
    command.add_flag("--overwrite", overwrite, "replace a trajectory and a log that are there");
    command.add_option("--stop-temperature", limits.temperature, "K; a run that is hotter is broken")
        ->capture_default_str();
    command.add_option("--stop-distance", limits.distance, "A, in open directions: an atom that far outside is lost")
        ->capture_default_str();
}

DynamicsOptions MdOptions::dynamics() const {
    const bool has_bath = ensemble != "nve", has_pressure = ensemble == "npt";
    const std::string bath = thermostat.value_or(has_pressure ? "rescaling" : "langevin");
    refuse_unless(has_bath, "--thermostat", thermostat.has_value(), "belongs to nvt and npt, not to --ensemble nve");
    refuse_unless(has_bath, "--relaxation-time", relaxation_time.has_value(),
                  "belongs to nvt and npt, not to --ensemble nve");
    refuse_unless(has_bath && bath == "langevin", "--friction", friction.has_value(),
                  "belongs to --thermostat langevin");
    refuse_unless(!relaxation_time, "--friction", friction.has_value(),
                  "and --relaxation-time say the same thing: give one of them");
    for (const auto& [name, is_given] : {std::pair{"--pressure", pressure.has_value()},
                                         {"--barostat", barostat.has_value()},
                                         {"--barostat-time", barostat_time.has_value()},
                                         {"--barostat-every", barostat_every.has_value()},
                                         {"--compressibility", compressibility.has_value()},
                                         {"--full-cell", full_cell}})
        refuse_unless(has_pressure, name, is_given, "belongs to --ensemble npt");
    if (has_bath && !temperature) fail(Status::argument, "--ensemble ", ensemble, " needs --temperature");
    if (has_pressure && !pressure) fail(Status::argument, "--ensemble npt needs --pressure");
    if (friction && !(*friction > 0)) fail(Status::argument, "--friction ", *friction, " must be more than 0");

    DynamicsOptions options;
    options.time_step = time_step;
    options.remove_momentum_every = remove_momentum_every;
    if (has_bath) {
        options.thermostat.kind = bath == "langevin"      ? Kind::langevin
                                  : bath == "nose-hoover" ? Kind::nose_hoover
                                                          : Kind::rescaling;
        options.thermostat.temperature = *temperature;
        options.thermostat.relaxation_time = friction ? 1 / *friction : relaxation_time.value_or(100);
        options.thermostat.seed = seed;
    }
    if (has_pressure) {
        BarostatOptions cell;
        cell.pressure = *pressure;
        cell.full_cell = full_cell;
        cell.relaxation_time = barostat_time.value_or(cell.relaxation_time);
        cell.compressibility = compressibility.value_or(cell.compressibility);
        cell.every = barostat_every.value_or(cell.every);
        options.barostat = cell;
    }
    return options;
}

std::map<std::string, std::string> MdOptions::choices() const {
    const DynamicsOptions options = dynamics();
    std::map<std::string, std::string> result = {{"ensemble", ensemble},
                                                 {"dt", exact_text(time_step)},
                                                 {"remove-momentum-every", std::to_string(remove_momentum_every)}};
    if (ensemble == "nve") return result;
    constexpr const char* kNames[] = {"none", "langevin", "nose-hoover", "rescaling"};
    result["thermostat"] = kNames[static_cast<size_t>(options.thermostat.kind)];
    result["temperature"] = exact_text(options.thermostat.temperature);
    result["relaxation-time"] = exact_text(options.thermostat.relaxation_time);
    result["seed"] = std::to_string(seed);
    if (!options.barostat) return result;
    result["pressure"] = exact_text(options.barostat->pressure);
    result["barostat-time"] = exact_text(options.barostat->relaxation_time);
    result["barostat-every"] = std::to_string(options.barostat->every);
    result["compressibility"] = exact_text(options.barostat->compressibility);
    result["full-cell"] = full_cell ? "yes" : "no";
    return result;
}

std::string MdOptions::checkpoint_path() const {
    if (!checkpoint.empty()) return checkpoint;
    if (!restart.empty()) return restart;
    return output.empty() ? "md.restart" : std::filesystem::path(output).replace_extension(".restart").string();
}

std::string MdOptions::last_frames_path() const {
    return std::filesystem::path(checkpoint_path()).replace_extension(".last.xyz").string();
}

}  // namespace mlff::app
