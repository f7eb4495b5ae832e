// SPDX-License-Identifier: MIT
#include "python_models/model.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <numeric>

#include "core/elements.h"
#include "core/error.h"
#include "python_models/environment.h"
#include "python_models/teacher.h"

namespace mlff {
namespace {

// A teacher of its own: sessions on several threads do not wait for each other, as far as Python lets them.
class PythonEvaluator : public Evaluator {
public:
    explicit PythonEvaluator(std::unique_ptr<python::Teacher> teacher) : teacher_(std::move(teacher)) {}

    void evaluate(const SystemView& system, const Edges&, const Outputs& outputs, ThreadTeam&) override {
        if (outputs.atom_virials)
            fail(Status::unsupported, "virials of atoms were asked for, which Python models do not give");
        if (system.atom_count == 0) {  // which calculators do not expect
            if (outputs.energy) *outputs.energy = 0;
            if (outputs.virial) std::fill_n(outputs.virial, 9, 0.0);
            return;
        }
        teacher_->evaluate(system, outputs);
    }
    bool needs_edges() const override { return false; }

private:
    std::unique_ptr<python::Teacher> teacher_;
};

class PythonModel : public Model {
public:
    explicit PythonModel(const std::string& name)
        : name_(python::parse_model_name(name)), environment_(python::find_environment(name_)), spare_(open()) {
        description_ = spare_->description();
        summary_.class_name = text("class");
        summary_.cutoff = number("cutoff");
        summary_.layer_count = static_cast<int>(whole_number("layers", 1'000'000));
        summary_.heads = texts("heads");
        if (summary_.heads.empty()) refuse("heads");
        summary_.dtype = text("dtype") == "float32" ? DType::float32 : DType::float64;
        summary_.parameter_count = whole_number("parameters", INT64_MAX);
        summary_.takes_charge = summary_.takes_spin = true;  // the calculator gets both, and does not say
        has_precisions_ = !texts("precisions").empty();
        properties_ = texts("properties");
        gpus_.count = static_cast<size_t>(whole_number("gpus", 1'000'000));
        if (gpus_.count == 0) gpus_.why_none = text("why_no_gpu");
        summary_.elements = elements();
        description_["elements"] = summary_.elements;
        if (!name_.head.empty()) {
            const auto found = std::find(summary_.heads.begin(), summary_.heads.end(), name_.head);
            if (found == summary_.heads.end())
                fail(Status::argument, "model '", name, "': there is no head '", name_.head, "', only ",
                     JsonValue(summary_.heads).dump());
            summary_.fixed_head = static_cast<int>(found - summary_.heads.begin());
        }
    }

    const ModelSummary& summary() const override { return summary_; }

    JsonValue description() const override {
        JsonValue::Object members = description_.object();
        members.erase("layers");  // a number here, a list where layers are described
        JsonValue json = std::move(members);
        json["note"] = concat("Python ", text("python"), " in ", environment_.string(),
                              name_.is_in_process ? ", in this process" : ", in a process of its own");
        json["container"] = "python";
        json["runnable"] = true;
        json["units"] = units_json();
        json["layer_count"] = summary_.layer_count;
        return json;
    }

    // mace-torch runs in fp64 or fp32; a calculator in whatever it has, and what it hands over is fp64.
    Precision choose_precision(const Device& device, Precision wanted) const override {
        const bool is_reference = device.kind == Device::Kind::reference;
        if (!has_precisions_) {
            if (wanted != Precision::automatic && wanted != Precision::fp64)
                fail(Status::unsupported, "model '", name_.text, "': precision ", precision_name(wanted),
                     " cannot be chosen: a calculator has its own, perhaps as an argument of its factory");
            return Precision::fp64;
        }
        if (wanted != Precision::automatic && wanted != Precision::fp64 && wanted != Precision::fp32)
            fail(Status::unsupported, "model '", name_.text, "': precision ", precision_name(wanted),
                 " is not available in mace-torch; fp64 and fp32 are");
        if (is_reference && wanted == Precision::automatic) return Precision::fp64;
        if (wanted != Precision::automatic && !is_reference && !name_.dtype.empty() && dtype_of(wanted) != name_.dtype)
            fail(Status::argument, "model '", name_.text, "': dtype=", name_.dtype, " and precision ",
                 precision_name(wanted), " contradict each other");
        if (wanted != Precision::automatic) return wanted;
        const bool is_single = name_.dtype.empty() ? summary_.dtype == DType::float32 : name_.dtype == "float32";
        return is_single ? Precision::fp32 : Precision::fp64;
    }

