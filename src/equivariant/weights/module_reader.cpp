// SPDX-License-Identifier: MIT
#include "equivariant/weights/module_reader.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace mlff {
namespace {

// A tensor whose strides repeat its elements can claim any size; real models have few and small ones.
constexpr int64_t kMaxRepeatedElements = int64_t{1} << 20;

constexpr double kLargestSize = 1e30;  // of any number: it and products of a few must fit a float

// The bytes of all storages, each counted once.
void collect_storages(const Module& module, std::set<std::pair<const std::byte*, size_t>>& storages) {
    for (const auto& [name, tensor] : module.tensors) storages.emplace(tensor.storage.data(), tensor.storage.size());
    for (const auto& [name, child] : module.children) collect_storages(child, storages);
}

bool is_stored_in_full(const Tensor& tensor) {
    const auto stored = static_cast<int64_t>(tensor.storage.size() / dtype_size(tensor.dtype));
    return tensor.element_count() <= std::max(stored, kMaxRepeatedElements);
}

// Irreps in a TorchScript archive: ((mul, (l, p)), ...)
std::optional<Irreps> irreps_of_list(const JsonValue& list) {
    Irreps result;
    for (const JsonValue& block : list) {
        if (!block.is_array() || block.size() != 2 || !block[1].is_array() || block[1].size() != 2) return std::nullopt;
        const auto multiplicity = json_integer(block[0], 0, 1 << 16);
        const auto degree = json_integer(block[1][0], 0, kMaxDegree);
        const auto parity = json_integer(block[1][1], -1, 1);
        if (!multiplicity || !degree || !parity || *parity == 0) return std::nullopt;
        result.append(*multiplicity, {*degree, *parity});
    }
    return result;
}

}  // namespace

LoadBudget::LoadBudget(const Module& root) {
    std::set<std::pair<const std::byte*, size_t>> storages;
    collect_storages(root, storages);
    for (const auto& [data, size] : storages) {
        numbers_left_ += static_cast<int64_t>(size);
        terms_left_ += static_cast<int64_t>(size / 4);
    }
}

std::optional<int> json_integer(const JsonValue& value, int smallest, int largest) {
    if (!value.is_number()) return std::nullopt;
    const double number = value.number();
    if (!(number >= smallest && number <= largest) || number != std::floor(number)) return std::nullopt;
    return static_cast<int>(number);
}

std::string ModuleReader::joined(std::string_view name) const {
    return path_.empty() ? std::string(name) : concat(path_, ".", name);
}

std::optional<ModuleReader> ModuleReader::find(std::string_view child) const {
    const Module* found = module_->find(child);
    if (!found) return std::nullopt;
    return ModuleReader(*found, joined(child), *budget_);
}

ModuleReader ModuleReader::at(std::string_view child) const {
    const auto found = find(child);
    if (!found) malformed("has no module '", child, "'");
    return *found;
}

std::vector<ModuleReader> ModuleReader::children() const {
    std::vector<ModuleReader> result;
    for (const auto& [name, child] : module_->children) result.emplace_back(child, joined(name), *budget_);
    return result;
}

void ModuleReader::expect_children(std::initializer_list<std::string_view> known) const {
    for (const auto& [name, child] : module_->children)
        if (std::find(known.begin(), known.end(), name) == known.end())
            unsupported("the part '", name, "' (", child.class_name(), ") of ", class_name(), " is not implemented");
}

const Tensor& ModuleReader::tensor(std::string_view name) const {
    const Tensor* found = module_->find_tensor(name);
    if (!found) malformed("has no tensor '", name, "'");
    if (!is_stored_in_full(*found))
        malformed("tensor '", name, "' ", shape_text(found->shape), " is larger than the numbers stored for it");
    return *found;
}

std::vector<double> ModuleReader::values(std::string_view name) const {
    const Tensor& found = tensor(name);
    if (found.dtype == DType::complex64 || found.dtype == DType::complex128)
        malformed("tensor '", name, "' has complex numbers");
    take_numbers(found.element_count());
    std::vector<double> result = found.to_doubles();
    for (size_t i = 0; i < result.size(); ++i)
        if (!(std::abs(result[i]) <= kLargestSize))
            malformed("tensor '", name, "' holds ", result[i], " at index ", i, ", which is not finite or too large");
    return result;
}

void ModuleReader::take_numbers(int64_t count) const {
    if (!budget_->take_numbers(count)) malformed("the model expands to far more numbers than the file stores");
}

void ModuleReader::take_terms(int64_t count) const {
    if (!budget_->take_terms(count))
        malformed("the contractions expand to far more terms than the file stores numbers");
}

std::vector<double> ModuleReader::values(std::string_view name, const std::vector<int64_t>& shape) const {
    const Tensor& found = tensor(name);
    if (found.shape != shape)
        malformed("tensor '", name, "' has shape ", shape_text(found.shape), ", expected ", shape_text(shape));
    return values(name);
}

const JsonValue* ModuleReader::attribute(std::string_view name) const {
    const JsonValue* found = module_->find_attribute(name);
    return found && !found->is_null() ? found : nullptr;
}

std::optional<double> ModuleReader::find_number(std::string_view name) const {
    if (has_tensor(name)) {
        const std::vector<double> found = values(name);
        if (found.size() != 1) malformed("tensor '", name, "' has ", found.size(), " elements, expected one");
        return found[0];
    }
    const JsonValue* found = attribute(name);
    if (!found) return std::nullopt;
    if (!found->is_number() || !std::isfinite(found->number())) malformed("'", name, "' is not a finite number");
    return found->number();
}

double ModuleReader::number(std::string_view name) const {
    const auto found = find_number(name);
    if (!found) malformed("has no number '", name, "'");
    return *found;
}

double ModuleReader::positive(std::string_view name) const {
    const double found = number(name);
    if (!(found > 0)) malformed("'", name, "' is ", found, ", expected a positive number");
    return found;
}

int ModuleReader::integer(std::string_view name, int smallest, int largest) const {
    const double found = number(name);
    if (!(found >= smallest && found <= largest) || found != std::floor(found))
        malformed("'", name, "' is ", found, ", expected a whole number from ", smallest, " to ", largest);
    return static_cast<int>(found);
}

bool ModuleReader::flag(std::string_view name, bool if_absent) const {
    const JsonValue* found = attribute(name);
    if (!found) return if_absent;
    if (!found->is_boolean()) malformed("'", name, "' is neither true nor false");
    return found->boolean();
}

Irreps ModuleReader::irreps(std::string_view name) const {
    const JsonValue* found = attribute(name);
    if (!found) malformed("has no irreps '", name, "'");
    try {
        if (found->is_string()) return Irreps::parse(found->text());
        if (found->is_array())
            if (const auto result = irreps_of_list(*found)) return *result;
    } catch (const Error& error) {
        malformed("'", name, "': ", error.what());
    }
    malformed("'", name, "' is not a list of irreps");
}

}  // namespace mlff
