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
        .add_option("FILE", input,
                    "structure in extended XYZ; '-' = standard input; uses the columns velocities, masses and "
                    "move_mask")
        ->required();
    command.add_option("--frame", frame, "frame of FILE to start from, counted from 0; -1 = the last")
        ->capture_default_str()
        ->option_text("INDEX");
    command.add_option("--fix", fixed, "atoms that do not move, counted from 0, such as 0,3,10-15")
        ->option_text("INDICES");
    model.add_to(command);

    const std::string dynamics = "Dynamics";
    command.add_option("--ensemble", ensemble, "nve, nvt or npt")
        ->required()
        ->check(CLI::IsMember({"nve", "nvt", "npt"}))
        ->option_text("ENSEMBLE")
        ->group(dynamics);
    command.add_option("--steps", steps, "number of steps of the whole run, including those before --restart")
        ->required()
        ->check(CLI::NonNegativeNumber)
        ->option_text("N")
        ->group(dynamics);
    command.add_option("--dt", time_step, "time step in fs")
        ->required()
        ->check(CLI::PositiveNumber)
        ->option_text("FS")
        ->group(dynamics);
    command
        .add_option("--temperature", temperature, "temperature in K; also of the initial velocities if FILE has none")
        ->option_text("K")
        ->group(dynamics);
    command
        .add_option("--thermostat", thermostat, "langevin (default of nvt), nose-hoover or rescaling (default of npt)")
        ->check(CLI::IsMember({"langevin", "nose-hoover", "rescaling"}))
        ->option_text("NAME")
        ->group(dynamics);
    command
        .add_option("--friction", friction,
                    "friction of the Langevin thermostat in 1/fs, instead of --relaxation-time (default: 0.01)")
        ->option_text("RATE")
        ->group(dynamics);
    command.add_option("--relaxation-time", relaxation_time, "relaxation time of the thermostat in fs (default: 100)")
        ->option_text("FS")
        ->group(dynamics);
    command.add_option("--pressure", pressure, "pressure in bar, for npt")->option_text("BAR")->group(dynamics);
    command.add_option("--barostat", barostat, "cell-rescaling, the only barostat")
        ->check(CLI::IsMember({"cell-rescaling"}))
        ->option_text("NAME")
        ->group(dynamics);
    command.add_option("--barostat-time", barostat_time, "relaxation time of the barostat in fs (default: 1000)")
        ->option_text("FS")
        ->group(dynamics);
    command.add_option("--barostat-every", barostat_every, "steps between changes of the cell (default: 10)")
        ->option_text("N")
        ->group(dynamics);
    command
        .add_option("--compressibility", compressibility,
                    "isothermal compressibility in 1/bar (default: 4.57e-5, of water)")
        ->option_text("VALUE")
        ->group(dynamics);
    command.add_flag("--full-cell", full_cell, "for npt: change the shape of the cell too, not only its volume")
        ->group(dynamics);
    command.add_option("--seed", seed, "seed of all random numbers")
        ->capture_default_str()
        ->option_text("N")
        ->group(dynamics);
    command
        .add_option("--remove-momentum-every", remove_momentum_every,
                    "steps between removals of the total momentum, and of the rotation if nothing is periodic; "
                    "0 = never")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber)
        ->option_text("N")
        ->group(dynamics);
    command.add_option("--stop-temperature", limits.temperature, "stop with an error above this temperature in K")
        ->capture_default_str()
        ->option_text("K")
        ->group(dynamics);
    command
        .add_option("--stop-distance", limits.distance,
                    "stop with an error if an atom moves this far in A beyond the initial structure, in a direction "
                    "that is not periodic")
        ->capture_default_str()
        ->option_text("A")
        ->group(dynamics);

    const std::string many = "Many structures";
    command
        .add_flag(
            "--all", all,
            "run all frames of FILE together, each with its own cell, seed (seed= in its comment line, else --seed "
            "+ its index) and temperature (temperature= there, else --temperature)")
        ->group(many);
    command
        .add_option("--replicas", replicas,
                    "replica exchange of N copies of the structure, each at its own temperature")
        ->check(CLI::Range(2, 100'000))
        ->option_text("N")
        ->group(many);
    command
        .add_option(
            "--temperatures", temperatures,
            "temperatures of the replicas in K: the lowest and the highest, with equal ratios in between, or all")
        ->delimiter(',')
        ->option_text("K,K,...")
        ->group(many);
    command.add_option("--exchange-every", exchange_every, "steps between swaps of replicas (default: 100)")
        ->check(CLI::PositiveNumber)
        ->option_text("N")
        ->group(many);

    const std::string quantum = "Path integrals";
    command
        .add_option("--beads", beads,
                    "path-integral dynamics of a ring polymer of N copies of the structure, which is a quantum system: "
                    "PILE-L thermostat for nvt, ring-polymer molecular dynamics for nve")
        ->check(CLI::Range(1, 1024))
        ->option_text("N")
        ->group(quantum);
    command
        .add_option("--beads-from", beads_from,
                    "begin with the beads of this restart file of another run with as many beads")
        ->option_text("RESTART")
        ->group(quantum);
    command.add_flag("--write-beads", write_beads, "write a trajectory of every bead too, not only of the centroid")
        ->group(quantum);

    const std::string trust = "Trust";
    CLI::Option* const watch_flag =
        command
            .add_flag_callback(
                "--watch", [this] { watch = true; },
                "look in every step how far the forces may be trusted; the default for a committee and for a model "
                "with a "
                "trust meter, except on a GPU. There --watch reads a meter every 10 steps, and has the atoms of a "
                "committee moved by the CPU")
            ->group(trust);
    command
        .add_flag_callback(
            "--no-watch", [this] { watch = false; }, "do not, and leave the columns out of the log")
        ->excludes(watch_flag)
        ->group(trust);
    command
        .add_option("--stop-sigma", stop_sigma,
                    "end the run with exit code 1 when the expected error of a force is above this, in eV/A")
        ->check(CLI::PositiveNumber)
        ->option_text("FORCE")
        ->group(trust);
    command
        .add_option("--harvest", harvest,
                    "add frames with atoms outside of what the model was trained on to DIR/frames.xyz, for 'mlff "
                    "distill --continue DIR'")
        ->option_text("DIR")
        ->group(trust);
    command
        .add_option("--harvest-sigma", harvest_sigma,
                    "harvest a frame when the expected error of a force is above this, in eV/A; atoms of a committee "
                    "are then outside")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("FORCE")
        ->group(trust);
    command.add_option("--harvest-every", harvest_every, "steps, at least, between harvested frames (default: 20)")
        ->check(CLI::PositiveNumber)
        ->option_text("N")
        ->group(trust);
    command.add_option("--harvest-frames", harvest_frames, "frames that this run adds to DIR at most")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("N")
        ->group(trust);

    const std::string files = "Files";
    command
        .add_option("--output", output,
                    "write the trajectory to OUT: .xyz (extended XYZ) or .h5 (H5MD); of many structures and of beads, "
                    "trajectories and logs to the folder OUT")
        ->option_text("OUT")
        ->group(files);
    command.add_option("--output-every", output_every, "steps between frames of the trajectory")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("N")
        ->group(files);
    command.add_option("--log", log, "write time, temperature, energies, pressure and volume as CSV to OUT")
        ->option_text("OUT")
        ->group(files);
    command.add_option("--log-every", log_every, "steps between lines of the log")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("N")
        ->group(files);
    command
        .add_option("--checkpoint", checkpoint,
                    "restart file to write (default: that of --restart, else the name of the trajectory or the log "
                    "with .restart)")
        ->option_text("OUT")
        ->group(files);
    command
        .add_option("--checkpoint-every", checkpoint_every,
                    "steps between restart files; one is always written at the end and on Ctrl-C; 0 = only then")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber)
        ->option_text("N")
        ->group(files);
    command.add_option("--restart", restart, "continue the run of this restart file")
        ->option_text("RESTART")
        ->group(files);
    command.add_flag("--overwrite", overwrite, "replace an existing trajectory, log and restart file")->group(files);
}

