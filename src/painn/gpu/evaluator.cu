// SPDX-License-Identifier: MIT
#include "painn/gpu/evaluator.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/error.h"
#include "gpu/engine/step_evaluator.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/device_buffer.h"
#include "painn/functions/repulsion_pairs.h"
#include "painn/gpu/atom_stages.h"
#include "painn/gpu/edge_stage.h"
#include "painn/gpu/first_messages.h"
#include "painn/gpu/messages.h"
#include "painn/gpu/packed_filter.h"
#include "painn/gpu/plain_messages.h"
#include "painn/gpu/stage_work.h"
#include "painn/gpu/tables.h"

namespace mlff::painn::gpu {
namespace {

using namespace mlff::gpu;

template <class Real>
void upload_as(const std::vector<double>& numbers, DeviceBuffer<Real>& to, cudaStream_t stream) {
    const std::vector<Real> rounded(numbers.begin(), numbers.end());
    to.upload(rounded.data(), static_cast<int64_t>(rounded.size()), "the model", stream);
}

// A matrix on the device in the orders of MapView.
template <class Stored>
class DeviceMatrix {
public:
    using Real = RealOf<Stored>;
    DeviceMatrix(const Linear& linear, bool transposed, cudaStream_t stream) {
        const int depth = transposed ? linear.out_width : linear.in_width,
                  columns = transposed ? linear.in_width : linear.out_width;
        const std::vector<double> matrix = matrix_of(linear, transposed);
        const PackedRowMatrix<Stored> packed = pack_row_matrix<Stored>(matrix, depth, columns);
        units_.upload(packed.units.data(), static_cast<int64_t>(packed.units.size()), "the model", stream);
        depth_blocks_ = packed.depth_blocks;
        unscale_ = packed.unscale;
        if constexpr (sizeof(Real) == 4) upload(for_clusters_, pack_for_clusters(matrix, depth, columns), stream);
    }
    RowMatrix<Stored> rows() const { return {units_.data(), depth_blocks_, unscale_}; }
    const float* for_clusters() const { return for_clusters_.data(); }

private:
    DeviceBuffer<typename MatrixBlock<Stored>::Unit> units_;
    DeviceBuffer<float> for_clusters_;
    int depth_blocks_ = 0;
    Real unscale_ = 1;
};

// A linear map and its transpose on the device.
template <class Stored>
class DeviceMap {
public:
    DeviceMap(const Linear& linear, cudaStream_t stream)
        : matrix_(linear, false, stream), transposed_(linear, true, stream) {
        upload_as(linear.bias.empty() ? std::vector<double>(static_cast<size_t>(linear.out_width), 0.0) : linear.bias,
                  bias_, stream);
    }
    MapView<Stored> view() const {
        return {matrix_.rows(), transposed_.rows(), bias_.data(), matrix_.for_clusters(), transposed_.for_clusters()};
    }

private:
    DeviceMatrix<Stored> matrix_, transposed_;
    DeviceBuffer<RealOf<Stored>> bias_;
};

template <class Stored>
class DeviceFilter {
public:
    DeviceFilter(const Linear& filter, cudaStream_t stream) {
        const int groups = FunctionLayout<Stored>::group_count(filter.in_width);
        const std::vector<double> table = filter_table(filter, 4 * groups);
        scale_ = scale_for_halves(table);
        const std::vector<uint4> packed = pack_filter(table, filter.out_width, scale_);
        upload(weights_, kIsFast<Stored> ? high_halves_of_filter(packed, groups) : packed, stream);
    }
    FilterView<Stored> view() const { return {weights_.data(), scale_}; }

private:
    DeviceBuffer<uint4> weights_;
    float scale_ = 1;
};
template <>
class DeviceFilter<double> {
public:
    DeviceFilter(const Linear& filter, cudaStream_t stream) {
        upload_as(filter_table(filter, 4 * FunctionLayout<double>::group_count(filter.in_width)), weights_, stream);
    }
    FilterView<double> view() const { return {weights_.data()}; }

private:
    DeviceBuffer<double> weights_;
};

// The matrices of the first block's messages on the device.
template <class Real>
class DeviceFirstMatrices {
public:
    DeviceFirstMatrices(const Weights& weights, cudaStream_t stream) {
        const FirstMatrices<Real> matrices(weights, FunctionLayout<Real>::group_count(weights.radial_count));
        upload(forward_, matrices.forward, stream);
        upload(transposed_, matrices.transposed, stream);
    }
    FirstMatricesView<Real> view() const { return {forward_.data(), transposed_.data()}; }

private:
    DeviceBuffer<Real> forward_, transposed_;
};

// A block on the device, and what its forward pass stores for each atom for the reverse.
template <class Stored>
struct DeviceBlock {
    using Real = RealOf<Stored>;

