// SPDX-License-Identifier: MIT
#include "dynamics/thermostat.h"

#include <cmath>

#include "core/error.h"
#include "dynamics/langevin.h"
#include "dynamics/nose_hoover.h"
#include "dynamics/velocity_rescaling.h"

namespace mlff {

std::unique_ptr<Thermostat> make_thermostat(const ThermostatOptions& options, const Particles& particles,
                                            double time_step) {
    using Kind = ThermostatOptions::Kind;
    if (options.kind == Kind::none) return nullptr;
    if (!(options.temperature >= 0 && std::isfinite(options.temperature)))
        fail(Status::argument, "the thermostat's temperature is ", options.temperature,
             " K, expected a finite number, 0 or more");
    if (!(options.relaxation_time > 0))
        fail(Status::argument, "the thermostat's relaxation time is ", options.relaxation_time,
             " fs, expected more than 0");
    if (options.kind == Kind::langevin) return std::make_unique<Langevin>(options, time_step);
    if (options.kind == Kind::nose_hoover && !(options.temperature > 0))
        fail(Status::argument, "Nose-Hoover chains need a temperature above 0 K");
    if (!std::isfinite(options.relaxation_time))
        fail(Status::argument, "the relaxation time of the thermostat is not finite");
    if (options.temperature > 0 && particles.degrees_of_freedom() > 0 && !(particles.kinetic_energy() > 0))
        fail(Status::argument,
             "the atoms are at rest, but this thermostat only scales velocities: set initial velocities first");
    if (options.kind == Kind::nose_hoover)
        return std::make_unique<NoseHoover>(options, particles.degrees_of_freedom(), time_step);
    return std::make_unique<VelocityRescaling>(options, particles.degrees_of_freedom(), time_step);
}

}  // namespace mlff
