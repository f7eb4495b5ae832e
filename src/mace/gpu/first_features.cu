// SPDX-License-Identifier: MIT
#include "mace/gpu/first_features.h"
#include "mace/plan/names.h"

#include <numeric>

#include "equivariant/linear.h"
#include "mace/functions/embedding.h"

namespace mlff::mace::gpu {

template <class Real>
void FirstFeatures<Real>::update(const Weights& weights, int head, const SystemView& system,
                                 const plan::RowLayout& layout, const plan::RowLayout& sender_layout,
                                 cudaStream_t stream) {
    if (is_there_ &&
        (!weights.joint_embedding || (system.total_charge == charge_ && system.spin_multiplicity == spin_)))
        return;
    is_there_ = false;
    std::vector<int> elements(static_cast<size_t>(weights.element_count()));
    std::iota(elements.begin(), elements.end(), 0);
    std::vector<double> embedding;  // [element][channel_count]
    compute_embedding(weights, system, elements, embedding);
    const Linear& up = weights.layers.front().interaction.up;
    const auto channels = static_cast<size_t>(weights.channel_count), size = static_cast<size_t>(layout.size),
               sender_size = static_cast<size_t>(sender_layout.size);
    std::vector<Real> features(elements.size() * size, Real(0)), senders(elements.size() * sender_size);
    std::vector<double> plain(static_cast<size_t>(up.out.dimension()));
    for (size_t z = 0; z < elements.size(); ++z) {
        const double* own = embedding.data() + z * channels;
        for (size_t u = 0; u < channels; ++u) features[z * size + u] = static_cast<Real>(own[u]);
        compute_linear(up, static_cast<int>(z), own, plain.data());
        plan::to_rows(up.out, sender_layout, plain.data(), senders.data() + z * sender_size);
    }
    features_.upload(features.data(), static_cast<int64_t>(features.size()), "the model", stream);
    senders_.upload(senders.data(), static_cast<int64_t>(senders.size()), "the model", stream);
    upload_energies(weights, head, embedding, stream);
    charge_ = system.total_charge;
    spin_ = system.spin_multiplicity;
    is_there_ = true;
}

template <class Real>
void FirstFeatures<Real>::upload_energies(const Weights& weights, int head, const std::vector<double>& embedding,
                                          cudaStream_t stream) {
    const auto element_count = static_cast<size_t>(weights.element_count()),
               channels = static_cast<size_t>(weights.channel_count);
    std::vector<ElementEnergy> energies;
    for (size_t z = 0; z < element_count; ++z)
        energies.push_back({weights.atomic_energies[static_cast<size_t>(head) * element_count + z],
                            embedding_energy(weights, head, static_cast<int>(z), embedding.data() + z * channels)});
    energies_.upload(energies.data(), static_cast<int64_t>(energies.size()), "the model", stream);
}

template class FirstFeatures<float>;
template class FirstFeatures<double>;

}  // namespace mlff::mace::gpu
