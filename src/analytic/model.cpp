// SPDX-License-Identifier: MIT
#include "analytic/model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/elements.h"
#include "core/error.h"

namespace mlff {
namespace {

constexpr double kDepth = 1.0;           // eV
constexpr double kSteepness = 1.8;       // 1/angstrom
constexpr double kSwitchBegin = 3.0;     // angstrom
constexpr double kCutoff = 5.0;          // angstrom
constexpr int64_t kAtomsPerChunk = 256;  // fixed, so that results do not depend on the number of threads

struct Pair {
    double energy;
    double slope;  // dV/dr
};

Pair morse(double distance, double equilibrium) {
    const double decay = std::exp(-kSteepness * (distance - equilibrium));
    const double well = kDepth * ((1 - decay) * (1 - decay) - 1);
    const double well_slope = 2 * kDepth * kSteepness * (1 - decay) * decay;
    const double t = std::clamp((distance - kSwitchBegin) / (kCutoff - kSwitchBegin), 0.0, 1.0);
    const double fade = 1 + t * t * t * (-10 + t * (15 - 6 * t));
    const double fade_slope = -30 * t * t * (1 - t) * (1 - t) / (kCutoff - kSwitchBegin);
    return {well * fade, well_slope * fade + well * fade_slope};
}

class AnalyticEvaluator : public Evaluator {
public:
    void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override {
        const int64_t chunk_count = (system.atom_count + kAtomsPerChunk - 1) / kAtomsPerChunk;
        energies_.assign(static_cast<size_t>(chunk_count), 0.0);
        virials_.assign(static_cast<size_t>(chunk_count), {});
        const auto evaluate_chunk = [&](int64_t chunk, int) {
            const int64_t end = std::min(system.atom_count, (chunk + 1) * kAtomsPerChunk);
            for (int64_t atom = chunk * kAtomsPerChunk; atom < end; ++atom)
                evaluate_atom(system, edges, outputs, atom, energies_[static_cast<size_t>(chunk)],
                              virials_[static_cast<size_t>(chunk)]);
        };
        team.run(chunk_count, std::ref(evaluate_chunk));  // by reference: std::function need not allocate
        if (outputs.energy) {
            *outputs.energy = 0;
            for (double energy : energies_) *outputs.energy += energy;
        }
        if (outputs.virial) {
            std::fill_n(outputs.virial, 9, 0.0);
            for (const auto& virial : virials_)
                for (size_t k = 0; k < 9; ++k) outputs.virial[k] += virial[k];
        }
    }

private:
    // Every pair is in the list from both ends, so an atom takes half of the pair's energy and virial, and its own
    // force.
    static void evaluate_atom(const SystemView& system, const Edges& edges, const Outputs& outputs, int64_t atom,
                              double& energy_sum, std::array<double, 9>& virial_sum) {
        double energy = 0, force[3] = {}, virial[9] = {};
        const double radius = covalent_radius(system.atomic_numbers[atom]);
        const bool wants_virial = outputs.virial || outputs.atom_virials;
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            const double distance = edges.distance[edge];
            const double* vector = edges.vector + 3 * edge;  // to the neighbour
            const Pair pair = morse(distance, radius + covalent_radius(system.atomic_numbers[edges.sender[edge]]));
            const double pull = distance > 0 ? pair.slope / distance : 0;
            energy += 0.5 * pair.energy;
            for (int a = 0; a < 3; ++a) force[a] += pull * vector[a];
            if (!wants_virial) continue;
            for (int a = 0; a < 3; ++a)
                for (int b = 0; b < 3; ++b) virial[3 * a + b] -= 0.5 * pull * vector[a] * vector[b];
        }
        energy_sum += energy;
        for (size_t k = 0; k < 9; ++k) virial_sum[k] += virial[k];
        if (outputs.atom_energies) outputs.atom_energies[atom] = energy;
        if (outputs.forces) std::copy_n(force, 3, outputs.forces + 3 * atom);
        if (outputs.atom_virials) std::copy_n(virial, 9, outputs.atom_virials + 9 * atom);
    }

    std::vector<double> energies_;
    std::vector<std::array<double, 9>> virials_;
};

class AnalyticModel : public Model {
public:
    AnalyticModel() {
        summary_.class_name = "AnalyticPairPotential";
        summary_.cutoff = kCutoff;
        for (int z = 1; z <= kMaxAtomicNumber && covalent_radius(z) > 0; ++z) summary_.elements.push_back(z);
        summary_.heads = {"Default"};
        summary_.parameter_count = 0;
    }
    const ModelSummary& summary() const override { return summary_; }

    JsonValue description() const override {
        return JsonValue::Object{
            {"class", summary_.class_name},
            {"note", "demonstration only: Morse pair terms from covalent radii, fitted to nothing"},
            {"cutoff", kCutoff},
            {"elements", summary_.elements},
            {"heads", summary_.heads},
            {"dtype", "float64"},
            {"parameters", 0},
            {"runnable", true},
            {"units", units_json()}};
    }

    Precision choose_precision(const Device&, Precision wanted) const override {
        if (wanted != Precision::automatic && wanted != Precision::fp64)
            fail(Status::unsupported, "the analytic model runs in fp64 only, not in ", precision_name(wanted));
        return Precision::fp64;
    }
    bool runs_on_gpu() const override { return false; }
    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions&) const override {
        return std::make_unique<AnalyticEvaluator>();
    }

private:
    ModelSummary summary_;
};

}  // namespace

std::shared_ptr<const Model> make_analytic_model() { return std::make_shared<AnalyticModel>(); }

}  // namespace mlff
