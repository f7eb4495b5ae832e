// SPDX-License-Identifier: MIT
#include "tools/trust/fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "tools/trust/least_squares.h"
#include "tools/trust/principal_components.h"
#include "trust/measure.h"

namespace mlff::trust {
namespace {

constexpr double kSmallestError = 1e-3;    // eV/angstrom; smaller ones count as this
constexpr int64_t kFewestAtoms = 50;       // seen, and with errors
constexpr int64_t kFewestOfElement = 100;  // seen atoms, for a limit of its own
constexpr double kUsualShare = 0.999;      // of the seen atoms of an element that are within its limit
constexpr int kFolds = 4;
constexpr double kPenalties[] = {0.003, 0.01, 0.03, 0.1, 0.3};  // times the number of atoms

double quantile(std::vector<double> numbers, double share) {
    const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(numbers.size() - 1));
    std::nth_element(numbers.begin(), numbers.begin() + rank, numbers.end());
    return numbers[static_cast<size_t>(rank)];
}

// What the formulas need of one atom.
struct Place {
    int element = -1;
    std::array<float, kMostComponents> components{};
    double squared_length = 0;
};

Place place_of(const TrustMeter& meter, const Samples& samples, int64_t atom) {
    Place place;
    place.element = meter.element_of(samples.atomic_numbers[static_cast<size_t>(atom)]);
    if (place.element >= 0)
        place.squared_length =
            components_of(view_of(meter), place.element, samples.descriptors.data() + atom * samples.descriptor_count,
                          place.components.data());
    return place;
}

// The square of what the components leave out, in units of its mean.
double rest_of(const TrustMeter& meter, const Place& place) {
    double inside = 0;
    for (size_t k = 0; k < meter.variances.size(); ++k) {
        const double y = place.components[k];
        inside += meter.variances[k] * y * y;
    }
    return std::max(place.squared_length - inside, 0.0) / meter.rest_variance;
}

double squared_distance(const TrustMeter& meter, const Place& place) {
    double distance = 0;
    for (int k = 0; k < meter.component_count; ++k) {
        const double y = place.components[static_cast<size_t>(k)];
        distance += y * y;
    }
    return distance + rest_of(meter, place);
}

void find_centers(TrustMeter& meter, const Samples& seen) {
    meter.descriptor_count = seen.descriptor_count;
    meter.elements.assign(seen.atomic_numbers.begin(), seen.atomic_numbers.end());
    std::sort(meter.elements.begin(), meter.elements.end());
    meter.elements.erase(std::unique(meter.elements.begin(), meter.elements.end()), meter.elements.end());
    const auto width = static_cast<size_t>(seen.descriptor_count);
    std::vector<double> sums(meter.elements.size() * width);
    std::vector<int64_t> counts(meter.elements.size());
    for (int64_t atom = 0; atom < seen.atom_count(); ++atom) {
        const auto element = static_cast<size_t>(meter.element_of(seen.atomic_numbers[static_cast<size_t>(atom)]));
        ++counts[element];
        for (size_t d = 0; d < width; ++d)
            sums[element * width + d] += seen.descriptors[static_cast<size_t>(atom) * width + d];
    }
    for (size_t i = 0; i < sums.size(); ++i)
        meter.centers.push_back(static_cast<float>(sums[i] / static_cast<double>(counts[i / width])));
}

void find_directions(TrustMeter& meter, const Samples& seen) {
    const auto width = static_cast<size_t>(seen.descriptor_count);
    std::vector<float> differences(seen.descriptors);
    for (int64_t atom = 0; atom < seen.atom_count(); ++atom) {
        const auto element = static_cast<size_t>(meter.element_of(seen.atomic_numbers[static_cast<size_t>(atom)]));
        for (size_t d = 0; d < width; ++d)
            differences[static_cast<size_t>(atom) * width + d] -= meter.centers[element * width + d];
    }
    const PrincipalComponents found = principal_components(differences, seen.descriptor_count, kMostComponents);
    meter.component_count = static_cast<int>(found.variances.size());
    meter.variances = found.variances;
    // Where nothing is left out, rounding must not look like a distance.
    const double total = std::accumulate(found.variances.begin(), found.variances.end(), found.rest_variance);
    meter.rest_variance = std::max({found.rest_variance, 1e-4 * total, 1e-20});  // 0 if atoms are all alike
    meter.directions.resize(width * found.variances.size());
    for (size_t d = 0; d < width; ++d)
        for (size_t k = 0; k < found.variances.size(); ++k)
            meter.directions[d * found.variances.size() + k] =
                static_cast<float>(found.directions[k * width + d] / std::sqrt(found.variances[k]));
}

void find_limits(TrustMeter& meter, const Samples& seen) {
    std::vector<std::vector<double>> distances(meter.elements.size());
    std::vector<double> all;
    for (int64_t atom = 0; atom < seen.atom_count(); ++atom) {
        const Place place = place_of(meter, seen, atom);
        all.push_back(squared_distance(meter, place));
        distances[static_cast<size_t>(place.element)].push_back(all.back());
    }
    const double common = quantile(all, kUsualShare);
    for (const std::vector<double>& own : distances) {
        const bool is_rare = static_cast<int64_t>(own.size()) < kFewestOfElement;
        meter.limits.push_back(std::max(is_rare ? common : quantile(own, kUsualShare), 1e-12));
    }
}

// The terms of the score: [element] one of them 1, [K] components, their products, the rest.
void score_terms(const TrustMeter& meter, const Place& place, std::vector<double>& terms) {
    terms.assign(meter.elements.size(), 0.0);
    terms[static_cast<size_t>(place.element)] = 1;
    const auto count = static_cast<size_t>(meter.component_count);
    std::array<double, kMostComponents> y{};
    for (size_t k = 0; k < count; ++k) y[k] = std::clamp(place.components[k], -kLargestComponent, kLargestComponent);
    terms.insert(terms.end(), y.begin(), y.begin() + static_cast<std::ptrdiff_t>(count));
    for (size_t i = 0; i < count; ++i)
        for (size_t j = i; j < count; ++j) terms.push_back(y[i] * y[j]);
    const bool has_rest = meter.component_count < meter.descriptor_count;
    terms.push_back(has_rest ? std::log(rest_of(meter, place) + kSmallestRest) : 0);
}

int fold_of(int32_t group) { return static_cast<int>((static_cast<uint32_t>(group) * 2654435761u) >> 16) % kFolds; }

// Fits the score of single atoms, with the penalty that predicts other molecules best. Returns the scores that atoms
// get from a fit to the other folds; NaN where the element was not seen.
std::vector<double> fit_scores(TrustMeter& meter, const Samples& labelled, const std::vector<double>& targets) {
    const size_t element_count = meter.elements.size();
    const auto pairs = static_cast<size_t>(meter.component_count * (meter.component_count + 1) / 2);
    const size_t term_count = element_count + static_cast<size_t>(meter.component_count) + pairs + 1;
    std::vector<NormalEquations> folds(kFolds, NormalEquations(term_count));
    std::vector<double> terms;
    std::vector<Place> places;
    for (int64_t atom = 0; atom < labelled.atom_count(); ++atom) {
        const auto a = static_cast<size_t>(atom);
        places.push_back(place_of(meter, labelled, atom));
        if (places.back().element < 0) continue;
        score_terms(meter, places.back(), terms);
        folds[static_cast<size_t>(fold_of(labelled.groups[a]))].add(terms, targets[a]);
    }
    NormalEquations all(term_count);
    for (const NormalEquations& fold : folds) all.add(fold, 1);
    double best_error = INFINITY, best_penalty = 0;
    std::vector<double> best_scores;
    for (const double penalty : kPenalties) {
        std::vector<std::vector<double>> weights;
        for (const NormalEquations& fold : folds) {
            NormalEquations others = all;
            others.add(fold, -1);
            weights.push_back(others.solve(penalty, element_count));
        }
        std::vector<double> scores(targets.size(), NAN);
        double error = 0;
        for (size_t a = 0; a < targets.size(); ++a) {
            if (places[a].element < 0) continue;
            score_terms(meter, places[a], terms);
            const std::vector<double>& own = weights[static_cast<size_t>(fold_of(labelled.groups[a]))];
            scores[a] = std::inner_product(terms.begin(), terms.end(), own.begin(), 0.0);
            error += (scores[a] - targets[a]) * (scores[a] - targets[a]);
        }
        if (error < best_error) {
            best_error = error;
            best_penalty = penalty;
            best_scores = std::move(scores);
        }
    }
    const std::vector<double> found = all.solve(best_penalty, element_count);
    auto next = found.begin();
    const auto take = [&](std::vector<double>& to, size_t count) {
        to.assign(next, next + static_cast<std::ptrdiff_t>(count));
        next += static_cast<std::ptrdiff_t>(count);
    };
    take(meter.offsets, element_count);
    take(meter.linear, static_cast<size_t>(meter.component_count));
    take(meter.quadratic, pairs);
    meter.rest_weight = *next;
    meter.lowest_score = quantile(targets, 0.001);
    meter.highest_score = quantile(targets, 0.999) + std::log(2.0);
    for (double& score : best_scores)
        score = std::isnan(score) ? meter.highest_score : std::clamp(score, meter.lowest_score, meter.highest_score);
    return best_scores;
}

// Fits the final step: an atom and its surroundings. `scores` come from fits to other molecules, as those of new
// molecules will.
void fit_final(TrustMeter& meter, const Samples& labelled, const std::vector<double>& targets,
               const std::vector<double>& scores) {
    const size_t element_count = meter.elements.size(), term_count = element_count + 3;
    NormalEquations equations(term_count);
    std::vector<std::array<double, 3>> around;
    std::vector<int> elements;
    for (int64_t atom = 0; atom < labelled.atom_count(); ++atom) {
        const auto a = static_cast<size_t>(atom);
        double weight = 0, weighted = 0;
        for (int64_t n = labelled.first[a]; n < labelled.first[a + 1]; ++n) {
            const auto neighbor = static_cast<size_t>(n);
            const double w = weight_at(labelled.distances[neighbor], meter.radius);
            weight += w;
            weighted += w * std::exp(scores[static_cast<size_t>(labelled.neighbors[neighbor])]);
        }
        around.push_back({scores[a], weight > 1e-9 ? std::log(weighted / weight) : scores[a], weight});
        elements.push_back(meter.element_of(labelled.atomic_numbers[a]));
        if (elements.back() < 0) continue;
        std::vector<double> terms(term_count);
        terms[static_cast<size_t>(elements.back())] = 1;
        std::copy(around.back().begin(), around.back().end(), terms.end() - 3);
        equations.add(terms, targets[a]);
    }
    const std::vector<double> found = equations.solve(1e-6, element_count);

    // The fit of logarithms gives a typical error; `expected` is the mean. Both by twentieths of the atoms.
    std::vector<std::pair<double, double>> fitted;  // logarithm, error
    for (size_t a = 0; a < targets.size(); ++a) {
        if (elements[a] < 0) continue;
        double sum = found[static_cast<size_t>(elements[a])];
        for (size_t t = 0; t < 3; ++t) sum += found[element_count + t] * around[a][t];
        fitted.emplace_back(sum, labelled.errors[a]);
    }
    std::sort(fitted.begin(), fitted.end());
    constexpr size_t kBins = 20;
    NormalEquations line(2);
    for (size_t bin = 0; bin < kBins; ++bin) {
        const size_t begin = bin * fitted.size() / kBins, end = (bin + 1) * fitted.size() / kBins;
        double mean = 0, error = 0;
        for (size_t i = begin; i < end; ++i) mean += fitted[i].first, error += fitted[i].second;
        const auto count = static_cast<double>(end - begin);
        line.add({1, mean / count}, std::log(std::max(error / count, kSmallestError)));
    }
    const std::vector<double> mapped = line.solve(0, 2);
    const double scale = std::clamp(mapped[1], 0.2, 5.0);
    for (size_t element = 0; element < element_count; ++element)
        meter.final_offsets.push_back(mapped[0] + scale * found[element]);
    meter.own_weight = scale * found[element_count];
    meter.neighbor_weight = scale * found[element_count + 1];
    meter.count_weight = scale * found[element_count + 2];
}

struct Measured {
    std::vector<double> expected, novelties;
};
Measured measure(const TrustMeter& meter, const Samples& samples) {
    const auto count = static_cast<size_t>(samples.atom_count());
    Measured measured = {std::vector<double>(count), std::vector<double>(count)};
    ThreadTeam team(0);
    TrustMeasurement measurement;
    const std::vector<double> descriptors(samples.descriptors.begin(), samples.descriptors.end());
    Edges edges;
    edges.atom_count = samples.atom_count();
    edges.edge_count = static_cast<int64_t>(samples.neighbors.size());
    edges.first = samples.first.data();
    edges.sender = samples.neighbors.data();
    edges.distance = samples.distances.data();
    measurement.measure(meter, samples.atomic_numbers.data(), descriptors.data(), edges, measured.expected.data(),
                        measured.novelties.data(), team);
    return measured;
}

// Above this expected error are a tenth of the atoms that do not belong to the tenth with the largest errors.
double alarm_for(const std::vector<double>& expected, const std::vector<double>& errors) {
    const double worst = quantile(errors, 0.9);
    std::vector<double> others;
    for (size_t a = 0; a < errors.size(); ++a)
        if (errors[a] < worst) others.push_back(expected[a]);
    return others.empty() ? 0 : quantile(others, 0.9);
}

std::vector<double> ranks_of(const std::vector<double>& numbers) {
    std::vector<size_t> order(numbers.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return numbers[a] < numbers[b]; });
    std::vector<double> ranks(numbers.size());
    for (size_t begin = 0; begin < order.size();) {  // equal numbers share the mean of their ranks
        size_t end = begin;
        while (end < order.size() && numbers[order[end]] == numbers[order[begin]]) ++end;
        for (size_t i = begin; i < end; ++i) ranks[order[i]] = 0.5 * static_cast<double>(begin + end - 1);
        begin = end;
    }
    return ranks;
}
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const auto count = static_cast<double>(a.size());
    const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / count;
    const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / count;
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace

