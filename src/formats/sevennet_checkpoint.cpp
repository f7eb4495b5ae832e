// SPDX-License-Identifier: MIT
#include "formats/sevennet_checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/utf8.h"

namespace mlff {
namespace {

constexpr int kMaxStateDepth = 100;
constexpr size_t kMaxStateNameLength = 2000;

// Calls whose results may be among the settings. None of them is a number that the model depends on.
constexpr std::array<std::string_view, 4> kIgnoredCalls = {"torch.device", "torch._utils._rebuild_tensor_v2",
                                                           "numpy.core.multiarray._reconstruct",
                                                           "numpy._core.multiarray._reconstruct"};

class CheckpointBuilder {
public:
    CheckpointBuilder(TorchStorages& storages, ValueBudget& budget, const std::string& name)
        : storages_(storages), budget_(budget), name_(name) {}

    Module build(PickleValue root) {
        Module result;
        result.class_path = kSevenNetClass;
        result.attributes["config"] = json(root.get("config"), "config", 0);
        const PickleValue state = root.get("model_state_dict");
        if (!state.is(PickleKind::dict)) broken("model_state_dict", "is not a state dict");
        for (size_t i = 0; i + 1 < state.size(); i += 2) add_tensor(result, state[i], state[i + 1]);
        check_names(result);
        return result;
    }

private:
    template <class... Parts>
    [[noreturn]] void broken(std::string_view where, const Parts&... parts) const {
        fail(Status::format, name_, ": '", where, "' ", parts...);
    }
    void spend(size_t count, std::string_view where) {
        if (!budget_.spend(count)) broken(where, "unfolds to more than ", ValueBudget::kLimit, " values");
    }
    std::string text(PickleValue value, std::string_view where) {
        spend(1 + value.text().size() / 64, where);
        if (!is_utf8(value.text())) broken(where, "holds text that is not UTF-8");
        return std::string(value.text());
    }
    [[noreturn]] void refuse(std::string_view where, std::string_view what) const {
        fail(Status::unsupported, name_, ": '", where, "' holds ", what.empty() ? "an object" : what,
             ", which checkpoints of SevenNet do not have");
    }

    // ---- settings ----
    std::string key_text(PickleValue key, std::string_view where) {
        if (key.is(PickleKind::integer)) return std::to_string(key.integer());
        if (!key.is(PickleKind::text)) broken(where, "has a key that is neither text nor a whole number");
        return text(key, where);
    }
    JsonValue dict(PickleValue values, const std::string& where, int depth) {
        JsonValue result = JsonValue::Object();
        for (size_t i = 0; i + 1 < values.size(); i += 2) {
            const std::string key = key_text(values[i], where);
            if (result.contains(key)) broken(where, "has the key '", key, "' twice");
            result[key] = json(values[i + 1], concat("config: ", key), depth + 1);
        }
        return result;
    }
    JsonValue json(PickleValue value, const std::string& where, int depth) {
        if (depth > kMaxStateDepth) broken(where, "is nested more than ", kMaxStateDepth, " levels deep");
        spend(1, where);
        switch (value.kind()) {
            case PickleKind::boolean: return value.boolean();
            case PickleKind::integer: return value.integer();
            case PickleKind::real: return std::isfinite(value.real()) ? JsonValue(value.real()) : JsonValue();
            case PickleKind::text: return text(value, where);
            case PickleKind::dict: return dict(value, where, depth);
            case PickleKind::tuple:
            case PickleKind::list: {
                JsonValue result = JsonValue::Array();
                for (size_t i = 0; i < value.size(); ++i) result.push_back(json(value[i], where, depth + 1));
                return result;
            }
            case PickleKind::object:
                if (std::find(kIgnoredCalls.begin(), kIgnoredCalls.end(), value.class_name()) == kIgnoredCalls.end())
                    refuse(where, value.class_name());
                return nullptr;
            case PickleKind::global: refuse(where, value.text());
            case PickleKind::persistent: refuse(where, "a storage");
            case PickleKind::none:
            case PickleKind::set:
            case PickleKind::bytes: break;
        }
        return nullptr;
    }

    // ---- tensors ----
    // "0_convolution.weight_nn.layer0.weight" becomes the tensor "weight" of the module "0_convolution.weight_nn.
    // layer0".
    void add_tensor(Module& root, PickleValue key, PickleValue value) {
        if (!key.is(PickleKind::text) || key.text().size() > kMaxStateNameLength)
            broken("model_state_dict", "has a name that is not text or too long");
        const std::string name = text(key, "model_state_dict");
        if (std::count(name.begin(), name.end(), '.') > kMaxStateDepth)
            broken(name, "is nested more than ", kMaxStateDepth, " levels deep");
        if (value.class_name() != "torch._utils._rebuild_tensor_v2")
            refuse(name, value.is(PickleKind::object) ? value.class_name() : "something that is not a tensor");
        Module* owner = &root;
        std::string_view rest = name;
        for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
            owner = &child(*owner, rest.substr(0, dot), name);
            rest.remove_prefix(dot + 1);
        }
        Tensor tensor = *storages_.tensor(value, name);
        if (tensor.dtype != DType::float32 && tensor.dtype != DType::float64)
            fail(Status::unsupported, name_, ": tensor '", name, "' has type ", dtype_name(tensor.dtype),
                 ", expected float32 or float64");
        tensor.is_parameter = true;  // a state dict does not say which ones are not
        owner->tensors.emplace_back(rest, std::move(tensor));
    }
    Module& child(Module& owner, std::string_view name, std::string_view where) {
        spend(1 + owner.children.size() / 16, where);
        for (auto& [known, module] : owner.children)
            if (known == name) return module;
        return owner.children.emplace_back(name, Module()).second;
    }

    template <class Members>
    void expect_distinct(const Members& members) const {
        std::vector<std::string_view> names;
        for (const auto& [name, member] : members) {
            if (name.empty()) broken("model_state_dict", "has a name with an empty part");
            names.push_back(name);
        }
        std::sort(names.begin(), names.end());
        const auto twice = std::adjacent_find(names.begin(), names.end());
        if (twice != names.end()) broken("model_state_dict", "has two tensors whose names end with '", *twice, "'");
    }
    void check_names(const Module& module) const {
        expect_distinct(module.tensors);
        expect_distinct(module.children);
        for (const auto& [name, part] : module.children) check_names(part);
    }

    TorchStorages& storages_;
    ValueBudget& budget_;
    const std::string& name_;
};

}  // namespace

bool is_sevennet_checkpoint(PickleValue root) { return root.has("model_state_dict") && root.has("config"); }

Module build_sevennet_checkpoint(PickleValue root, TorchStorages& storages, ValueBudget& budget,
                                 const std::string& name_for_errors) {
    return CheckpointBuilder(storages, budget, name_for_errors).build(root);
}

}  // namespace mlff