    DeviceBlock(const Block& block, bool is_first, bool is_fused, cudaStream_t stream)
        : mix(block.mix, stream),
          update_hidden(block.update_hidden, stream),
          update_output(block.update_output, stream),
          message_hidden(block.message_hidden, stream),
          message_output(block.message_output, stream) {
        if (!is_fused)
            upload_as(filter_table(block.filter, block.filter.in_width + 1), plain_filter, stream);
        else if (!is_first)
            filter.emplace(block.filter, stream);
    }
    FilterView<Stored> filter_view() const { return filter ? filter->view() : FilterView<Stored>{}; }
    NetworkView<Stored> update() const { return {update_hidden.view(), update_output.view()}; }
    NetworkView<Stored> message() const { return {message_hidden.view(), message_output.view()}; }
    KeptUpdate<Real> kept() const { return {mixed.data(), hidden.data(), gates.data()}; }
    KeptMessage<Real> kept_message() const { return {sent_hidden.data(), phi_v.data()}; }

    std::optional<DeviceFilter<Stored>> filter;  // only with fused messages, and not in the first block
    DeviceBuffer<Real> plain_filter;             // PlainMessages::weights; only without fused messages
    DeviceMap<Stored> mix, update_hidden, update_output, message_hidden, message_output;
    DeviceBuffer<Real> mixed, hidden, gates;  // KeptUpdate
    // Computed before its messages; not in the first block.
    DeviceBuffer<Real> vectors, sent_hidden, phi_v;
    DeviceBuffer<Stored> sent;
};

// `Stored` is the precision: see stored_number.h. Without fused messages there is no `fast`.
template <class Stored>
class PainnStep : public StepModel {
public:
    using Real = RealOf<Stored>;

    PainnStep(std::shared_ptr<const Weights> weights, bool is_fused, cudaStream_t stream)
        : weights_(std::move(weights)),
          is_fused_(is_fused),
          facts_{weights_->cutoff, weights_->atomic_numbers, weights_->hidden},
          readout_hidden_(weights_->readout_hidden, stream) {
        for (const Block& block : weights_->blocks)
            blocks_.push_back(std::make_unique<DeviceBlock<Stored>>(block, blocks_.empty(), is_fused, stream));
        upload_as(weights_->embedding, embedding_, stream);
        if (is_fused)
            first_matrices_.emplace(*weights_, stream);
        else
            upload_as(first_sent(*weights_), first_sent_, stream);
        upload_as(weights_->readout_output.weight, readout_output_, stream);
        upload_as(weights_->atomic_energies, element_energies_, stream);
        upload_as(weights_->scales, scales_, stream);
        if (!weights_->repulsion_radii.empty()) upload(repulsion_, repulsion_pairs(*weights_), stream);
        upload(closest_, weights_->closest, stream);
        std::vector<ElementEnergy> alone;
        for (const double energy : weights_->atomic_energies) alone.push_back({energy, 0});
        alone_.upload(alone.data(), static_cast<int64_t>(alone.size()), "the model", stream);
    }

    const StepModelFacts& facts() const override { return facts_; }
    bool prepare(const SystemView&, const std::vector<int>&, ThreadTeam&, cudaStream_t) override { return false; }