DynamicsOptions MdOptions::dynamics() const {
    const bool has_bath = ensemble != "nve", has_pressure = ensemble == "npt";
    const std::string bath = thermostat.value_or(has_pressure ? "rescaling" : "langevin");
    refuse_unless(has_bath, "--thermostat", thermostat.has_value(), "needs --ensemble nvt or npt");
    refuse_unless(has_bath, "--relaxation-time", relaxation_time.has_value(), "needs --ensemble nvt or npt");
    refuse_unless(has_bath && bath == "langevin", "--friction", friction.has_value(), "needs --thermostat langevin");
    refuse_unless(!relaxation_time, "--friction", friction.has_value(),
                  "and --relaxation-time mean the same: give only one");
    for (const auto& [name, is_given] : {std::pair{"--pressure", pressure.has_value()},
                                         {"--barostat", barostat.has_value()},
                                         {"--barostat-time", barostat_time.has_value()},
                                         {"--barostat-every", barostat_every.has_value()},
                                         {"--compressibility", compressibility.has_value()},
                                         {"--full-cell", full_cell}})
        refuse_unless(has_pressure, name, is_given, "needs --ensemble npt");
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

WatchRules MdOptions::watch_rules() const {
    refuse_unless(watch.value_or(true), "--stop-sigma", stop_sigma.has_value(), "needs --watch");
    refuse_unless(watch.value_or(true), "--harvest", !harvest.empty(), "needs --watch");
    refuse_unless(!harvest.empty(), "--harvest-every", harvest_every.has_value(), "needs --harvest");
    WatchRules rules;
    rules.outside_sigma = harvest_sigma;
    rules.stop_sigma = stop_sigma;
    rules.candidate_every = harvest_every.value_or(rules.candidate_every);
    return rules;
}

std::map<std::string, std::string> MdOptions::choices() const {
    const DynamicsOptions options = dynamics();
    std::map<std::string, std::string> result = {{"ensemble", ensemble},
                                                 {"dt", exact_text(time_step)},
                                                 {"remove-momentum-every", std::to_string(remove_momentum_every)}};
    if (beads) {
        result["beads"] = std::to_string(*beads);
        result["temperature"] = exact_text(temperature.value_or(0));  // of the springs, for nve too
    }
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
    // Files of different names have different restart files: run.xyz has run.restart, run.h5 has run.h5.restart.
    namespace fs = std::filesystem;
    std::error_code ignored;
    const bool has_log = !log.empty() && (fs::is_regular_file(log, ignored) || !fs::exists(log, ignored));  // no device
    const fs::path named_after = !output.empty() ? output : has_log ? log : "md.xyz";
    return named_after.extension() == ".xyz" ? fs::path(named_after).replace_extension(".restart").string()
                                             : named_after.string() + ".restart";
}

std::string MdOptions::many_restart_path() const { return (std::filesystem::path(output) / "all.restart").string(); }

std::string MdOptions::last_frames_path() const {
    return std::filesystem::path(checkpoint_path()).replace_extension(".last.xyz").string();
}

}  // namespace mlff::app