TrustMeter fit_trust_meter(const Samples& seen, const Samples& labelled, double radius) {
    if (seen.atom_count() < kFewestAtoms)
        fail(Status::format, "the frames that training has seen have ", seen.atom_count(), " atoms, expected ",
             kFewestAtoms, " or more");
    if (labelled.atom_count() < kFewestAtoms)
        fail(Status::format, "the frames whose errors count have ", labelled.atom_count(), " atoms, expected ",
             kFewestAtoms, " or more");
    TrustMeter meter;
    meter.radius = radius;
    find_centers(meter, seen);
    const auto useful_count = std::count_if(labelled.atomic_numbers.begin(), labelled.atomic_numbers.end(),
                                            [&](int z) { return meter.element_of(z) >= 0; });
    if (useful_count < kFewestAtoms)
        fail(Status::format, "the frames whose errors count have ", useful_count,
             " atoms of elements that training has seen, expected ", kFewestAtoms, " or more");
    find_directions(meter, seen);
    find_limits(meter, seen);
    std::vector<double> targets;
    for (const double error : labelled.errors) targets.push_back(std::log(std::max(error, kSmallestError)));
    const std::vector<double> scores = fit_scores(meter, labelled, targets);
    fit_final(meter, labelled, targets, scores);

    const Measured measured = measure(meter, labelled);
    double outside_sum = 0;
    int64_t outside_count = 0;
    for (size_t a = 0; a < measured.novelties.size(); ++a)
        if (measured.novelties[a] > 1) outside_sum += labelled.errors[a], ++outside_count;
    meter.outside_error = outside_count >= kFewestOfElement ? outside_sum / static_cast<double>(outside_count)
                                                            : quantile(labelled.errors, 0.95);
    meter.alarm_error = alarm_for(measure(meter, labelled).expected, labelled.errors);
    return meter;
}