    void list_buffers(BufferList& list, const StepSize& size) override {
        constexpr const char *kAtoms = "the features of the atoms", *kEdges = "the edges";
        const int64_t atoms = size.atoms, rows = atoms * width(), groups = group_count();
        const bool has_gradients = size.wanted.gradients();
        list.add(values_, size.edges * groups, kEdges);
        list.add(directions_, size.edges * 4, kEdges);
        list.add(scalars_, rows, kAtoms);
        list.add(received_scalars_, rows, kAtoms);
        list.add(received_vectors_, 3 * rows, kAtoms);
        list.add(readout_kept_, rows / 2, kAtoms);
        if (!is_fused_) {
            list.add(plain_filters_, size.edges * kFilterRows * width(), kEdges);
            list.add(plain_messages_, size.edges * kMessageRows * width(), kEdges);
            if (has_gradients) list.add(plain_slopes_, size.edges * kFilterRows * width(), kEdges);
        }
        for (size_t b = 0; b < blocks_.size(); ++b) {
            DeviceBlock<Stored>& block = *blocks_[b];
            list.add(block.mixed, 6 * rows, kAtoms);
            list.add(block.hidden, rows, kAtoms);
            list.add(block.gates, 2 * rows, kAtoms);
            if (b == 0) continue;
            list.add(block.vectors, 3 * rows, kAtoms);
            list.add(block.sent, kSentRows * rows, kAtoms);
            list.add(block.sent_hidden, rows, kAtoms);
            list.add(block.phi_v, rows, kAtoms);
        }
        if (!has_gradients) return;
        list.add(slopes_, size.edges * groups, kEdges);
        list.add(vector_gradient_, 3 * size.edges, kEdges);
        list.add(gradient_, kGradientRows * rows, kAtoms);
        if (kIsFast<Stored>) list.add(gathered_gradient_, kGradientRows * rows, kAtoms);
        list.add(phi_gradient_, 3 * rows, kAtoms);
        list.add(vectors_gradient_, 3 * rows, kAtoms);
    }

    int64_t most_ghost_row_bytes() const override {
        return int64_t{std::max(kSentRows, kGradientRows)} * width() * static_cast<int64_t>(sizeof(Stored));
    }

    void enqueue(const Step& step, StepResults& results, cudaStream_t stream) override {
        const bool has_gradients = step.wanted.gradients();
        functions_ = {values_.data(), has_gradients ? slopes_.data() : nullptr, directions_.data(), group_count()};
        EdgeStage edges = {step.edges,        weights_->cutoff, weights_->radial_count,
                           repulsion_.data(), closest_.data(),  static_cast<int>(weights_->atomic_numbers.size())};
        edges.energies = results.energies.data();
        edges.vector_gradient = has_gradients ? vector_gradient_.data() : nullptr;
        edges.has_short_edge = results.short_edges.data();
        begin_stage("edges", Direction::forward, stream);
        compute_edges(edges, functions_, stream);
        const ReadoutView<Stored> readout = readout_view(step, results);
        for (size_t b = 0; b < blocks_.size(); ++b) compute_block(b, step, readout, stream);
        if (!has_gradients) return;
        for (size_t b = blocks_.size(); b-- > 0;) reverse_block(b, step, readout, stream);
        begin_stage("forces", Direction::reverse, stream);
        write_forces(step, vector_gradient_.data(), results, stream);
    }

    EnergyView energy_view(const Step& step) const override { return {step.edges.elements, alone_.data()}; }
    [[noreturn]] void refuse_short_edges() const override { fail(Status::system, "two atoms are at the same place"); }

private:
    int width() const { return weights_->hidden; }
    int group_count() const { return FunctionLayout<Stored>::group_count(weights_->radial_count); }

    ReadoutView<Stored> readout_view(const Step& step, const StepResults& results) const {
        return {readout_hidden_.view(),
                readout_output_.data(),
                weights_->readout_output.bias.empty() ? 0 : weights_->readout_output.bias.front(),
                element_energies_.data(),
                scales_.data(),
                step.edges.elements,
                readout_kept_.data(),
                results.energies.data(),
                step.wanted.descriptors ? results.descriptors.data() : nullptr};
    }

