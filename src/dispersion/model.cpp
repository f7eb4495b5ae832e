// SPDX-License-Identifier: MIT
#include "dispersion/model.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "dispersion/cpu/evaluator.h"
#include "dispersion/gpu/step.h"
#include "dispersion/reference/evaluator.h"
#include "dispersion/tables/tables.h"
#include "dispersion/tables/units.h"

namespace mlff {
namespace {

using dispersion::DampingKind;
using dispersion::Method;

constexpr std::string_view kPrefix = "d3:";

std::vector<std::string_view> parts_of(std::string_view text) {
    std::vector<std::string_view> parts;
    for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(':', begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

Method method_of(const std::string& name) {
    const std::vector<std::string_view> parts =
        parts_of(name.size() > kPrefix.size() ? std::string_view(name).substr(kPrefix.size()) : std::string_view());
    if (parts.front().empty())
        fail(Status::argument, "'", name,
             "' names no functional; expected d3:FUNCTIONAL[:bj|zero][:atm][:smooth], for "
             "example d3:pbe, or d3:s8=...,a1=...,a2=...");
    Method method;
    std::optional<DampingKind> kind;
    for (size_t i = 1; i < parts.size(); ++i) {
        if (std::find(parts.begin() + 1, parts.begin() + static_cast<ptrdiff_t>(i), parts[i]) !=
            parts.begin() + static_cast<ptrdiff_t>(i))
            fail(Status::argument, "'", name, "' has '", parts[i], "' twice");
        if (parts[i] == "bj" || parts[i] == "zero") {
            if (kind) fail(Status::argument, "'", name, "' names two kinds of damping");
            kind = parts[i] == "bj" ? DampingKind::bj : DampingKind::zero;
        } else if (parts[i] == "atm") {
            method.has_triples = true;
        } else if (parts[i] == "smooth") {
            method.is_smooth = true;
        } else {
            fail(Status::argument, "'", parts[i], "' in '", name,
                 "' is no option of D3; expected bj, zero, atm or smooth");
        }
    }
    const bool has_values = parts.front().find('=') != std::string_view::npos;
    method.damping = has_values ? dispersion::damping_of_values(parts.front(), kind.value_or(DampingKind::bj))
                                : dispersion::damping_of_functional(parts.front(), kind.value_or(DampingKind::bj));
    return method;
}

class DispersionModel : public Model {
public:
    DispersionModel(std::vector<int> elements, const Method& method)
        : tables_(std::make_shared<dispersion::Tables>(dispersion::make_tables(elements, method))) {
        summary_.class_name = "Dispersion";
        summary_.elements = std::move(elements);
        summary_.heads = {"Default"};
        summary_.range = dispersion::kPairCutoff;
    }
    const ModelSummary& summary() const override { return summary_; }

    JsonValue description() const override {
        const Method& method = tables_->method;
        std::string note = concat("DFT-D3 dispersion, damping ", dispersion::kind_name(method.damping.kind), " with ",
                                  dispersion::values_text(method.damping));
        if (method.has_triples) note += ", three-body energies";
        if (method.is_smooth) note += ", faded to zero before the cutoffs (unlike other programs)";
        return JsonValue::Object{{"class", summary_.class_name},
                                 {"note", note},
                                 {"cutoff", summary_.cutoff},
                                 {"range", summary_.range},
                                 {"elements", summary_.elements},
                                 {"heads", summary_.heads},
                                 {"dtype", "float64"},
                                 {"parameters", 0},
                                 {"runnable", true},
                                 {"units", units_json()}};
    }

    // The CPU computes in double, whatever the precision of the other terms of a sum. A GPU computes the pairs in
    // single precision unless fp64 is wanted.
    Precision choose_precision(const Device& device, Precision wanted) const override {
        if (wanted != Precision::automatic) return wanted;
        return device.is_gpu() ? Precision::mixed : Precision::fp64;
    }
    bool runs_on_gpu() const override { return dispersion::gpu::is_available() && !tables_->method.has_triples; }

    std::shared_ptr<const Model> restricted_to(const std::vector<int>& elements) const override {
        std::vector<int> kept;
        std::set_intersection(elements.begin(), elements.end(), summary_.elements.begin(), summary_.elements.end(),
                              std::back_inserter(kept));
        return std::make_shared<DispersionModel>(std::move(kept), tables_->method);
    }

    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const override {
        if (options.device.is_gpu()) return dispersion::gpu::make_gpu_evaluator(tables_, options);
        if (options.device.kind == Device::Kind::reference)
            return dispersion::reference::make_reference_evaluator(tables_);
        return dispersion::cpu::make_cpu_evaluator(tables_);
    }
    MakeStepModel make_step_model(const BackendOptions& options) const override {
        return dispersion::gpu::make_step_model(tables_, options);
    }

private:
    std::shared_ptr<const dispersion::Tables> tables_;
    ModelSummary summary_;
};

}  // namespace

bool is_dispersion_name(const std::string& name) {
    return name == "d3" || (name.starts_with(kPrefix) && name.find('+') == std::string::npos);
}

std::shared_ptr<Model> make_dispersion_model(const std::string& name) {
    std::vector<int> elements(dispersion::kElementCount);
    std::iota(elements.begin(), elements.end(), 1);
    return std::make_shared<DispersionModel>(std::move(elements), method_of(name));
}

}  // namespace mlff
