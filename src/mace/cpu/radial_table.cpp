// SPDX-License-Identifier: MIT
#include "mace/cpu/radial_table.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "mace/reference/network.h"
#include "mace/reference/radial.h"

namespace mlff::mace::cpu {
namespace {

constexpr int kGhostNodes = 4;  // samples beyond either end
constexpr int kFewestIntervals = 128, kMostIntervals = 4096;

// f(r) = 1 - (p+1)(p+2)/2 t^p + p(p+2) t^(p+1) - p(p+1)/2 t^(p+2), continued as the polynomial it is beyond the cutoff: the
// spline there is never used, but a kink would spoil it further in.
double smooth_cutoff(const PolynomialCutoff& cutoff, double r) {
    const double p = cutoff.exponent, t = r / cutoff.radius;
    return 1 + std::pow(t, cutoff.exponent) * (-(p + 1) * (p + 2) / 2 + t * (p * (p + 2) - t * p * (p + 1) / 2));
}

// All functions of a layer at one distance.
class Sampler {
public:
    Sampler(const Weights& weights, const Interaction& interaction, const RadialColumns& columns, int sender_element, int receiver_element)
        : interaction_(interaction), columns_(columns), radial_(weights.radial), sender_(sender_element), receiver_(receiver_element),
          network_(interaction.radial_network), density_(interaction.density_network ? *interaction.density_network : interaction.radial_network) {
        in_basis_ = radial_.cutoff_in_basis;
        radial_.cutoff_in_basis = false;  // bare basis functions, which continue smoothly
        input_.resize(static_cast<size_t>(interaction.radial_network.in_width()));
    }