    bool runs_on_gpu() const override { return true; }
    bool shares_gpu_steps() const override { return false; }
    UsableGpus usable_gpus() const override { return gpus_; }
    bool gives_atom_energies() const override { return gives("energies"); }
    bool gives_virial(const SystemView& system) const override {
        return gives("stress") && system.periodic == std::array<bool, 3>{true, true, true};
    }

    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const override {
        if (options.exact_radial)
            fail(Status::unsupported, "model '", name_.text, "': exact radial functions are a choice of native models");
        if (options.optimizations != Optimizations{})
            fail(Status::unsupported, "model '", name_.text, "': graph=, neighbors= and fused= are for native models");
        std::unique_ptr<python::Teacher> teacher = take_spare();
        if (!teacher) teacher = open();
        teacher->prepare({{"device", options.device.is_gpu() ? options.device.name() : "cpu"},
                          {"dtype", dtype_of(options.precision)},
                          {"head", options.head}});
        return std::make_unique<PythonEvaluator>(std::move(teacher));
    }

private:
    static const char* dtype_of(Precision precision) { return precision == Precision::fp32 ? "float32" : "float64"; }
    bool gives(const char* property) const {
        return std::find(properties_.begin(), properties_.end(), property) != properties_.end();
    }

    // What Python says comes from another process, in which any program may run: nothing of it is taken for granted.
    [[noreturn]] void refuse(const char* key) const {
        fail(Status::device, "model '", name_.text, "': Python describes it without a proper '", key, "', but says ",
             description_.dump());
    }
    const JsonValue& member(const char* key) const {
        const JsonValue* found = description_.find(key);
        if (!found) refuse(key);
        return *found;
    }
    const std::string& text(const char* key) const {
        if (!member(key).is_string()) refuse(key);
        return member(key).text();
    }
    double number(const char* key) const {
        if (!member(key).is_number() || !(member(key).number() >= 0)) refuse(key);
        return member(key).number();
    }
    int64_t whole_number(const char* key, int64_t largest) const {
        if (!member(key).is_number_unsigned() || member(key).unsigned_integer() > static_cast<uint64_t>(largest))
            refuse(key);
        return member(key).integer();
    }
    std::vector<std::string> texts(const char* key) const {
        std::vector<std::string> result;
        if (!member(key).is_array()) refuse(key);
        for (const JsonValue& one : member(key)) {
            if (!one.is_string()) refuse(key);
            result.push_back(one.text());
        }
        return result;
    }
    std::vector<int> elements() const {
        std::vector<int> result;
        if (member("elements").is_null()) {  // whatever the calculator takes
            result.resize(kMaxAtomicNumber);
            std::iota(result.begin(), result.end(), 1);
        } else if (!member("elements").is_array()) {
            refuse("elements");
        }
        for (const JsonValue& one : member("elements")) {
            if (!one.is_number_unsigned() || one.unsigned_integer() < 1 || one.unsigned_integer() > kMaxAtomicNumber)
                refuse("elements");
            result.push_back(static_cast<int>(one.integer()));
        }
        return result;
    }
    std::unique_ptr<python::Teacher> open() const {
        return name_.is_in_process ? python::open_in_process(name_, environment_)
                                   : python::open_in_worker(name_, environment_);
    }
    std::unique_ptr<python::Teacher> take_spare() const {
        const std::lock_guard lock(spare_mutex_);
        return std::move(spare_);
    }

    python::ModelName name_;
    std::filesystem::path environment_;
    mutable std::mutex spare_mutex_;
    mutable std::unique_ptr<python::Teacher> spare_;  // what was loaded to be described; the first session takes it
    JsonValue description_;
    ModelSummary summary_;
    bool has_precisions_ = false;
    std::vector<std::string> properties_;
    UsableGpus gpus_;
};

}  // namespace

std::shared_ptr<Model> make_python_model(const std::string& name) { return std::make_shared<PythonModel>(name); }

}  // namespace mlff