    PlainMessages<Real> plain_messages(size_t b) const {
        return {b == 0,
                blocks_[b]->plain_filter.data(),
                weights_->radial_count,
                weights_->cutoff,
                closest_.data(),
                static_cast<int>(weights_->atomic_numbers.size()),
                plain_filters_.data(),
                plain_slopes_.data(),
                plain_messages_.data()};
    }

    void compute_block(size_t b, const Step& step, const ReadoutView<Stored>& readout, cudaStream_t stream) {
        const DeviceBlock<Stored>& block = *blocks_[b];
        if (b > 0) fill_ghosts(step, block.sent.data(), kSentRows * width(), Direction::forward, b, stream);
        begin_stage("messages", Direction::forward, b, stream, messages_work<Stored>(*weights_, b, false));
        if (is_fused_ && b == 0)
            sum_first_messages<Stored>(width(),
                                       {step.edges, functions_, first_matrices_->view(), embedding_.data(),
                                        received_scalars_.data(), received_vectors_.data()},
                                       stream);
        else
            sum_other_messages(b, step, stream);

        AtomStage<Stored> atoms;
        atoms.atom_count = step.edges.atom_count;
        atoms.is_last = b + 1 == blocks_.size();
        atoms.scalars = received_scalars_.data();
        atoms.vectors = received_vectors_.data();
        atoms.mix = block.mix.view();
        atoms.update = block.update();
        atoms.kept = block.kept();
        if (atoms.is_last) {
            atoms.readout = readout;
        } else {
            const DeviceBlock<Stored>& next = *blocks_[b + 1];
            atoms.new_scalars = scalars_.data();
            atoms.new_vectors = next.vectors.data();
            atoms.message = next.message();
            atoms.kept_message = next.kept_message();
            atoms.sent = next.sent.data();
        }
        begin_stage("update of atoms", Direction::forward, b, stream, update_work<Real>(*weights_, b, false));
        update_atoms(width(), atoms, stream);
    }

    void reverse_block(size_t b, const Step& step, const ReadoutView<Stored>& readout, cudaStream_t stream) {
        const DeviceBlock<Stored>& block = *blocks_[b];
        AtomReverse<Stored> atoms;
        atoms.atom_count = step.edges.atom_count;
        atoms.is_last = b + 1 == blocks_.size();
        if (atoms.is_last) {
            atoms.readout = readout;
        } else {
            const DeviceBlock<Stored>& next = *blocks_[b + 1];
            atoms.message = next.message();
            atoms.kept_message = next.kept_message();
            atoms.phi_gradient = phi_gradient_.data();
            atoms.gradient_after = gradient_.data();
            atoms.vectors_gradient = vectors_gradient_.data();
        }
        atoms.mix = block.mix.view();
        atoms.update = block.update();
        atoms.kept = block.kept();
        atoms.gradient = gradient_.data();
        if (b > 0) atoms.gathered = gathered_gradient();
        begin_stage("update of atoms", Direction::reverse, b, stream, update_work<Real>(*weights_, b, true));
        reverse_atoms(width(), atoms, stream);

        if (b > 0) fill_ghosts(step, gathered_gradient(), kGradientRows * width(), Direction::reverse, b, stream);
        begin_stage("messages", Direction::reverse, b, stream, messages_work<Stored>(*weights_, b, true));
        if (is_fused_ && b == 0)
            reverse_first_messages<Stored>(
                width(), {step.edges, functions_, first_matrices_->view(), gradient_.data(), vector_gradient_.data()},
                stream);
        else
            reverse_other_messages(b, step, stream);
    }

