// SPDX-License-Identifier: MIT
#include "formats/module_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "core/error.h"
#include "core/utf8.h"
#include "formats/little_endian.h"

namespace mlff {
namespace {

constexpr int kMaxDepth = 100;
constexpr size_t kMaxPathLength = 2000;
constexpr std::string_view kScriptPrefix = "__torch__.";
constexpr std::string_view kReduceGraphModule = "torch.fx.graph_module.reduce_graph_module";

bool ends_with(std::string_view text, std::string_view tail) {
    return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}
bool starts_with(std::string_view text, std::string_view head) { return text.substr(0, head.size()) == head; }

// Torch's own bookkeeping, meaningless outside Python.
bool is_bookkeeping(std::string_view key) {
    return key.find("_hook") != std::string_view::npos || key == "training" || key == "_non_persistent_buffers_set" ||
           key == "_modules" || key == "_parameters" || key == "_buffers" || key == "__codegen__";
}

// "__torch__.mace.modules.blocks.___torch_mangle_317.ProductBlock" -> "mace.modules.blocks.ProductBlock"
std::string plain_class_path(std::string_view path) {
    if (starts_with(path, kScriptPrefix)) path.remove_prefix(kScriptPrefix.size());
    std::string plain;
    while (!path.empty()) {
        const size_t dot = path.find('.');
        const std::string_view part = path.substr(0, dot);
        if (!starts_with(part, "___torch_mangle_")) plain += (plain.empty() ? "" : ".") + std::string(part);
        path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
    }
    return plain;
}

// An object with one member.
JsonValue named(std::string_view key, JsonValue value) {
    JsonValue result = JsonValue::Object();
    result[key] = std::move(value);
    return result;
}

JsonValue real_json(double value) {
    if (std::isfinite(value)) return value;
    return named("real", std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

class Builder {
public:
    Builder(TorchStorages& storages, const ModuleSources& sources, ValueBudget& budget, const std::string& name)
        : storages_(storages), sources_(sources), budget_(budget), name_(name) {}

    Module module(PickleValue value, const std::string& path, int depth) {
        enter(depth, path);
        spend_text(value.class_name(), path);
        Module result;
        const bool is_graph = value.class_name() == kReduceGraphModule;
        const bool is_script = starts_with(value.class_name(), kScriptPrefix);
        if (!is_utf8(value.class_name())) broken(path, "has a class whose name is not UTF-8 text");
        result.class_path = is_graph ? "torch.fx.graph_module.GraphModule" : plain_class_path(value.class_name());
        const PickleValue state = is_graph && value.arguments().size() > 0 ? value.arguments()[0] : value.state();
        if (is_script) {
            read_script_members(result, value.class_name(), state, path, depth);
        } else {
            read_members(result, state.get("_parameters"), path, depth, true);
            read_members(result, state.get("_buffers"), path, depth, false);
            read_members(result, state.get("_modules"), path, depth, false);
            read_generated_code(result, state.get("__codegen__"), path);
            if (!is_graph) read_attributes(result, state, path, depth);
        }
        check_names(result.tensors, path);
        check_names(result.children, path);
        return result;
    }

private:
    template <class... Parts>
    [[noreturn]] void broken(const std::string& path, const Parts&... parts) const {
        fail(Status::format, name_, ": '", path, "' ", parts...);
    }
    void enter(int depth, const std::string& path) {
        if (depth > kMaxDepth) broken(path, "is nested more than ", kMaxDepth, " levels deep");
        spend(1, path);
    }
    void spend(size_t count, const std::string& path) {
        if (!budget_.spend(count)) broken(path, "unfolds to more than ", ValueBudget::kLimit, " values");
    }
    // Rejects values that cannot fit the budget, before building any of them.
    void need_room(PickleValue value, const std::string& path) {
        if (!budget_.has(least_values(value, 0))) spend(ValueBudget::kLimit + 1, path);
    }
    // A lower bound on the number of values this one unfolds to: nested lists, each visited once however often it is
    // shared. A list that contains itself counts once.
    size_t least_values(PickleValue value, int depth) {
        if (!(value.is(PickleKind::list) || value.is(PickleKind::tuple) || value.is(PickleKind::dict)) ||
            value.size() == 0 || depth > kMaxDepth)
            return 1;
        const auto [known, is_new] = least_values_.try_emplace(value.id(), 1);
        if (!is_new) return known->second;
        size_t count = 1;
        for (size_t i = 0; i < value.size() && count <= ValueBudget::kLimit; ++i)
            count += least_values(value[i], depth + 1);
        return least_values_[value.id()] = count;
    }
    void spend_text(std::string_view text, const std::string& path) { spend(text.size() / 64, path); }

    std::string key_text(PickleValue key, const std::string& path) {
        spend_text(key.text(), path);
        if (!key.is(PickleKind::text) || !is_utf8(key.text()))
            broken(path, "has a member whose name is not UTF-8 text");
        return std::string(key.text());
    }
    std::string joined(const std::string& path, const std::string& name) const {
        if (path.size() + name.size() > kMaxPathLength) broken(path, "has a member whose name is too long");
        return path.empty() ? name : path + "." + name;
    }

    // A dotted path must lead to exactly one member.
    template <class Members>
    void check_names(const Members& members, const std::string& path) const {
        std::vector<std::string_view> names;
        for (const auto& [name, member] : members) {
            if (name.empty() || name.find('.') != std::string::npos) broken(path, "has a member called '", name, "'");
            names.push_back(name);
        }
        std::sort(names.begin(), names.end());
        const auto twice = std::adjacent_find(names.begin(), names.end());
        if (twice != names.end()) broken(path, "has two members called '", *twice, "'");
    }

    // One member of a module: a tensor, a module, or a plain value.
    void add_member(Module& target, const std::string& key, PickleValue value, const std::string& path, int depth) {
        const std::string full = joined(path, key);
        spend(value.state().size() / 2, full);  // is_module visits all of them
        need_room(value, full);
        if (auto tensor = storages_.tensor(value, full)) {
            enter(depth, full);
            target.tensors.emplace_back(key, std::move(*tensor));
        } else if (is_module(value)) {
            target.children.emplace_back(key, module(value, full, depth + 1));
        } else if (!is_bookkeeping(key)) {
            JsonValue attribute = json(value, full, depth + 1);
            if (key.find("irreps") != std::string::npos) attribute = irreps_from_tuples(std::move(attribute));
            target.attributes[key] = std::move(attribute);
        }
    }

    // TorchScript stores Irreps as tuples: ((8, (0, 1)), (8, (1, -1))).
    static JsonValue irreps_from_tuples(JsonValue value) {
        if (!value.is_array()) return value;
        std::string text;
        for (const JsonValue& term : value) {
            if (!term.is_array() || term.size() != 2 || !term[0].is_number_integer() || !term[1].is_array() ||
                term[1].size() != 2 || !term[1][0].is_number_integer() || !term[1][1].is_number_integer())
                return value;
            text += (text.empty() ? "" : "+") + std::to_string(term[0].integer()) + "x" +
                    irrep_text(term[1][0].integer(), term[1][1].integer());
        }
        return text;
    }

    void read_members(Module& target, PickleValue dict, const std::string& path, int depth, bool are_parameters) {
        if (!dict.is(PickleKind::dict)) return;
        spend(dict.size() / 2, path);
        for (size_t i = 0; i + 1 < dict.size(); i += 2) {
            if (dict[i + 1].is_none()) continue;  // a registered tensor or module that is None
            const size_t tensors_before = target.tensors.size();
            add_member(target, key_text(dict[i], path), dict[i + 1], path, depth);
            if (target.tensors.size() > tensors_before) target.tensors.back().second.is_parameter = are_parameters;
        }
    }

    void read_attributes(Module& target, PickleValue state, const std::string& path, int depth) {
        if (!state.is(PickleKind::dict)) return;
        spend(state.size() / 2, path);
        for (size_t i = 0; i + 1 < state.size(); i += 2) {
            const std::string key = key_text(state[i], path);
            if (!is_bookkeeping(key)) add_member(target, key, state[i + 1], path, depth);
        }
    }

    // e3nn stores its compiled tensor products as archives inside the archive. Their buffers (Wigner 3j symbols in the
    // file's precision) affect the results; their code does not.
    void read_generated_code(Module& target, PickleValue generated, const std::string& path) {
        if (!generated.is(PickleKind::dict) || !sources_.open_nested) return;
        for (size_t i = 0; i + 1 < generated.size(); i += 2)
            if (generated[i].is(PickleKind::text) && generated[i + 1].is(PickleKind::bytes)) {
                spend_text(generated[i + 1].text(), path);
                enter(0, path);
                Module nested = sources_.open_nested(generated[i + 1].text());
                if (!nested.tensors.empty() || !nested.children.empty())
                    target.children.emplace_back(key_text(generated[i], path), std::move(nested));
            }
    }

    // TorchScript data do not distinguish parameters from buffers, nor name the activation function. The source text
    // next to the data does, so it is searched for these lines.
    void read_script_members(Module& target, std::string_view class_path, PickleValue state, const std::string& path,
                             int depth) {
        spend(state.size() / 2, path);
        if (state.is(PickleKind::dict))
            for (size_t i = 0; i + 1 < state.size(); i += 2)
                if (!state[i + 1].is_none()) add_member(target, key_text(state[i], path), state[i + 1], path, depth);
        if (starts_with(target.class_path, "torch.fx.")) target.attributes = JsonValue::Object();  // generated code
        const std::string_view source =
            sources_.script_source ? sources_.script_source(class_path) : std::string_view();
        spend_text(source, path);
        const size_t at = source.find("__parameters__ = [");
        const std::string_view names = at == std::string_view::npos ? "" : source.substr(at, source.find(']', at) - at);
        for (auto& [name, tensor] : target.tensors)
            tensor.is_parameter = names.find("\"" + name + "\"") != std::string_view::npos;
        if (target.class_path == "e3nn.math._normalize_activation.normalize2mom")
            for (std::string_view function : {"silu", "tanh", "sigmoid", "abs"})
                if (source.find("torch." + std::string(function) + "(") != std::string_view::npos)
                    target.attributes["f"] = named("function", "torch.nn.functional." + std::string(function));
    }

    // ---- plain values ----
    JsonValue array(PickleValue values, const std::string& path, int depth) {
        JsonValue result = JsonValue::Array();
        for (size_t i = 0; i < values.size(); ++i) result.push_back(json(values[i], path, depth + 1));
        return result;
    }
    JsonValue dict(PickleValue values, const std::string& path, int depth) {
        bool has_text_keys = true;
        for (size_t i = 0; i < values.size(); i += 2) has_text_keys &= values[i].is(PickleKind::text);
        if (!has_text_keys) return named("entries", array(values, path, depth));
        JsonValue result = JsonValue::Object();
        for (size_t i = 0; i + 1 < values.size(); i += 2) {
            const std::string key = key_text(values[i], path);
            result[key] = json(values[i + 1], joined(path, key), depth + 1);
        }
        return result;
    }

    static std::string irrep_text(int64_t degree, int64_t parity) {
        return std::to_string(degree) + (parity > 0 ? "e" : "o");
    }

    // e3nn: Irreps((_MulIr((mul, Irrep((l, p)))), ...)); the argument tuple may be wrapped once more.
    static PickleValue unwrapped(PickleValue object) {
        const PickleValue arguments = object.arguments();
        return arguments.size() == 1 && arguments[0].is(PickleKind::tuple) ? arguments[0] : arguments;
    }
    JsonValue irreps(PickleValue value, const std::string& path) {
        std::string text;
        const PickleValue terms = unwrapped(value);
        spend(terms.size(), path);
        if (const auto known = irreps_texts_.find(value.id()); known != irreps_texts_.end()) return known->second;
        for (size_t i = 0; i < terms.size(); ++i) {
            const PickleValue term = unwrapped(terms[i]);
            const PickleValue irrep = term.size() == 2 ? unwrapped(term[1]) : term;
            if (term.size() != 2 || irrep.size() != 2 || !term[0].is(PickleKind::integer) ||
                !irrep[0].is(PickleKind::integer) || !irrep[1].is(PickleKind::integer))
                broken(path, "holds malformed irreps");
            text += (i ? "+" : "") + std::to_string(term[0].integer()) + "x" +
                    irrep_text(irrep[0].integer(), irrep[1].integer());
        }
        irreps_texts_[value.id()] = text;
        return text;
    }
    JsonValue cue_irreps(PickleValue value, const std::string& path) {
        std::string text;
        const PickleValue terms = value.state().get("_mulirreps");
        for (size_t i = 0; i < terms.size(); ++i) {
            const PickleValue term = terms[i].state(), irrep = term.get("ir").state();
            spend(1 + term.size() + irrep.size(), path);
            if (!term.get("mul").is(PickleKind::integer) || !irrep.get("l").is(PickleKind::integer) ||
                !irrep.get("p").is(PickleKind::integer))
                broken(path, "holds malformed irreps");
            text += (i ? "+" : "") + std::to_string(term.get("mul").integer()) + "x" +
                    irrep_text(irrep.get("l").integer(), irrep.get("p").integer());
        }
        return text;
    }

    // numpy: dtype("<f8" or "f8"), scalar(dtype, bytes), _reconstruct(...) with state (version, shape, dtype, fortran,
    // bytes).
    std::optional<DType> numpy_dtype(PickleValue dtype) {
        if (dtype.arguments().size() < 1 || !dtype.arguments()[0].is(PickleKind::text)) return std::nullopt;
        std::string_view code = dtype.arguments()[0].text();
        if (!code.empty() && (code[0] == '<' || code[0] == '|' || code[0] == '=')) code.remove_prefix(1);
        constexpr std::array<std::pair<std::string_view, DType>, 7> kCodes = {{{"f8", DType::float64},
                                                                               {"f4", DType::float32},
                                                                               {"i8", DType::int64},
                                                                               {"i4", DType::int32},
                                                                               {"i2", DType::int16},
                                                                               {"i1", DType::int8},
                                                                               {"b1", DType::boolean}}};
        for (const auto& [name, value] : kCodes)
            if (code == name) return value;
        return std::nullopt;
    }
    JsonValue numbers(const Tensor& tensor, const std::string& path) {
        JsonValue result = JsonValue::Array();
        spend(static_cast<size_t>(tensor.element_count()), path);
        if (is_floating(tensor.dtype))
            for (double value : tensor.to_doubles()) result.push_back(real_json(value));
        else
            for (int64_t value : tensor.to_integers()) result.push_back(value);
        return result;
    }
    JsonValue numpy_array(PickleValue value, const std::string& path) {
        const PickleValue state = value.state();
        if (!state.is(PickleKind::tuple) || state.size() != 5 || !state[4].is(PickleKind::bytes) ||
            !state[1].is(PickleKind::tuple))
            broken(path, "holds a malformed numpy array");
        const auto dtype = numpy_dtype(state[2]);
        std::vector<int64_t> shape;
        for (size_t i = 0; i < state[1].size(); ++i) shape.push_back(state[1][i].integer());
        if (!dtype) broken(path, "holds a numpy array of a type that mlff does not read");
        std::vector<int64_t> strides = row_major_strides(shape);
        if (state[3].boolean()) {  // Fortran order
            strides = row_major_strides({shape.rbegin(), shape.rend()});
            strides = {strides.rbegin(), strides.rend()};
        }
        const Tensor tensor =
            make_tensor(*dtype, shape, strides, 0, as_bytes(state[4].text()), concat(name_, ": '", path, "'"));
        JsonValue result = named("array", numbers(tensor, path));
        result["shape"] = shape;
        return result;
    }
    JsonValue numpy_scalar(PickleValue value, const std::string& path) {
        const PickleValue arguments = value.arguments();
        const auto dtype = arguments.size() == 2 ? numpy_dtype(arguments[0]) : std::nullopt;
        if (!dtype || !arguments[1].is(PickleKind::bytes)) broken(path, "holds a malformed numpy number");
        return numbers(make_tensor(*dtype, {}, {}, 0, as_bytes(arguments[1].text()), concat(name_, ": '", path, "'")),
                       path)
            .array()
            .front();
    }
    static Bytes as_bytes(std::string_view text) {
        return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
    }

    JsonValue object(PickleValue value, const std::string& path, int depth) {
        const std::string_view name = value.class_name();
        const PickleValue arguments = value.arguments();
        spend_text(name, path);
        if (auto tensor = storages_.tensor(value, path)) {
            JsonValue result = named("tensor", numbers(*tensor, path));
            result["shape"] = tensor->shape;
            result["dtype"] = dtype_name(tensor->dtype);
            return result;
        }
        if (ends_with(name, ".Irreps")) spend(value.state().size(), path);
        if (ends_with(name, ".Irreps") && value.state().get("_mulirreps").is_none()) return irreps(value, path);
        if (ends_with(name, ".Irreps")) return cue_irreps(value, path);
        if (ends_with(name, "multiarray.scalar")) return numpy_scalar(value, path);
        if (ends_with(name, "multiarray._reconstruct")) return numpy_array(value, path);
        if ((name == "__builtin__.getattr" || name == "builtins.getattr") && arguments.size() == 2 &&
            arguments[1].is(PickleKind::text))
            return named("function", "torch." + key_text(arguments[1], path));
        if (name == "torch.jit._pickle.restore_type_tag" || starts_with(name, "torch.jit._pickle.build_") ||
            name == "torch.Size")
            return arguments.size() > 0 ? json(arguments[0], path, depth + 1) : JsonValue();
        if (!is_utf8(name)) broken(path, "has a class whose name is not UTF-8 text");
        JsonValue result = named("class", plain_class_path(name));
        if (arguments.size() > 0) result["arguments"] = array(arguments, path, depth);
        if (!value.state().is_none()) result["state"] = json(value.state(), path, depth + 1);
        if (value.size() > 0) result["items"] = array(value, path, depth);
        return result;
    }

    JsonValue json(PickleValue value, const std::string& path, int depth) {
        enter(depth, path);
        switch (value.kind()) {
            case PickleKind::none: return nullptr;
            case PickleKind::boolean: return value.boolean();
            case PickleKind::integer: return value.integer();
            case PickleKind::real: return real_json(value.real());
            case PickleKind::text: return key_text(value, path);
            case PickleKind::bytes: return named("bytes", value.text().size());
            case PickleKind::tuple:
            case PickleKind::list:
            case PickleKind::set: return array(value, path, depth);
            case PickleKind::dict: return dict(value, path, depth);
            case PickleKind::global:
                spend_text(value.text(), path);
                if (!is_utf8(value.text())) broken(path, "holds a name that is not UTF-8 text");
                return named("function", value.text());
            case PickleKind::object: return object(value, path, depth);
            case PickleKind::persistent: return named("storage", nullptr);
        }
        return nullptr;
    }

    TorchStorages& storages_;
    const ModuleSources& sources_;
    ValueBudget& budget_;
    const std::string& name_;
    std::unordered_map<PickleId, size_t> least_values_;       // for containers
    std::unordered_map<PickleId, std::string> irreps_texts_;  // for objects, which may be shared
};

}  // namespace

bool is_module(PickleValue value) {
    if (!value.is(PickleKind::object)) return false;
    const std::string_view name = value.class_name();
    if (starts_with(name, kScriptPrefix) || name == kReduceGraphModule) return true;
    return value.state().has("_modules") && value.state().has("_parameters");
}

Module build_module(PickleValue value, TorchStorages& storages, const ModuleSources& sources, ValueBudget& budget,
                    const std::string& name_for_errors) {
    return Builder(storages, sources, budget, name_for_errors).module(value, "", 0);
}

}  // namespace mlff
