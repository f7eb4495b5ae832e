// SPDX-License-Identifier: MIT
#include "mace/reference/readout.h"

#include <vector>

#include "equivariant/activation.h"
#include "equivariant/linear.h"
#include "mace/functions/readout_columns.h"

namespace mlff::mace::reference {
namespace {

// mask(f(x)) with f the activation: zero outside the head's slice.
std::vector<double> activated(const Readout& readout, int head, const std::vector<double>& before) {
    std::vector<double> after(before.size());
    for (size_t i = 0; i < before.size(); ++i)
        after[i] = is_masked(readout, head, i, before.size()) ? 0 : activate(readout.activation, before[i]);
    return after;
}

void reverse_activated(const Readout& readout, int head, const std::vector<double>& before,
                       std::vector<double>& gradient) {
    for (size_t i = 0; i < before.size(); ++i)
        gradient[i] *= is_masked(readout, head, i, before.size()) ? 0 : activation_slope(readout.activation, before[i]);
}

std::vector<double> applied(const Linear& linear, const double* in) {
    std::vector<double> out(static_cast<size_t>(linear.out.dimension()));
    compute_linear(linear, 0, in, out.data());
    return out;
}

std::vector<double> reversed(const Linear& linear, const std::vector<double>& out_gradient) {
    std::vector<double> in_gradient(static_cast<size_t>(linear.in.dimension()), 0.0);
    reverse_linear(linear, 0, out_gradient.data(), in_gradient.data());
    return in_gradient;
}

}  // namespace

double compute_readout(const Readout& readout, int head, const double* features) {
    std::vector<double> values = applied(readout.first, features);
    if (readout.last) {
        values = activated(readout, head, values);
        if (readout.middle) values = activated(readout, head, applied(*readout.middle, values.data()));
        values = applied(*readout.last, values.data());
    }
    return values[static_cast<size_t>(column_of(readout, head))];
}

void reverse_readout(const Readout& readout, int head, const double* features, double energy_gradient,
                     double* features_gradient) {
    std::vector<double> gradient(static_cast<size_t>(readout.column_count()), 0.0);
    gradient[static_cast<size_t>(column_of(readout, head))] = energy_gradient;
    if (readout.last) {
        const std::vector<double> hidden = applied(readout.first, features);
        gradient = reversed(*readout.last, gradient);
        if (readout.middle) {
            const std::vector<double> second = applied(*readout.middle, activated(readout, head, hidden).data());
            reverse_activated(readout, head, second, gradient);
            gradient = reversed(*readout.middle, gradient);
        }
        reverse_activated(readout, head, hidden, gradient);
    }
    reverse_linear(readout.first, 0, gradient.data(), features_gradient);
}

}  // namespace mlff::mace::reference
