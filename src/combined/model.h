// SPDX-License-Identifier: MIT
// What sums and committees share: several models that run together on one neighbour list, and in one step on a GPU.
// Descriptors and precision are those of the first; elements are those that all of them know.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "potential/joining.h"
#include "potential/model.h"

namespace mlff {

class CombinedModel : public Model {
public:
    const ModelSummary& summary() const override { return summary_; }
    // The precision of the first part. The other parts must have it too.
    Precision choose_precision(const Device& device, Precision wanted) const override;
    bool runs_on_gpu() const override;
    bool gives_atom_energies() const override;
    bool gives_virial(const SystemView& system) const override;
    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const override;
    MakeStepModel make_step_model(const BackendOptions& options) const override;

protected:
    // `part_word`: what a part is called, "terms" or "members". Throws Error{argument}, with `name`, if the parts have
    // no element in common. `joinings`: [part].
    CombinedModel(const char* class_name, const char* part_word, std::vector<std::shared_ptr<const Model>> parts,
                  std::vector<Joining> joinings, const std::string& name);

    const Model& part(size_t p) const { return *parts_[p]; }
    size_t part_count() const { return parts_.size(); }
    // The options with the head that a part uses.
    virtual BackendOptions options_of(size_t p, BackendOptions options) const = 0;
    JsonValue description_with(const JsonValue& parts) const;

    ModelSummary summary_;

private:
    template <class Property>
    bool all(const Property& property) const;
    std::vector<MakeStepModel> make_step_models(const BackendOptions& options) const;

    const char* part_word_;
    std::vector<std::shared_ptr<const Model>> parts_;
    std::vector<Joining> joinings_;
};

}  // namespace mlff