    // Those of all blocks but the first and, without fused messages, of the first too.
    void sum_other_messages(size_t b, const Step& step, cudaStream_t stream) {
        const DeviceBlock<Stored>& block = *blocks_[b];
        MessageStage<Stored> messages = {step.edges, functions_, block.filter_view()};
        messages.sent = sent(b);
        messages.scalars = b == 0 ? embedding_.data() : scalars_.data();
        messages.vectors = b == 0 ? nullptr : block.vectors.data();
        messages.new_scalars = received_scalars_.data();
        messages.new_vectors = received_vectors_.data();
        if constexpr (!kIsFast<Stored>)
            if (!is_fused_) return sum_messages_plainly(width(), messages, plain_messages(b), stream);
        sum_messages(width(), messages, stream);
    }
    void reverse_other_messages(size_t b, const Step& step, cudaStream_t stream) {
        const DeviceBlock<Stored>& block = *blocks_[b];
        MessageReverse<Stored> messages = {step.edges, functions_, block.filter_view()};
        messages.sent = sent(b);
        messages.gathered = gathered_gradient();
        messages.gradient = gradient_.data();
        messages.vector_gradient = vector_gradient_.data();
        if (b > 0) {
            messages.phi_v = block.phi_v.data();
            messages.vectors = block.vectors.data();
            messages.phi_gradient = phi_gradient_.data();
            messages.vectors_gradient = vectors_gradient_.data();
        }
        if constexpr (!kIsFast<Stored>)
            if (!is_fused_) return reverse_messages_plainly(width(), messages, plain_messages(b), stream);
        reverse_messages(width(), messages, stream);
    }
    const Stored* sent(size_t b) const { return b == 0 ? first_sent_.data() : blocks_[b]->sent.data(); }
    Stored* gathered_gradient() {
        if constexpr (kIsFast<Stored>) return gathered_gradient_.data();
        if constexpr (!kIsFast<Stored>) return gradient_.data();
    }

    std::shared_ptr<const Weights> weights_;
    bool is_fused_;
    StepModelFacts facts_;
    std::vector<std::unique_ptr<DeviceBlock<Stored>>> blocks_;
    DeviceMap<Stored> readout_hidden_;
    DeviceBuffer<Real> embedding_;
    std::optional<DeviceFirstMatrices<Real>> first_matrices_;  // only with fused messages
    DeviceBuffer<Stored> first_sent_;                          // only without fused messages
    DeviceBuffer<double> readout_output_, element_energies_, scales_, closest_;
    DeviceBuffer<RepulsionPair> repulsion_;
    DeviceBuffer<ElementEnergy> alone_;

    EdgeFunctions<Stored> functions_;  // of the step that is being enqueued
    DeviceBuffer<typename FunctionLayout<Stored>::Group> values_, slopes_;
    DeviceBuffer<Real> directions_;
    DeviceBuffer<double> vector_gradient_;
    DeviceBuffer<Real> scalars_, received_scalars_, received_vectors_, readout_kept_;
    DeviceBuffer<Real> gradient_, phi_gradient_, vectors_gradient_;
    DeviceBuffer<Stored> gathered_gradient_;                            // only if gradient_ is of another type
    DeviceBuffer<Real> plain_filters_, plain_slopes_, plain_messages_;  // PlainMessages; only without fused messages
};

}  // namespace

std::string why_not_on_gpu(const Weights& weights) {
    if (!is_compiled_width(weights.hidden))
        return concat("it has ", weights.hidden, " hidden channels; the GPU's kernels are for 32, 64, 128 and 256");
    return "";
}

MakeStepModel make_step_model(std::shared_ptr<const Weights> weights, const BackendOptions& options) {
    const std::string why_not = why_not_on_gpu(*weights);
    if (!why_not.empty()) fail(Status::unsupported, "the GPU backend cannot run this model: ", why_not);
    return [weights, options](void* stream) -> std::shared_ptr<StepModel> {
        const auto on = static_cast<cudaStream_t>(stream);
        const bool is_fused = options.optimizations.fused_messages;
        if (options.precision == Precision::fast && is_fused)
            return std::make_shared<PainnStep<__half>>(weights, is_fused, on);
        if (options.is_single()) return std::make_shared<PainnStep<float>>(weights, is_fused, on);
        return std::make_shared<PainnStep<double>>(weights, is_fused, on);
    };
}

std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options) {
    return make_step_evaluator(options, make_step_model(std::move(weights), options));
}

}  // namespace mlff::painn::gpu
