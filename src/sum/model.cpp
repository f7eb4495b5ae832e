// SPDX-License-Identifier: MIT
#include "sum/model.h"

#include <algorithm>

#include "combined/model.h"
#include "core/error.h"

namespace mlff {
namespace {

void check_terms(const std::vector<std::shared_ptr<const Model>>& terms, const std::string& name) {
    for (const auto& term : terms) {
        const ModelSummary& own = term->summary();
        if (!own.why_not_runnable.empty()) fail(Status::unsupported, name, ": ", own.why_not_runnable);
        if (own.member_count > 0)
            fail(Status::unsupported, name, ": a committee cannot be in a sum; add the other terms to its members");
        if (!term->shares_gpu_steps())
            fail(Status::unsupported, name, ": ", own.class_name, " is a Python model: it cannot be in a sum");
        if (!(own.reach() > 0))
            fail(Status::unsupported, name, ": ", own.class_name,
                 " finds its neighbours itself: it cannot be in a sum");
        if (term != terms.front() && own.heads.size() > 1 && own.fixed_head < 0)
            fail(Status::argument, name, ": ", own.class_name,
                 " has several heads, and a head is chosen for the first ", "term only: put it first");
    }
}

class SumModel : public CombinedModel {
public:
    SumModel(std::vector<std::shared_ptr<const Model>> terms, const std::string& name)
        : CombinedModel("Sum", "terms", terms, joining_as_sum(terms.size()), name) {
        set_trust_meter(terms.front()->trust_meter());  // it reads the descriptors, which are those of the first term
    }

    JsonValue description() const override {
        JsonValue terms = JsonValue::Array();
        for (size_t t = 0; t < part_count(); ++t) terms.push_back(part(t).description());
        return description_with(terms);
    }

private:
    // The chosen head is that of the first term. The other terms have only one.
    BackendOptions options_of(size_t term, BackendOptions options) const override {
        if (term > 0) options.head = std::max(0, part(term).summary().fixed_head);
        return options;
    }
};

}  // namespace

std::shared_ptr<const Model> make_sum_model(std::vector<std::shared_ptr<const Model>> terms, const std::string& name) {
    check_terms(terms, name);
    return std::make_shared<SumModel>(std::move(terms), name);
}

}  // namespace mlff
