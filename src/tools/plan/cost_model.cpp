// SPDX-License-Identifier: MIT
#include "tools/plan/cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "core/error.h"

namespace mlff::plan {
namespace {

constexpr size_t kTerms = 3;  // of a LinearCost
using Row = std::array<double, kTerms>;

// One equation per sample, divided by its value: row . coefficients = 1, or less if the resolution is above the value.
struct Equations {
    std::vector<Row> rows;
    std::vector<double> right;
    Row scale{};  // of the columns, which differ by orders of magnitude
};

Equations make_equations(std::span<const Sample> samples, double resolution) {
    if (samples.empty()) fail(Status::argument, "a cost fit needs at least 1 sample");
    Equations equations;
    for (const Sample& sample : samples) {
        const double unit = std::max(sample.value, resolution);
        if (!std::isfinite(sample.value) || sample.value < 0 || !(unit > 0))
            fail(Status::argument, "a sample has the cost ", sample.value, " for ", sample.load.atoms,
                 " atoms; expected more than 0");
        equations.rows.push_back(
            {1 / unit, static_cast<double>(sample.load.atoms) / unit, static_cast<double>(sample.load.edges) / unit});
        equations.right.push_back(sample.value / unit);
        for (size_t k = 0; k < kTerms; ++k) equations.scale[k] = std::max(equations.scale[k], equations.rows.back()[k]);
    }
    return equations;
}

double squared_residual(const Equations& equations, const Row& coefficients) {
    double sum = 0;
    for (size_t i = 0; i < equations.rows.size(); ++i) {
        double difference = -equations.right[i];
        for (size_t k = 0; k < kTerms; ++k) difference += equations.rows[i][k] * coefficients[k];
        sum += difference * difference;
    }
    return sum;
}

// Least squares with a subset of the terms, by the normal equations; nothing if these are singular.
std::optional<Row> solve_subset(const Equations& equations, const std::vector<size_t>& terms) {
    const size_t size = terms.size();
    std::array<std::array<double, kTerms + 1>, kTerms> matrix{};
    for (size_t i = 0; i < equations.rows.size(); ++i)
        for (size_t a = 0; a < size; ++a) {
            const double left = equations.rows[i][terms[a]] / equations.scale[terms[a]];
            for (size_t b = 0; b < size; ++b)
                matrix[a][b] += left * equations.rows[i][terms[b]] / equations.scale[terms[b]];
            matrix[a][size] += left * equations.right[i];
        }
    const auto before = matrix;
    for (size_t pivot = 0; pivot < size; ++pivot) {  // symmetric positive: pivots on the diagonal
        if (!(matrix[pivot][pivot] > 1e-9 * before[pivot][pivot])) return {};
        for (size_t a = 0; a < size; ++a) {
            if (a == pivot) continue;
            const double factor = matrix[a][pivot] / matrix[pivot][pivot];
            for (size_t b = pivot; b <= size; ++b) matrix[a][b] -= factor * matrix[pivot][b];
        }
    }
    Row coefficients{};
    for (size_t a = 0; a < size; ++a)
        coefficients[terms[a]] = matrix[a][size] / matrix[a][a] / equations.scale[terms[a]];
    return coefficients;
}

// Three terms have seven subsets. Returns the best one without negative coefficients.
Row solve_non_negative(const Equations& equations) {
    Row best{};
    double least = squared_residual(equations, best);
    for (unsigned subset = 1; subset < 1u << kTerms; ++subset) {
        std::vector<size_t> terms;
        for (size_t k = 0; k < kTerms; ++k)
            if ((subset >> k & 1) && equations.scale[k] > 0) terms.push_back(k);
        if (terms.empty()) continue;
        const auto found = solve_subset(equations, terms);
        if (!found || std::any_of(found->begin(), found->end(), [](double coefficient) { return !(coefficient >= 0); }))
            continue;
        const double residual = squared_residual(equations, *found);
        if (residual < least) least = residual, best = *found;
    }
    return best;
}

double squared_error(const FlooredCost& cost, std::span<const Sample> samples, double resolution) {
    double sum = 0;
    for (const Sample& sample : samples)
        sum += std::pow((cost.of(sample.load) - sample.value) / std::max(sample.value, resolution), 2);
    return sum;
}

// The constant that minimises the squared relative errors.
double fit_constant(std::span<const Sample> samples, double resolution) {
    double sum = 0, square_sum = 0;
    for (const Sample& sample : samples) {
        const double unit = std::max(sample.value, resolution);
        sum += sample.value / (unit * unit);
        square_sum += 1 / (unit * unit);
    }
    return sum / square_sum;
}

}  // namespace

double FlooredCost::of(const Load& load) const { return std::max(floor, linear.of(load)); }

LinearCost fit_linear_cost(std::span<const Sample> samples, double resolution) {
    const Row found = solve_non_negative(make_equations(samples, resolution));
    return {found[0], found[1], found[2]};
}

FlooredCost fit_floored_cost(std::span<const Sample> samples, double resolution) {
    std::vector<Sample> sorted(samples.begin(), samples.end());
    FlooredCost best = {0, fit_linear_cost(sorted, resolution)};
    std::sort(sorted.begin(), sorted.end(), [](const Sample& a, const Sample& b) {
        return a.load.edges + a.load.atoms < b.load.edges + b.load.atoms;
    });
    const auto spread = [&](const FlooredCost& cost, size_t numbers) {
        return sorted.size() > numbers
                   ? squared_error(cost, sorted, resolution) / static_cast<double>(sorted.size() - numbers)
                   : std::numeric_limits<double>::infinity();
    };
    double least = spread(best, kTerms);
    for (size_t below = 1; below + kTerms <= sorted.size(); ++below) {  // number of samples at the floor
        const FlooredCost candidate = {fit_constant(std::span(sorted).first(below), resolution),
                                       fit_linear_cost(std::span(sorted).subspan(below), resolution)};
        const double found = spread(candidate, kTerms + 2);  // two more parameters: the floor, and where it ends
        if (found < least) least = found, best = candidate;
    }
    return best;
}

}  // namespace mlff::plan