    void sample(double r, double* values) {
        if (std::abs(r) < 1e-9) r = 1e-9;
        double unused = 0;
        reference::compute_radial(radial_, sender_, receiver_, r, input_.data(), &unused);
        const double cutoff = smooth_cutoff(radial_.cutoff, r);
        if (in_basis_)
            for (int n = 0; n < radial_.basis_count; ++n) input_[static_cast<size_t>(n)] *= cutoff;
        if (interaction_.edge_input == Interaction::EdgeInput::elements) {
            const auto width = static_cast<size_t>(interaction_.edge_width);
            double* at = input_.data() + radial_.basis_count;
            std::copy_n(interaction_.sender_table.data() + static_cast<size_t>(sender_) * width, width, at);
            std::copy_n(interaction_.receiver_table.data() + static_cast<size_t>(receiver_) * width, width, at + width);
        }
        std::fill_n(values, columns_.count, 0.0);
        const double outside = in_basis_ ? 1.0 : cutoff;
        const double* weights = network_.compute(input_.data());
        for (size_t p = 0; p < columns_.path.size(); ++p) {
            const Convolution::Path& path = interaction_.convolution.paths[p];
            const int copies = interaction_.convolution.in[path.in_block].multiplicity;
            for (int u = 0; u < copies; ++u) values[columns_.path[p] + u] = outside * weights[path.weight_offset + u];
        }
        if (columns_.density >= 0) {
            const double d = density_.compute(input_.data())[0];
            values[columns_.density] = outside * std::tanh(d * d);
        }
    }

private:
    const Interaction& interaction_;
    const RadialColumns& columns_;
    RadialEmbedding radial_;
    int sender_, receiver_;
    reference::NetworkPass network_, density_;
    bool in_basis_ = true;
    std::vector<double> input_;
};

constexpr int kShareCount = kSplineOrder + 1;

// The B-splines b_t(x) and their slopes.
void spline_shares(double x, double* value, double* slope) {
    const double y = 1 - x, x2 = x * x, x4 = x2 * x2, y2 = y * y;
    value[0] = y2 * y2 * y / 120;
    value[1] = (26 + x * (-50 + x * (20 + x * (20 + x * (-20 + 5 * x))))) / 120;
    value[2] = (66 + x2 * (-60 + x2 * (30 - 10 * x))) / 120;
    value[3] = (26 + x * (50 + x * (20 + x * (-20 + x * (-20 + 10 * x))))) / 120;
    value[4] = (1 + x * (5 + x * (10 + x * (10 + x * (5 - 5 * x))))) / 120;
    value[5] = x4 * x / 120;
    slope[0] = -y2 * y2 / 24;
    slope[1] = (-50 + x * (40 + x * (60 + x * (-80 + 25 * x)))) / 120;
    slope[2] = x * (-120 + x2 * (120 - 50 * x)) / 120;
    slope[3] = (50 + x * (40 + x * (-60 + x * (-80 + 50 * x)))) / 120;
    slope[4] = (5 + x * (20 + x * (30 + x * (20 - 25 * x)))) / 120;
    slope[5] = x4 / 24;
}

// Rows [first, first + row_count) of samples at low + (first + row + shift) * step.
void sample_rows(std::vector<double>& samples, int row_count, double begin, double step, const Weights& weights, const Interaction& interaction,
                 const RadialColumns& columns, int sender, int receiver, ThreadTeam& team) {
    samples.resize(static_cast<size_t>(row_count) * static_cast<size_t>(columns.count));
    constexpr int kRowsPerChunk = 16;
    team.run((row_count + kRowsPerChunk - 1) / kRowsPerChunk, [&](int64_t chunk, int) {
        Sampler sampler(weights, interaction, columns, sender, receiver);
        const int end = std::min(row_count, static_cast<int>(chunk + 1) * kRowsPerChunk);
        for (int row = static_cast<int>(chunk) * kRowsPerChunk; row < end; ++row)
            sampler.sample(begin + row * step, samples.data() + static_cast<size_t>(row) * static_cast<size_t>(columns.count));
    });
}

}  // namespace

double lowest_distance(const RadialEmbedding& radial) {
    const bool has_power = radial.transform == RadialEmbedding::Transform::agnesi || radial.transform == RadialEmbedding::Transform::soft_2023;
    return has_power ? 0.3 : 0.0;
}

bool depends_on_elements(const Weights& weights, const Interaction& interaction) {
    return weights.radial.transform != RadialEmbedding::Transform::none || interaction.edge_input == Interaction::EdgeInput::elements;
}

template <class Real>
RadialTable<Real>::RadialTable(const Weights& weights, const Interaction& interaction, const RadialColumns& columns, int sender_element,
                               int receiver_element, ThreadTeam& team)
    : low_(lowest_distance(weights.radial)), column_count_(columns.count), density_column_(columns.density) {
    constexpr double kTolerance = sizeof(Real) == 4 ? 2e-7 : 2e-10;
    const auto width = static_cast<size_t>(columns.count);
    std::vector<double> samples, between;
    // Each round has twice the intervals. The nodes of the next round that lie between those of this one test it.
    for (interval_count_ = kFewestIntervals;; interval_count_ *= 2) {
        const double step = (weights.cutoff - low_) / interval_count_;
        inverse_step_ = 1 / step;
        const int node_count = interval_count_ + 1 + 2 * kGhostNodes;
        sample_rows(samples, node_count, low_ - kGhostNodes * step, step, weights, interaction, columns, sender_element, receiver_element, team);
        const int row_count = interval_count_ + 5;
        std::vector<double> exact(static_cast<size_t>(row_count) * width);
        double largest = 0;
        for (size_t row = 0; row < static_cast<size_t>(row_count); ++row)
            for (size_t c = 0; c < width; ++c) {
                const double* f = samples.data() + row * width + c;
                exact[row * width + c] = (13 * (f[0] + f[4 * width]) - 112 * (f[width] + f[3 * width]) + 438 * f[2 * width]) / 240;
                largest = std::max(largest, std::abs(f[2 * width]));
            }
        sample_rows(between, interval_count_, low_ + 0.5 * step, step, weights, interaction, columns, sender_element, receiver_element, team);
        double value[kShareCount], slope[kShareCount];
        spline_shares(0.5, value, slope);
        worst_error_ = 0;
        for (size_t i = 0; i < static_cast<size_t>(interval_count_); ++i)
            for (size_t c = 0; c < width; ++c) {
                double sum = 0;
                for (size_t t = 0; t < kShareCount; ++t) sum += value[t] * exact[(i + t) * width + c];
                worst_error_ = std::max(worst_error_, std::abs(sum - between[i * width + c]));
            }
        worst_error_ = largest > 0 ? worst_error_ / largest : 0;
        if (worst_error_ <= kTolerance || 2 * interval_count_ > kMostIntervals) {
            coefficients_.resize_discard(2 * exact.size());
            for (size_t row = 0; row < static_cast<size_t>(row_count); ++row)
                for (size_t c = 0; c < width; ++c) {
                    const double here = exact[row * width + c], next = row + 1 < static_cast<size_t>(row_count) ? exact[(row + 1) * width + c] : here;
                    coefficients_[2 * row * width + c] = static_cast<Real>(here);
                    coefficients_[(2 * row + 1) * width + c] = static_cast<Real>(next - here);
                }
            break;
        }
    }
    if (!(worst_error_ <= 1000 * kTolerance))
        fail(Status::unsupported, "the radial functions of this model vary too fast for a table (error ", worst_error_, " with ", interval_count_, " intervals)");
}

template <class Real>
SplinePoint<Real> RadialTable<Real>::at(double distance) const {
    const double place = (distance - low_) * inverse_step_;
    const int interval = std::clamp(static_cast<int>(place), 0, interval_count_ - 1);
    double value[kShareCount], slope[kShareCount];
    spline_shares(place - interval, value, slope);
    SplinePoint<Real> point;
    point.stride = 2 * column_count_;
    const Real* row = coefficients_.data() + interval * point.stride;
    point.center = row + 2 * point.stride;
    point.differences = row + column_count_;
    double below = 0, above = 1, slopes_below = 0;  // sums of the b before, of those from here on, and of the slopes before
    for (int t = 0; t < kSplineOrder; ++t) {
        below += value[t];
        above -= value[t];
        slopes_below += slope[t];
        point.value[t] = static_cast<Real>(t < 2 ? -below : above);
        point.slope[t] = static_cast<Real>(-slopes_below * inverse_step_);
    }
    return point;
}

template <class Real>
Real RadialTable<Real>::density(const SplinePoint<Real>& point) const {
    Real sum = point.center[density_column_];
    for (int t = 0; t < kSplineOrder; ++t) sum += point.value[t] * point.differences[t * point.stride + density_column_];
    return sum;
}

template <class Real>
Real RadialTable<Real>::density_slope(const SplinePoint<Real>& point) const {
    Real sum = 0;
    for (int t = 0; t < kSplineOrder; ++t) sum += point.slope[t] * point.differences[t * point.stride + density_column_];
    return sum;
}

template class RadialTable<float>;
template class RadialTable<double>;

}  // namespace mlff::mace::cpu
