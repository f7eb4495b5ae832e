// SPDX-License-Identifier: MIT
#include "committee/model.h"

#include <algorithm>
#include <cmath>

#include "combined/model.h"
#include "core/error.h"

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

void check_members(const std::vector<CommitteeMember>& members, const std::string& name) {
    for (const CommitteeMember& member : members) {
        const ModelSummary& own = member.model->summary();
        if (!own.why_not_runnable.empty())
            fail(Status::unsupported, name, ": member ", member.name, ": ", own.why_not_runnable);
        if (own.member_count > 0) fail(Status::unsupported, name, ": member ", member.name, " is a committee itself");
    }
}

std::vector<std::shared_ptr<const Model>> models_of(const std::vector<CommitteeMember>& members) {
    std::vector<std::shared_ptr<const Model>> models;
    for (const CommitteeMember& member : members) models.push_back(member.model);
    return models;
}

class CommitteeModel : public CombinedModel {
public:
    CommitteeModel(const std::vector<CommitteeMember>& members, std::vector<double> weights, const std::string& name)
        : CombinedModel("Committee", "members", models_of(members), joining_as_mean(weights), name),
          weights_(std::move(weights)) {
        summary_.member_count = static_cast<int>(members.size());
        for (const CommitteeMember& member : members) names_.push_back(member.name);
    }

    JsonValue description() const override {
        JsonValue members = JsonValue::Array();
        for (size_t m = 0; m < part_count(); ++m)
            members.push_back(
                JsonValue::Object{{"name", names_[m]}, {"weight", weights_[m]}, {"model", part(m).description()}});
        return description_with(members);
    }
    bool shares_gpu_steps() const override { return runs_on_gpu(); }

private:
    BackendOptions options_of(size_t member, BackendOptions options) const override {
        const std::string& wanted = summary_.heads[static_cast<size_t>(options.head)];
        const ModelSummary& own = part(member).summary();
        const auto found = std::find(own.heads.begin(), own.heads.end(), wanted);
        if (found == own.heads.end() && own.heads.size() > 1 && own.fixed_head < 0)
            fail(Status::argument, "member ", names_[member], " of the committee has several heads, but no head '",
                 wanted, "'");
        options.head = own.fixed_head >= 0        ? own.fixed_head
                       : found == own.heads.end() ? 0
                                                  : static_cast<int>(found - own.heads.begin());
        return options;
    }

    std::vector<std::string> names_;  // [member]
    std::vector<double> weights_;     // the same; their sum is 1
};

}  // namespace

std::shared_ptr<const Model> make_committee_model(const std::vector<CommitteeMember>& members,
                                                  const std::string& name) {
    if (members.size() < 2)
        fail(Status::argument, name, ": a committee of ", members.size(), " members, expected two or more");
    std::vector<double> weights = normalised_weights(members, name);
    check_members(members, name);
    return std::make_shared<CommitteeModel>(members, std::move(weights), name);
}

}  // namespace mlff
