// SPDX-License-Identifier: MIT
#include "md_start.h"

#include <cmath>
#include <iomanip>
#include <sstream>

#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/units.h"
#include "moving_atoms.h"

namespace mlff::app {

Error in_file(const std::string& path, const Error& error) {
    return error.status() == Status::argument ? error : Error(error.status(), concat(path, ": ", error.what()));
}

Frame read_start(const MdOptions& options) {
    ExtxyzReader reader(options.input);
    Frame frame, chosen;
    bool is_found = false;
    std::vector<Frame> last;  // the last -options.frame frames
    while (reader.next(frame)) {
        if (options.frame < 0) {
            last.push_back(frame);
            if (static_cast<int64_t>(last.size()) > -options.frame) last.erase(last.begin());
        } else if (reader.frames_read() - 1 == options.frame) {
            chosen = frame;
            is_found = true;
            break;
        }
    }
    if (reader.frames_read() == 0) fail(Status::format, options.input, ": no frame in the file");
    if (options.frame < 0 && static_cast<int64_t>(last.size()) == -options.frame)
        chosen = last.front(), is_found = true;
    if (!is_found)
        fail(Status::argument, "--frame ", options.frame, ": ", options.input, " has ", reader.frames_read(),
             " frames");
    return chosen;
}

Particles start_particles(const MdOptions& options, const DynamicsOptions& dynamics, const Frame& frame,
                          const std::string& name) {
    try {
        Particles particles = moving_atoms(frame, options.fixed);
        if (particles.atom_count() == 0) fail(Status::system, "no atoms");
        if (!options.restart.empty()) return particles;  // velocities are those of the restart file
        particles.rigid_degrees = count_rigid_degrees(dynamics, particles);
        if (has_velocities(frame)) {
            if (particles.rigid_degrees > 0 && !particles.has_fixed_atoms()) remove_momentum(particles);
        } else {
            if (!options.temperature)
                fail(Status::argument,
                     "--temperature is needed for the initial velocities: the file has no column velocities");
            set_temperature(particles, *options.temperature, options.seed);
        }
        return particles;
    } catch (const Error& error) {
        throw in_file(name, error);
    }
}

void check_restart(const Restart& restart, const MdOptions& options, const Particles& start, const std::string& name) {
    if (restart.state.particles.atomic_numbers != start.atomic_numbers)
        fail(Status::argument, "--restart ", options.restart, " has other atoms than ", name);
    if (restart.state.particles.environment.periodic != start.environment.periodic)
        fail(Status::argument, "--restart ", options.restart, " is periodic in other directions than ", name);
    const auto before = [&](const std::string& key) {
        const auto found = restart.run.find(key);
        return found == restart.run.end() ? std::string("none") : found->second;
    };
    for (const auto& [key, value] : options.choices())
        if (before(key) != value)
            fail(Status::argument, "--restart ", options.restart, " was written with --", key, " ", before(key),
                 ", not ", value, "; to change it, start a new run from the last frame of the trajectory");
    std::vector<uint8_t> fixed = start.is_fixed;
    fixed.resize(start.atom_count(), 0);
    if (fixed != restart.state.particles.is_fixed)
        fail(Status::argument, "--restart ", options.restart, " was written with other fixed atoms");
}

std::string md_log_numbers(const MolecularDynamics& dynamics) {
    std::ostringstream line;
    line << std::setprecision(12) << dynamics.step_count() << ","
         << static_cast<double>(dynamics.step_count()) * dynamics.time_step() << "," << dynamics.temperature() << ","
         << dynamics.potential_energy() << "," << dynamics.kinetic_energy() << "," << dynamics.total_energy() << ",";
    if (!dynamics.options().barostat) line << dynamics.conserved_energy();
    line << ",";
    if (dynamics.options().wants_virial)
        line << dynamics.pressure() / kBar << "," << std::abs(determinant(dynamics.cell()));
    else
        line << ",";
    return line.str();
}

}  // namespace mlff::app
