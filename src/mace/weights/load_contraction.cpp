// SPDX-License-Identifier: MIT
// Loads the symmetric contraction as one sparse polynomial, from dense U tensors (MACE) or from lists of paths
// (cuequivariance).
#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "mace/weights/loaders.h"

namespace mlff::mace {
namespace {

using Term = SymmetricContraction::Term;

constexpr int64_t kMaxElements = int64_t{1} << 26;  // per tensor

struct RowTerm {
    int out_row;
    Term term;
};

// Every block must have the same number of copies (channels). A row is one component of all channels.
int count_rows(const ModuleReader& reader, const Irreps& irreps, int channel_count) {
    int rows = 0;
    for (const IrrepBlock& block : irreps.blocks()) {
        if (block.multiplicity != channel_count)
            reader.unsupported("irreps '", irreps.text(), "' with different multiplicities");
        rows += block.irrep.dimension();
    }
    return rows;
}

// Sorts the factors of a term and adds it; the order of factors does not matter.
void add_term(std::vector<RowTerm>& terms, int out_row, Term term) {
    for (size_t i = 1; i < static_cast<size_t>(term.order); ++i)
        for (size_t j = i; j > 0 && term.rows[j] < term.rows[j - 1]; --j) std::swap(term.rows[j], term.rows[j - 1]);
    terms.push_back({out_row, term});
}

auto sort_key(const RowTerm& t) { return std::tuple(t.out_row, t.term.order, t.term.rows, t.term.path); }

// Sorts the terms, and merges those that differ only in the coefficient.
void store_terms(SymmetricContraction& contraction, std::vector<RowTerm> terms) {
    std::sort(terms.begin(), terms.end(), [](const RowTerm& a, const RowTerm& b) { return sort_key(a) < sort_key(b); });
    contraction.first_term.assign(static_cast<size_t>(contraction.out_row_count) + 1, 0);
    for (size_t i = 0; i < terms.size();) {
        RowTerm joined = terms[i];
        for (++i; i < terms.size() && sort_key(terms[i]) == sort_key(joined); ++i)
            joined.term.coefficient += terms[i].term.coefficient;
        if (joined.term.coefficient == 0) continue;
        contraction.terms.push_back(joined.term);
        ++contraction.first_term[static_cast<size_t>(joined.out_row) + 1];
    }
    for (size_t row = 1; row < contraction.first_term.size(); ++row)
        contraction.first_term[row] += contraction.first_term[row - 1];
}

// Weights of one order for one output irrep: [elements or 1][paths][channels]
void append_paths(const ModuleReader& reader, const Tensor& tensor, const std::vector<double>& values,
                  int64_t path_count, SymmetricContraction& contraction, std::vector<std::vector<double>>& by_element) {
    const std::vector<int64_t> expected = {contraction.element_count, path_count, contraction.channel_count};
    if (tensor.shape != expected)
        reader.malformed("weights have shape ", shape_text(tensor.shape), ", expected ", shape_text(expected));
    const auto size = static_cast<size_t>(path_count * contraction.channel_count);
    for (size_t z = 0; z < by_element.size(); ++z)
        by_element[z].insert(by_element[z].end(), values.begin() + static_cast<std::ptrdiff_t>(z * size),
                             values.begin() + static_cast<std::ptrdiff_t>((z + 1) * size));
    contraction.path_count += static_cast<int>(path_count);
}

// U[M, i1, ..., i_order, k]; the M axis is absent for scalars. Returns the number of paths k.
int64_t add_dense_terms(const ModuleReader& reader, int order, const SymmetricContraction& contraction,
                        const IrrepBlock& out, int first_out_row, std::vector<RowTerm>& terms) {
    const std::string name = concat("U_matrix_", order);
    const Tensor& tensor = reader.tensor(name);
    std::vector<int64_t> shape = tensor.shape;
    if (shape.size() == static_cast<size_t>(order) + 1 && out.irrep.degree == 0) shape.insert(shape.begin(), 1);
    bool fits = shape.size() == static_cast<size_t>(order) + 2 && shape[0] == out.irrep.dimension();
    for (int i = 1; fits && i <= order; ++i) fits = shape[static_cast<size_t>(i)] == contraction.in_row_count;
    if (!fits || tensor.element_count() > kMaxElements)
        reader.malformed("tensor '", name, "' has shape ", shape_text(tensor.shape), ", which does not fit ",
                         contraction.in.text());
    const int64_t path_count = shape.back();
    const std::vector<double> values = reader.values(name);
    for (size_t index = 0; index < values.size(); ++index) {
        if (values[index] == 0) continue;
        reader.take_terms(1);
        auto rest = static_cast<int64_t>(index);
        Term term;
        term.order = order;
        term.coefficient = values[index];
        term.path = contraction.path_count + static_cast<int>(rest % path_count);
        rest /= path_count;
        for (int i = order - 1; i >= 0; --i) {
            term.rows[static_cast<size_t>(i)] = static_cast<int>(rest % contraction.in_row_count);
            rest /= contraction.in_row_count;
        }
        add_term(terms, first_out_row + static_cast<int>(rest), term);
    }
    return path_count;
}

void load_dense(const ModuleReader& reader, SymmetricContraction& contraction) {
    const std::vector<ModuleReader> parts = reader.at("contractions").children();
    if (parts.size() != static_cast<size_t>(contraction.out.block_count()) || parts.empty())
        reader.malformed(parts.size(), " contractions for irreps '", contraction.out.text(), "'");
    const Tensor& first_weights = parts[0].tensor("weights_max");
    if (first_weights.shape.size() == 3 && first_weights.shape[0] == 1) contraction.element_count = 1;
    std::vector<std::vector<double>> by_element(static_cast<size_t>(contraction.element_count));
    std::vector<RowTerm> terms;
    int out_row = 0;
    for (size_t part = 0; part < parts.size(); ++part) {
        const ModuleReader& child = parts[part];
        if (!child.is("Contraction")) child.unsupported("class ", child.class_name(), " is not implemented");
        const int correlation = child.integer("correlation", 1, 1 << 20);
        if (correlation > kMaxCorrelation)
            child.unsupported("correlation ", correlation, " is not implemented; the largest is ", kMaxCorrelation);
        const IrrepBlock& out = contraction.out[static_cast<int>(part)];
        for (int order = 1; order <= correlation; ++order) {
            const int64_t path_count = add_dense_terms(child, order, contraction, out, out_row, terms);
            const bool is_max = order == correlation;
            const ModuleReader holder = is_max ? child : child.at("weights");
            const std::string name = is_max ? "weights_max" : std::to_string(correlation - 1 - order);
            append_paths(holder, holder.tensor(name), holder.values(name), path_count, contraction, by_element);
        }
        out_row += out.irrep.dimension();
    }
    for (const std::vector<double>& weights : by_element)
        contraction.weights.insert(contraction.weights.end(), weights.begin(), weights.end());
    store_terms(contraction, std::move(terms));
}

const JsonValue* find_key(const JsonValue* json, const char* key) { return json ? json->find(key) : nullptr; }

const JsonValue* find_state(const JsonValue* json, const char* key) { return find_key(find_key(json, "state"), key); }

// One path of a segmented polynomial: indices (weight, row, ..., row, output row) and one coefficient.
void add_sparse_term(const ModuleReader& reader, const JsonValue& path, const SymmetricContraction& contraction,
                     std::vector<RowTerm>& terms) {
    const JsonValue* indices = find_state(&path, "indices");
    const JsonValue* array = find_key(find_state(&path, "coefficients"), "array");
    if (!indices || !indices->is_array() || indices->size() < 3 || !array || !array->is_array() || array->size() != 1 ||
        !(*array)[0].is_number())
        reader.malformed("a path of the polynomial lacks its indices or its coefficient");
    Term term;
    term.order = static_cast<int>(indices->size()) - 2;
    if (term.order > kMaxCorrelation)
        reader.unsupported("correlation ", term.order, " is not implemented; the largest is ", kMaxCorrelation);
    term.coefficient = (*array)[0].number();
    const auto weight = json_integer((*indices)[0], 0, contraction.path_count - 1);
    const auto out_row = json_integer((*indices)[indices->size() - 1], 0, contraction.out_row_count - 1);
    bool fits = weight && out_row && std::isfinite(term.coefficient);
    for (int i = 0; fits && i < term.order; ++i) {
        const auto row = json_integer((*indices)[static_cast<size_t>(i) + 1], 0, contraction.in_row_count - 1);
        fits = row.has_value();
        if (fits) term.rows[static_cast<size_t>(i)] = *row;
    }
    if (!fits) reader.malformed("a path of the polynomial has an index outside its operands");
    reader.take_terms(1);
    term.path = *weight;
    add_term(terms, *out_row, term);
}

// Weights [elements or 1][a][channels], multiplied by projection [a][paths] if the file has one.
void load_sparse_weights(const ModuleReader& reader, SymmetricContraction& contraction) {
    const Tensor& tensor = reader.tensor("weight");
    const bool fits = tensor.shape.size() == 3 &&
                      (tensor.shape[0] == 1 || tensor.shape[0] == contraction.element_count) && tensor.shape[1] >= 1 &&
                      tensor.shape[1] <= 1 << 20 && tensor.shape[2] == contraction.channel_count;
    if (!fits) reader.malformed("tensor 'weight' has shape ", shape_text(tensor.shape));
    contraction.element_count = static_cast<int>(tensor.shape[0]);
    contraction.path_count = static_cast<int>(tensor.shape[1]);
    contraction.weights = reader.values("weight");
    if (!reader.has_tensor("projection")) return;

    const Tensor& projection = reader.tensor("projection");
    if (projection.shape.size() != 2 || projection.shape[0] != contraction.path_count || projection.shape[1] < 1 ||
        projection.shape[1] > 1 << 20)
        reader.malformed("tensor 'projection' has shape ", shape_text(projection.shape));
    const std::vector<double> matrix = reader.values("projection");
    const std::vector<double> before = std::move(contraction.weights);
    const auto in_count = static_cast<size_t>(contraction.path_count);
    const auto out_count = static_cast<size_t>(projection.shape[1]);
    const auto channels = static_cast<size_t>(contraction.channel_count);
    const auto elements = static_cast<size_t>(contraction.element_count);
    reader.take_numbers(static_cast<int64_t>(elements * out_count * channels));
    contraction.weights.assign(elements * out_count * channels, 0.0);
    for (size_t z = 0; z < elements; ++z)
        for (size_t a = 0; a < in_count; ++a)
            for (size_t b = 0; b < out_count; ++b)
                for (size_t u = 0; u < channels; ++u)
                    contraction.weights[(z * out_count + b) * channels + u] +=
                        before[(z * in_count + a) * channels + u] * matrix[a * out_count + b];
    contraction.path_count = static_cast<int>(out_count);
}

void load_sparse(const ModuleReader& reader, SymmetricContraction& contraction) {
    load_sparse_weights(reader, contraction);
    const JsonValue* operations = find_state(find_state(reader.attribute("etp"), "polynomial"), "operations");
    if (!operations || !operations->is_array())
        reader.unsupported("this cuequivariance version does not store its polynomial, which is not implemented");
    std::vector<RowTerm> terms;
    for (const JsonValue& operation : *operations) {
        const bool is_pair = operation.is_array() && operation.size() == 2;
        const JsonValue* buffers = is_pair ? find_state(&operation[0], "buffers") : nullptr;
        const JsonValue* paths = is_pair ? find_state(&operation[1], "paths") : nullptr;
        if (!buffers || !paths || !buffers->is_array() || !paths->is_array() || buffers->size() < 3)
            reader.malformed("an operation of the polynomial is incomplete");
        for (size_t i = 0; i < buffers->size(); ++i) {
            const int expected = i == 0 ? 0 : i + 1 == buffers->size() ? 2 : 1;
            if (json_integer((*buffers)[i], 0, 2) != expected)
                reader.unsupported("the polynomial has its operands in an order that is not implemented");
        }
        for (const JsonValue& path : *paths) {
            const JsonValue* indices = find_state(&path, "indices");
            if (!indices || indices->size() != buffers->size()) reader.malformed("a path does not fit its operation");
            add_sparse_term(reader, path, contraction, terms);
        }
    }
    store_terms(contraction, std::move(terms));
}

}  // namespace

SymmetricContraction load_contraction(const ModuleReader& reader, int element_count) {
    if (!reader.is("SymmetricContraction")) reader.unsupported("class ", reader.class_name(), " is not implemented");
    SymmetricContraction contraction;
    contraction.in = reader.irreps("irreps_in");
    contraction.out = reader.irreps("irreps_out");
    contraction.element_count = element_count;
    if (contraction.in.block_count() == 0 || contraction.out.block_count() == 0) reader.malformed("has no irreps");
    contraction.channel_count = contraction.in[0].multiplicity;
    if (contraction.channel_count == 0) reader.malformed("has no channels");
    contraction.in_row_count = count_rows(reader, contraction.in, contraction.channel_count);
    contraction.out_row_count = count_rows(reader, contraction.out, contraction.channel_count);
    if (reader.find("contractions")) {
        load_dense(reader, contraction);
    } else {
        load_sparse(reader, contraction);
    }
    return contraction;
}

}  // namespace mlff::mace
