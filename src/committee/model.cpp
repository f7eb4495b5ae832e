// SPDX-License-Identifier: MIT
#include "committee/model.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "gpu/engine/make_combined_step.h"
#include "potential/combined_evaluator.h"

namespace mlff {
namespace {

// With sum 1. Divided by the largest first, so that no sum is too large.
std::vector<double> normalised_weights(const std::vector<CommitteeMember>& members, const std::string& name) {
    std::vector<double> weights;
    double largest = 0, sum = 0;
    for (const CommitteeMember& member : members) largest = std::max(largest, member.weight);
    for (const CommitteeMember& member : members) {
        const double weight = member.weight / largest;
        if (!std::isfinite(weight) || !(weight > 0))
            fail(Status::argument, name, ": the weight of member ", member.name,
                 " is not a number above 0, or too small beside the others");
        weights.push_back(weight);
        sum += weight;
    }
    for (double& weight : weights) weight /= sum;
    return weights;
}

class CommitteeModel : public Model {
public:
    CommitteeModel(std::vector<CommitteeMember> members, const std::string& name)
        : members_(std::move(members)), weights_(normalised_weights(members_, name)) {
        summary_ = members_.front().model->summary();
        summary_.class_name = "Committee";
        summary_.member_count = static_cast<int>(members_.size());
        for (const CommitteeMember& member : members_) {
            const ModelSummary& own = member.model->summary();
            if (!own.why_not_runnable.empty())
                fail(Status::unsupported, name, ": member ", member.name, ": ", own.why_not_runnable);
            if (own.member_count > 0)
                fail(Status::unsupported, name, ": member ", member.name, " is a committee itself");
            std::vector<int> common;
            std::set_intersection(summary_.elements.begin(), summary_.elements.end(), own.elements.begin(),
                                  own.elements.end(), std::back_inserter(common));
            summary_.elements = std::move(common);
            summary_.takes_charge = summary_.takes_charge || own.takes_charge;
            summary_.takes_spin = summary_.takes_spin || own.takes_spin;
        }
        if (summary_.elements.empty()) fail(Status::argument, name, ": its members have no element in common");
        summary_.parameter_count = 0;
        summary_.cutoff = summary_.range = 0;
        for (CommitteeMember& member : members_) {
            if (auto restricted = member.model->restricted_to(summary_.elements)) member.model = std::move(restricted);
            const ModelSummary& own = member.model->summary();
            summary_.cutoff = std::max(summary_.cutoff, own.cutoff);
            summary_.range = std::max(summary_.range, own.range);
            summary_.layer_count = std::max(summary_.layer_count, own.layer_count);
            summary_.parameter_count += own.parameter_count;
        }
        // One that does not say how far it reaches leaves the whole without an answer.
        summary_.knows_reach = all([](const Model& model) { return model.summary().reach() > 0; });
    }

    const ModelSummary& summary() const override { return summary_; }
    JsonValue description() const override {
        JsonValue members = JsonValue::Array();
        for (size_t m = 0; m < members_.size(); ++m)
            members.push_back(JsonValue::Object{
                {"name", members_[m].name}, {"weight", weights_[m]}, {"model", members_[m].model->description()}});
        return JsonValue::Object{{"class", summary_.class_name},
                                 {"members", members},
                                 {"elements", summary_.elements},
                                 {"cutoff", summary_.cutoff},
                                 {"range", summary_.reach()},
                                 {"heads", summary_.heads},
                                 {"dtype", dtype_name(summary_.dtype)},
                                 {"parameters", summary_.parameter_count},
                                 {"descriptors", summary_.descriptor_count},
                                 {"runnable", true},
                                 {"why_not_runnable", nullptr},
                                 {"units", units_json()}};
    }

    // The precision of the first member. The other members must have it too.
    Precision choose_precision(const Device& device, Precision wanted) const override {
        const Precision chosen = members_.front().model->choose_precision(device, wanted);
        for (const CommitteeMember& member : members_) member.model->choose_precision(device, chosen);
        return chosen;
    }
    bool runs_on_gpu() const override { return shares_gpu_steps(); }
    bool shares_gpu_steps() const override {
        return all([](const Model& model) { return model.runs_on_gpu() && model.shares_gpu_steps(); });
    }
    bool gives_atom_energies() const override {
        return all([](const Model& model) { return model.gives_atom_energies(); });
    }
    bool gives_virial(const SystemView& system) const override {
        return all([&](const Model& model) { return model.gives_virial(system); });
    }

    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const override {
        if (options.device.is_gpu())
            return gpu::make_combined_step_evaluator(options, make_step_models(options), joining_as_mean(weights_));
        std::vector<CombinedPart> evaluators;
        for (const CommitteeMember& member : members_)
            evaluators.push_back(
                {member.model->make_evaluator(options_of(member, options)), member.model->summary().cutoff});
        return make_combined_evaluator(std::move(evaluators), joining_as_mean(weights_));
    }
    MakeStepModel make_step_model(const BackendOptions& options) const override {
        return gpu::make_combined_step(make_step_models(options), joining_as_mean(weights_));
    }

private:
    template <class Property>
    bool all(const Property& property) const {
        return std::all_of(members_.begin(), members_.end(),
                           [&](const CommitteeMember& member) { return property(*member.model); });
    }
    BackendOptions options_of(const CommitteeMember& member, BackendOptions options) const {
        const std::string& wanted = summary_.heads[static_cast<size_t>(options.head)];
        const std::vector<std::string>& heads = member.model->summary().heads;
        const auto found = std::find(heads.begin(), heads.end(), wanted);
        const int fixed = member.model->summary().fixed_head;
        if (found == heads.end() && heads.size() > 1 && fixed < 0)
            fail(Status::argument, "member ", member.name, " of the committee has several heads, but no head '", wanted,
                 "'");
        options.head = fixed >= 0 ? fixed : found == heads.end() ? 0 : static_cast<int>(found - heads.begin());
        return options;
    }
    std::vector<MakeStepModel> make_step_models(const BackendOptions& options) const {
        std::vector<MakeStepModel> made;
        for (const CommitteeMember& member : members_)
            made.push_back(member.model->make_step_model(options_of(member, options)));
        return made;
    }

    std::vector<CommitteeMember> members_;
    std::vector<double> weights_;
    ModelSummary summary_;
};

}  // namespace

std::shared_ptr<const Model> make_committee_model(std::vector<CommitteeMember> members, const std::string& name) {
    if (members.size() < 2)
        fail(Status::argument, name, ": a committee of ", members.size(), " members, expected two or more");
    return std::make_shared<CommitteeModel>(std::move(members), name);
}

}  // namespace mlff
