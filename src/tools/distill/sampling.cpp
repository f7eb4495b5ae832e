// SPDX-License-Identifier: MIT
#include "tools/distill/sampling.h"

#include "core/error.h"
#include "dynamics/counter_random.h"
#include "dynamics/molecular_dynamics.h"
#include "tools/distill/labelling.h"

namespace mlff {
namespace {

constexpr double kFriction = 0.01;  // 1/fs

// "molecule" marks frames that belong together: the trainer keeps them in the same split.
std::string molecule_of(const Frame& structure, int64_t index) {
    for (const char* key : {"molecule", "name"})
        if (const InfoValue* value = structure.find_info(key))
            if (const auto* texts = std::get_if<std::vector<std::string>>(&value->values); texts && texts->size() == 1)
                return texts->front();
    return "structure-" + std::to_string(index);
}

class Sampler {
public:
    Sampler(Session& teacher, const Frame& structure, int64_t index, const SamplingOptions& options)
        : teacher_(teacher), structure_(structure), molecule_(molecule_of(structure, index)), options_(options) {}

    // Adds a frame with the label of these positions, or counts the reason to skip it.
    void add(const std::vector<double>& positions, const char* kind, double temperature) {
        Frame frame;
        frame.atomic_numbers = structure_.atomic_numbers;
        frame.positions = positions;
        frame.cell = structure_.cell;
        frame.periodic = structure_.periodic;
        const std::string fault = label_frame(teacher_, frame, options_.largest_force);
        if (!fault.empty()) {
            ++sampled.skipped[fault];
            return;
        }
        frame.set_info("kind", std::string(kind));
        frame.set_info("temperature", temperature);
        frame.set_info("molecule", molecule_);
        sampled.frames.push_back(std::move(frame));
    }

    SampledFrames sampled;

private:
    Session& teacher_;
    const Frame& structure_;
    std::string molecule_;
    const SamplingOptions& options_;
};

std::vector<double> with_noise(std::vector<double> positions, double size, uint64_t seed, uint64_t step) {
    for (size_t atom = 0; atom < positions.size() / 3; ++atom) {
        const auto normal = random_normals(seed, step, atom);
        for (size_t k = 0; k < 3; ++k) positions[3 * atom + k] += size * normal[k];
    }
    return positions;
}

}  // namespace

SampledFrames sample_structure(Session& teacher, const Frame& structure, int64_t index,
                               const SamplingOptions& options) {
    Sampler sampler(teacher, structure, index, options);
    sampler.add(structure.positions, "given", 0);
    for (size_t run = 0; run < options.temperatures.size(); ++run) {
        const double temperature = options.temperatures[run];
        const auto bits = random_bits(options.seed, static_cast<uint64_t>(index), run);
        const uint64_t seed = (uint64_t{bits[0]} << 32) | bits[1], noise_seed = (uint64_t{bits[2]} << 32) | bits[3];
        try {
            Particles particles(structure.view());
            set_temperature(particles, temperature, seed);
            MolecularDynamics dynamics(teacher, particles, options.time_step,
                                       LangevinBath{temperature, kFriction, seed + 1});
            for (int frame = 0; frame < options.frames_per_run; ++frame) {
                for (int step = 0; step < options.steps_between; ++step) dynamics.step();
                const std::vector<double>& positions = dynamics.particles().positions;
                sampler.add(positions, "dynamics", temperature);
                if (options.noise > 0)
                    sampler.add(with_noise(positions, options.noise, noise_seed, static_cast<uint64_t>(frame)), "noise",
                                temperature);
            }
        } catch (const Error& error) {
            ++sampler.sampled.skipped[std::string("a run ended: ") + error.what()];
        }
    }
    return std::move(sampler.sampled);
}

}  // namespace mlff