Judgement judge(const TrustMeter& meter, const Samples& samples) {
    Judgement judgement;
    judgement.atom_count = samples.atom_count();
    if (samples.atom_count() == 0) return judgement;
    const Measured measured = measure(meter, samples);
    judgement.rank_correlation = correlation(ranks_of(measured.expected), ranks_of(samples.errors));
    const double worst = quantile(samples.errors, 0.9), alarm = alarm_for(measured.expected, samples.errors);
    double worst_count = 0, other_count = 0;
    for (size_t a = 0; a < samples.errors.size(); ++a) {
        const bool is_worst = samples.errors[a] >= worst, is_flagged = measured.expected[a] > meter.alarm_error;
        (is_worst ? worst_count : other_count) += 1;
        if (is_worst && measured.expected[a] > alarm) judgement.best_flagged += 1;
        if (is_flagged) (is_worst ? judgement.worst_flagged : judgement.false_alarms) += 1;
        if (measured.novelties[a] > 1) judgement.outside += 1;
    }
    judgement.best_flagged /= worst_count;
    judgement.worst_flagged /= worst_count;
    judgement.false_alarms /= std::max(other_count, 1.0);
    judgement.outside /= static_cast<double>(samples.atom_count());
    std::vector<size_t> order(samples.errors.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return measured.expected[a] < measured.expected[b]; });
    constexpr size_t kBins = 10;
    for (size_t bin = 0; bin < kBins; ++bin) {
        const size_t begin = bin * order.size() / kBins, end = (bin + 1) * order.size() / kBins;
        if (begin == end) continue;
        Judgement::Bin mean;
        for (size_t i = begin; i < end; ++i)
            mean.expected += measured.expected[order[i]], mean.found += samples.errors[order[i]];
        mean.expected /= static_cast<double>(end - begin);
        mean.found /= static_cast<double>(end - begin);
        judgement.bins.push_back(mean);
    }
    return judgement;
}

JsonValue to_json(const Judgement& judgement) {
    JsonValue::Array expected, found;
    for (const Judgement::Bin& bin : judgement.bins) {
        expected.push_back(bin.expected);
        found.push_back(bin.found);
    }
    return JsonValue::Object{{"atoms", judgement.atom_count},
                             {"rank_correlation", judgement.rank_correlation},
                             {"worst_tenth_flagged", judgement.worst_flagged},
                             {"false_alarms", judgement.false_alarms},
                             {"worst_tenth_flagged_at_10_percent_false_alarms", judgement.best_flagged},
                             {"outside", judgement.outside},
                             {"expected_error_of_tenths", JsonValue(std::move(expected))},
                             {"true_error_of_tenths", JsonValue(std::move(found))}};
}

}  // namespace mlff::trust
