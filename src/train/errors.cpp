// SPDX-License-Identifier: MIT
#include "train/errors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/elements.h"

namespace mlff::train {
namespace {

struct SizeClass {
    const char* name;
    int64_t largest;
};
constexpr std::array<SizeClass, 5> kSizeClasses = {{{"1-10 atoms", 10},
                                                    {"11-20 atoms", 20},
                                                    {"21-40 atoms", 40},
                                                    {"41-80 atoms", 80},
                                                    {"more than 80 atoms", INT64_MAX}}};

size_t size_class(int64_t atoms) {
    size_t index = 0;
    while (atoms > kSizeClasses[index].largest) ++index;
    return index;
}

nlohmann::json milli(const ErrorSums& sums) {
    return {{"mae", 1000 * sums.mean_absolute()}, {"rmse", 1000 * sums.root_mean_square()}};
}

}  // namespace

void ErrorSums::add(double difference) {
    count += 1;
    absolute += std::abs(difference);
    squared += difference * difference;
}
double ErrorSums::root_mean_square() const { return count > 0 ? std::sqrt(squared / count) : 0; }

nlohmann::json EnergyAndForceErrors::json() const {
    return {{"frames", energy.count}, {"energy_meV_per_atom", milli(energy)}, {"force_meV_per_A", milli(force)}};
}

nlohmann::json ModelErrors::json(const ElementTable& elements, const std::vector<std::string>& kinds) const {
    nlohmann::json result = all.json();
    for (size_t element = 0; element < force_of_element.size(); ++element)
        if (force_of_element[element].count > 0)
            result["force_meV_per_A_by_element"][std::string(element_symbol(elements.atomic_numbers[element]))] =
                milli(force_of_element[element]);
    for (size_t index = 0; index < of_size.size(); ++index)
        if (of_size[index].energy.count > 0) result["by_size"][kSizeClasses[index].name] = of_size[index].json();
    for (size_t index = 0; index < of_kind.size(); ++index)
        if (of_kind[index].energy.count > 0) result["by_kind"][kinds[index]] = of_kind[index].json();
    return result;
}

ModelErrors model_errors(const Parameters& parameters, const TrainingSet& set, const BatchMaker& maker,
                         const LossRule& rule, std::span<const int64_t> frames, const BatchSize& limit,
                         size_t kind_count, const ElementTable& elements) {
    ModelErrors errors;
    errors.force_of_element.resize(static_cast<size_t>(elements.size()));
    errors.of_kind.resize(kind_count);
    errors.of_size.resize(kSizeClasses.size());
    double force_terms = 0;
    for (const std::vector<int64_t>& batch_frames : batches_in_order(set, frames, limit)) {
        const BatchSize size = size_of(set, batch_frames);
        at::Tensor indices = at::empty({BatchLayout{size}.total()}, at::kLong);
        write_indices(set, batch_frames, size, indices.data_ptr<int64_t>());
        const Batch batch = maker.make(indices.to(set.edge_vector.device()), size);
        const Prediction prediction = predict(parameters, batch, false);
        const at::Tensor energy_error =
            ((prediction.energy - batch.energy) * batch.per_atom).detach().to(at::kCPU, at::kDouble).contiguous();
        const at::Tensor force_error = (prediction.force - batch.force).detach().to(at::kCPU, at::kDouble).contiguous();
        const double* energy = energy_error.data_ptr<double>();
        const double* force = force_error.data_ptr<double>();
        for (size_t slot = 0; slot < batch_frames.size(); ++slot) {
            const auto frame = static_cast<size_t>(batch_frames[slot]);
            EnergyAndForceErrors &of_kind = errors.of_kind[static_cast<size_t>(set.kind[frame])],
                                 &of_size = errors.of_size[size_class(set.atoms_of(batch_frames[slot]))];
            for (EnergyAndForceErrors* part : {&errors.all, &of_kind, &of_size}) part->energy.add(energy[slot]);
            const double weight = force_weight_of_atom(rule.weighting, set.atoms_of(batch_frames[slot]));
            errors.energy_loss += measured(rule.energy, energy[slot], rule.energy_delta);
            for (int64_t atom = set.first_atom[frame]; atom < set.first_atom[frame + 1]; ++atom, force += 3) {
                for (int k = 0; k < 3; ++k) {
                    for (EnergyAndForceErrors* part : {&errors.all, &of_kind, &of_size}) part->force.add(force[k]);
                    errors.force_of_element[set.element[static_cast<size_t>(atom)]].add(force[k]);
                    if (rule.force != Measure::length)
                        errors.force_loss += weight * measured(rule.force, force[k], rule.force_delta);
                }
                if (rule.force == Measure::length)
                    errors.force_loss += weight * std::hypot(force[0], force[1], force[2]);
                force_terms += weight * (rule.force == Measure::length ? 1 : 3);
            }
        }
        errors.frames += static_cast<int64_t>(batch_frames.size());
    }
    errors.energy_loss /= std::max<double>(1, static_cast<double>(errors.frames));
    errors.force_loss /= std::max(1.0, force_terms);
    return errors;
}

std::vector<int64_t> all_frames(const TrainingSet& set) {
    std::vector<int64_t> frames(static_cast<size_t>(set.frame_count));
    std::iota(frames.begin(), frames.end(), 0);
    return frames;
}

std::vector<int64_t> some_frames(const TrainingSet& set, int64_t count) {
    if (count <= 0 || count >= set.frame_count) return all_frames(set);
    std::vector<int64_t> frames;
    for (int64_t i = 0; i < count; ++i) frames.push_back(i * set.frame_count / count);
    return frames;
}

}  // namespace mlff::train
