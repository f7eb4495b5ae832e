// SPDX-License-Identifier: MIT
#include "cpu_kernels/kernel_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "core/buffer.h"
#include "core/error.h"
#include "cpu_kernels/scalar_kernels.h"

namespace mlff::kernels {
namespace {

// Pseudo-random numbers that are the same on every machine. A linear congruential generator is fast, and good enough
// here.
class Numbers {
public:
    explicit Numbers(uint64_t seed) : state_(seed) {
        for (int i = 0; i < 4; ++i) bits();
    }

    uint32_t bits() {
        return static_cast<uint32_t>((state_ = state_ * 6364136223846793005 + 1442695040888963407) >> 32);
    }
    double between(double low, double high) { return low + (high - low) * 0x1p-32 * bits(); }
    int integer(int low, int high) {
        return low + static_cast<int>(uint64_t{bits()} * static_cast<uint64_t>(high - low + 1) >> 32);
    }

private:
    uint64_t state_;
};

// Scratch memory reused by all cases: it stays in the cache, and nothing is allocated.
template <class T>
class Memory {
public:
    explicit Memory(size_t count) { all_.resize_discard(count); }

    // Aligned to 64 bytes.
    std::span<T> take(size_t count) {
        const size_t begin = used_;
        used_ += (count + kRowPadding - 1) / kRowPadding * kRowPadding;
        if (used_ > all_.size()) fail(Status::internal, "a case of the check of kernels is larger than expected");
        return {all_.data() + begin, count};
    }
    // Releases at its end everything taken during its life.
    class Scope {
    public:
        explicit Scope(Memory& memory) : memory_(memory), used_(memory.used_) {}
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
        ~Scope() { memory_.used_ = used_; }

    private:
        Memory& memory_;
        size_t used_;
    };

private:
    Buffer<T> all_;
    size_t used_ = 0;
};

template <class Real>
double deviation_of(std::span<const Real> found, std::span<const Real> expected) {
    double size = 0, largest = 0;
    bool is_finite = true;
    for (size_t i = 0; i < expected.size(); ++i) {
        const auto x = static_cast<double>(expected[i]), difference = std::abs(static_cast<double>(found[i]) - x);
        size = std::max(size, std::abs(x));
        largest = std::max(largest, difference);
        is_finite &= difference <= std::numeric_limits<double>::max();
    }
    if (!is_finite) return std::numeric_limits<double>::infinity();
    return size > 0 ? largest / size : largest > 0 ? std::numeric_limits<double>::infinity() : 0;
}

// Compares one kernel of the table with the scalar kernel.
template <class Real>
class Comparison {
public:
    using Row = std::span<Real>;

    Comparison(const KernelTable<Real>& table, uint64_t seed, bool is_small)
        : numbers_(seed),
          memory_(is_small ? 1 << 15 : 1 << 20),
          doubles_(1 << 12),
          table_(table),
          scalar_(scalar_kernels<Real>()),
          is_small_(is_small) {
        for (double& x : ring_) x = numbers_.between(0, 1);
    }

    int size(int small, int low, int high) { return is_small_ ? small : numbers_.integer(low, high); }
    bool flag() { return numbers_.integer(0, 1) == 1; }
    Numbers& numbers() { return numbers_; }
    Real number() { return static_cast<Real>(numbers_.between(kLow, 1)); }

    // Numbers that do not cancel when summed, valid for the duration of the case.
    Row row(int count, double low = kLow, double high = 1) {
        return filled(memory_.take(static_cast<size_t>(count)), low, high);
    }
    std::span<double> doubles(int count, double low, double high) {
        return filled(doubles_.take(static_cast<size_t>(count)), low, high);
    }
    // Scratch memory that a kernel must write before reading.
    Real* work(size_t count) {
        const Row row = memory_.take(count);
        if (!is_small_) std::fill(row.begin(), row.end(), std::numeric_limits<Real>::quiet_NaN());
        return row.data();
    }
    auto memory_scope() { return typename Memory<Real>::Scope(memory_); }

    // Calls `run(table, outputs)` for both tables, each with its own copy of the outputs.
    template <class Run, class... Output>
    void compare(std::string_view kernel, const Run& run, const Output&... output) {
        std::array<Row, sizeof...(Output)> found = {copy_of(output)...}, expected = {copy_of(output)...};
        run(table_, found);
        run(scalar_, expected);
        for (size_t i = 0; i < found.size(); ++i) {
            const double deviation = deviation_of<Real>(found[i], expected[i]);
            if (deviation <= kKernelTolerance<Real>) continue;
            if (faults.empty() || faults.back().kernel != kernel) faults.push_back({kernel, 0});
            faults.back().deviation = std::max(faults.back().deviation, deviation);
        }
    }

    std::vector<KernelFault> faults;

private:
    static constexpr double kLow = -0.4;

    // A stretch of a ring of random numbers, which is faster than drawing new ones each time.
    template <class T>
    std::span<T> filled(std::span<T> row, double low, double high) {
        size_t at = static_cast<size_t>(numbers_.integer(0, static_cast<int>(ring_.size()) - 1));
        for (T& x : row) {
            x = static_cast<T>(low + (high - low) * ring_[at]);
            if (++at == ring_.size()) at = 0;
        }
        return row;
    }
    Row copy_of(const Row& row) {
        const Row copy = memory_.take(row.size());
        std::copy(row.begin(), row.end(), copy.begin());
        return copy;
    }

    Numbers numbers_;
    std::array<double, 1021> ring_;
    Memory<Real> memory_;
    Memory<double> doubles_;
    const KernelTable<Real>& table_;
    const KernelTable<Real> scalar_;
    bool is_small_;
};
template <class Real>
using Row = std::span<Real>;

constexpr int kStrip = kRowPadding;

// ---- dense products ----

template <class Real>
void check_dense(Comparison<Real>& check) {
    const auto memory = check.memory_scope();
    const int rows = check.size(15, 1, 40), depth = check.size(5, 1, 70), width = kStrip * check.size(3, 1, 9);
    const Row<Real> in = check.row(rows * depth), weight = check.row(depth * width);
    for (const bool accumulate : {false, true})
        check.compare(
            "multiply_rows",
            [&](const KernelTable<Real>& table, auto& out) {
                std::vector<const Real*> from;
                std::vector<Real*> to;
                for (int r = 0; r < rows; ++r) {
                    from.push_back(in.data() + r * depth);
                    to.push_back(out[0].data() + r * width);
                }
                table.multiply_rows(from.data(), to.data(), rows, weight.data(), depth, width, accumulate);
            },
            check.row(rows * width));

    const int row_count = kStrip * check.size(1, 1, 3), column_count = kStrip * check.size(2, 1, 3),
              gap = kStrip * check.size(1, 0, 2);
    const Row<Real> matrix = check.row(row_count * (column_count + gap));
    check.compare(
        "transpose",
        [&](const KernelTable<Real>& table, auto& out) {
            table.transpose(matrix.data(), column_count + gap, row_count, column_count, out[0].data(), row_count + gap);
        },
        check.row(column_count * (row_count + gap)));
}

// ---- radial functions and messages ----

// Edges at arbitrary places in a small table.
template <class Real>
struct TablePlaces {
    static constexpr int kIntervals = 3, kRows = (kIntervals + 1) * kSplineRows;
    TablePlaces(Comparison<Real>& check, int columns) : table(check.row(kRows * columns)) {
        points.table = table.data();
        points.row_count = kRows;
        for (int e = 0; e < kEdgesPerBatch; ++e) {
            points.interval[e] = check.numbers().integer(0, kIntervals - 1);
            for (int t = 0; t < kSplineOrder; ++t) {
                points.value[t][e] = check.number();
                points.slope[t][e] = check.number();
            }
        }
    }
    Row<Real> table;
    SplinePoints<Real> points;
};

template <class Real>
void check_functions(Comparison<Real>& check) {
    const auto memory = check.memory_scope();
    const std::span<double> distances = check.doubles(kEdgesPerBatch, 0.2, 5.3);  // beyond both ends too
    const SplineGrid grid = {0.3, 40, 195};
    check.compare(
        "find_points",
        [&](const KernelTable<Real>& table, auto& out) {
            SplinePoints<Real> points;
            table.find_points(distances.data(), grid, points);
            for (int t = 0; t < kSplineOrder; ++t) {
                std::copy_n(points.value[t], kEdgesPerBatch, out[0].data() + t * kEdgesPerBatch);
                std::copy_n(points.slope[t], kEdgesPerBatch, out[1].data() + t * kEdgesPerBatch);
            }
            std::copy_n(points.interval, kEdgesPerBatch, out[2].data());
        },
        check.row(kSplineOrder * kEdgesPerBatch), check.row(kSplineOrder * kEdgesPerBatch), check.row(kEdgesPerBatch));

    const int edges = check.size(3, 1, kEdgesPerBatch), width = kStrip * check.size(2, 1, 6);
    const TablePlaces<Real> places(check, width);
    for (const bool with_slopes : {false, true})
        for (const bool by_strip : {false, true})
            check.compare(
                "interpolate",
                [&](const KernelTable<Real>& table, auto& out) {
                    table.interpolate(places.points, edges,
                                      {out[0].data(), with_slopes ? out[1].data() : nullptr, width,
                                       by_strip ? kStrip : width, by_strip ? edges * kStrip : kStrip});
                },
                check.row(edges * width), check.row(edges * width));

    const std::span<double> directions = check.doubles(3 * kEdgesPerBatch, -1, 1),
                            lengths = check.doubles(kEdgesPerBatch, 0.7, 6),
                            by_vector = check.doubles(3 * kEdgesPerBatch, 0, 1);
    for (int degree = check.size(3, 0, 3); degree <= 3; ++degree) {
        const int harmonics = (degree + 1) * (degree + 1);
        check.compare(
            "compute_harmonics",
            [&](const KernelTable<Real>& table, auto& out) {
                table.compute_harmonics(degree, directions.data(), out[0].data());
            },
            check.row(harmonics * kEdgesPerBatch));
        const Row<Real> gradient = check.row(harmonics * kEdgesPerBatch);
        check.compare(
            "reverse_harmonics",
            [&](const KernelTable<Real>& table, auto& out) {
                table.reverse_harmonics(degree, directions.data(), lengths.data(), gradient.data(), by_vector.data());
                std::copy(by_vector.begin(), by_vector.end(), out[0].begin());
            },
            check.row(3 * kEdgesPerBatch));
    }

    std::vector<RowShare<Real>> shares;
    for (int i = check.size(9, 1, 60); i > 0; --i)
        shares.push_back({check.numbers().integer(0, 4), check.numbers().integer(0, 6), check.number()});
    const Row<Real> from = check.row(7 * kEdgesPerBatch);
    check.compare(
        "add_scaled_rows",
        [&](const KernelTable<Real>& table, auto& out) {
            table.add_scaled_rows(shares.data(), static_cast<int>(shares.size()), from.data(), out[0].data());
        },
        check.row(5 * kEdgesPerBatch));
}

// A path whose columns begin at `column` of the table.
template <class Real>
void check_path(Comparison<Real>& check, int components, int outs, int edges, int stride,
                const TablePlaces<Real>& places, int column) {
    constexpr int kAtoms = 3;
    const auto memory = check.memory_scope();
    const int share_count = components * outs;
    const Row<Real> features = check.row(kAtoms * components * stride),
                    shares = check.row(share_count * kEdgesPerBatch), sums = check.row(kAtoms * outs * stride);
    std::vector<int> atoms;
    std::vector<const Real*> features_of, sums_of;
    for (int e = 0; e < edges; ++e) {
        atoms.push_back(check.numbers().integer(0, kAtoms - 1));
        features_of.push_back(features.data() + atoms.back() * components * stride);
        sums_of.push_back(sums.data() + atoms.back() * outs * stride);
    }
    const auto rows_of = [&](Row<Real> rows, int size) {
        std::vector<Real*> pointers;
        for (int atom : atoms) pointers.push_back(rows.data() + atom * size);
        return pointers;
    };
    const MessageEdges<Real> in = {edges,         &places.points, column, features_of.data(),
                                   shares.data(), components,     outs,   stride};
    check.compare(
        "sum_messages",
        [&](const KernelTable<Real>& table, auto& out) {
            table.sum_messages(in, rows_of(out[0], outs * stride).data());
        },
        check.row(kAtoms * outs * stride));

    const bool with_features = check.flag(), with_radial = check.flag();
    Real* work = check.work(message_work_size(share_count, stride));
    check.compare(
        "reverse_messages",
        [&](const KernelTable<Real>& table, auto& out) {
            const std::vector<Real*> features_gradient = rows_of(out[0], components * stride);
            table.reverse_messages(
                in, {sums_of.data(), with_features ? features_gradient.data() : nullptr,
                     with_radial ? out[1].data() : nullptr, stride + kStrip, out[2].data(), out[3].data(), work});
            for (int s = 0; s < share_count; ++s)
                std::fill(out[2].data() + s * kEdgesPerBatch + edges, out[2].data() + (s + 1) * kEdgesPerBatch,
                          Real(0));  // unused edges
            std::fill(out[3].data() + edges, out[3].data() + kEdgesPerBatch, Real(0));
        },
        check.row(kAtoms * components * stride), check.row(edges * (stride + kStrip)),
        check.row(share_count * kEdgesPerBatch), check.row(kEdgesPerBatch));
}

template <class Real>
void check_messages(Comparison<Real>& check) {
    const auto memory = check.memory_scope();
    // Enough channels for a full block and a remainder; enough edges for a full register and a remainder.
    constexpr int kMostStrips = 9;
    const int column = kStrip * check.size(1, 0, 3);
    const TablePlaces<Real> places(check, column + kStrip * check.size(5, kMostStrips, kMostStrips));
    for (const int components : {1, 2, 3, 5})
        for (const int outs : {1, 3, 4, 5, 7}) {
            if (components == 2 && outs != 3) continue;
            const int edges = check.size(components * outs == 1 ? 17
                                         : components == 1      ? 2
                                                                : 1,
                                         1, kEdgesPerBatch),
                      strips = check.size(components > 1 ? 1
                                          : outs <= 3    ? 5
                                                         : 3,
                                          1, kMostStrips);
            check_path(check, components, outs, edges, kStrip * strips, places, column);
        }
}

// ---- symmetric contraction ----

template <class Real>
void check_polynomial(Comparison<Real>& check, int atoms, int steps_wanted) {
    const auto memory = check.memory_scope();
    const int in_rows = check.size(4, 1, 20), stride = kStrip * check.size(2, 1, 4);
    std::vector<PolynomialStep> steps;
    std::vector<int32_t> leaf_rows;
    Polynomial polynomial;
    while (static_cast<int>(steps.size()) < steps_wanted) {
        PolynomialStep step;
        step.row = check.numbers().integer(0, in_rows - 1);
        const int deepest = steps.empty() ? 0 : std::min(steps.back().level + 1, kPolynomialLevels - 1);
        step.level = check.size(steps.size() == 4 ? 1 : deepest, 0,
                                deepest);  // small: down to the last level, then once more from the first
        step.leaf_count = check.numbers().integer(0, 3);
        for (int i = 0; i < step.leaf_count; ++i) leaf_rows.push_back(check.numbers().integer(0, in_rows - 1));
        if (step.level == 0) ++polynomial.out_row_count;
        polynomial.coefficient_count += 1 + step.leaf_count;
        if (!steps.empty()) steps.back().close_count = steps.back().level - step.level + 1;
        steps.push_back(step);
    }
    steps.back().close_count = steps.back().level + 1;
    polynomial.steps = steps.data();
    polynomial.step_count = static_cast<int>(steps.size());
    polynomial.leaf_rows = leaf_rows.data();
    polynomial.in_row_count = in_rows;

    const int in_size = in_rows * stride, out_size = polynomial.out_row_count * stride,
              first = check.size(1, 0, stride / kStrip - 1) * kStrip;
    const Row<Real> coefficients = check.row(polynomial.coefficient_count * kStrip), in = check.row(atoms * in_size),
                    out_gradient = check.row(atoms * out_size);
    Real* work = check.work(polynomial_work_size(in_rows));
    const PolynomialRows<Real> rows = {coefficients.data(), in.data() + first, atoms, stride, in_size, out_size, work};
    check.compare(
        "evaluate_polynomial",
        [&](const KernelTable<Real>& table, auto& out) {
            table.evaluate_polynomial(polynomial, rows, out[0].data() + first);
        },
        check.row(atoms * out_size));
    check.compare(
        "reverse_polynomial",
        [&](const KernelTable<Real>& table, auto& out) {
            table.reverse_polynomial(polynomial, rows, out_gradient.data() + first, out[0].data() + first);
        },
        check.row(atoms * in_size));
}

// ---- PaiNN ----

template <class Real>
void check_painn_moments(Comparison<Real>& check) {
    const auto memory = check.memory_scope();
    constexpr int kIntervals = 6, kElements = 3, kAtoms = 4;
    const int edges = check.size(3, 1, 20), stride = kStrip * check.size(2, 1, 3), slots = kElements * 2;
    const Row<Real> table = check.row((kIntervals + 2) * kSplineRows * stride), directions = check.row(3 * edges);
    std::vector<SplineShares<Real>> shares(static_cast<size_t>(edges));
    std::vector<int32_t> senders;
    std::vector<int> element_slot;
    for (int atom = 0; atom < kAtoms; ++atom) element_slot.push_back(check.numbers().integer(0, kElements - 1));
    for (auto& share : shares) {
        share.interval = check.numbers().integer(0, kIntervals - 1) + 1;
        for (int t = 0; t < kSplineOrder; ++t) {
            share.value[t] = check.number();
            share.slope[t] = check.number();
        }
        senders.push_back(check.numbers().integer(0, kAtoms - 1));
    }
    const auto moments = [&](Row<Real> scalar_rows, Row<Real> vector_rows) {
        return PainnMoments<Real>{
            table.data(), 1, shares.data(),      directions.data(), senders.data(), element_slot.data(), 0, edges,
            stride,       2, scalar_rows.data(), vector_rows.data()};
    };
    const Row<Real> scalars = check.row(slots * stride), vectors = check.row(3 * slots * stride);
    check.compare(
        "sum_painn_moments",
        [&](const KernelTable<Real>& kernels, auto& out) { kernels.sum_painn_moments(moments(out[0], out[1])); },
        scalars, vectors);
    check.compare(
        "reverse_painn_moments",
        [&](const KernelTable<Real>& kernels, auto& out) {
            kernels.reverse_painn_moments(moments(scalars, vectors), out[0].data());
        },
        check.row(4 * edges));
}

template <class Real>
void check_painn_messages(Comparison<Real>& check) {
    const auto memory = check.memory_scope();
    constexpr int kIntervals = 6;
    const int atoms = check.size(3, 1, 6), outside = 2, most_links = check.size(9, 0, 20);
    const Row<Real> table = check.row((kIntervals + 1) * kSplineRows * 3 * kStrip);
    std::vector<PainnLink<Real>> links;
    std::vector<PainnLinkCount> counts;
    std::vector<int64_t> first = {0};
    for (int atom = 0; atom < atoms; ++atom) {
        PainnLinkCount count;
        count.all = check.size(most_links, 0, most_links);
        count.both_ways = atom + 1 < atoms ? check.size(atom == 0 ? count.all : count.all / 2, 0, count.all) : 0;
        for (int l = 0; l < count.all; ++l) {
            PainnLink<Real> link;
            for (Real& factor : link.factors) factor = check.number();
            link.interval = check.numbers().integer(0, kIntervals - 1);
            link.edge = static_cast<int64_t>(links.size());
            link.atom = l < count.both_ways ? check.numbers().integer(atom + 1, atoms - 1)
                                            : check.numbers().integer(atoms, atoms + outside - 1);
            links.push_back(link);
        }
        counts.push_back(count);
        first.push_back(static_cast<int64_t>(links.size()));
    }
    const int all = atoms + outside, edges = static_cast<int>(links.size());
    const Row<Real> senders = check.row(all * 5 * kStrip), gradients = check.row(all * 4 * kStrip);
    const PainnStrip<Real> strip = {table.data(), 0, links.data(), counts.data(),
                                    first.data(), 0, atoms,        senders.data()};
    check.compare(
        "sum_painn_messages",
        [&](const KernelTable<Real>& kernels, auto& out) {
            kernels.sum_painn_messages({strip, out[0].data()});
        },
        check.row(all * 4 * kStrip));
    check.compare(
        "reverse_painn_messages",
        [&](const KernelTable<Real>& kernels, auto& out) {
            kernels.reverse_painn_messages({strip, gradients.data(), out[0].data(), out[1].data()});
        },
        check.row(4 * edges), check.row(all * 5 * kStrip));
}

template <class Real>
void check_painn_updates(Comparison<Real>& check) {
    const auto memory = check.memory_scope();
    const int hidden = kStrip * check.size(2, 1, 9), stride = 2 * hidden;
    const Row<Real> mixed_rows = check.row(3 * stride), gates = check.row(3 * hidden), vectors = check.row(3 * hidden),
                    scalars_gradient = check.row(hidden), vectors_gradient = check.row(3 * hidden),
                    norms_gradient = check.row(hidden), inverse_norms = check.row(hidden), phi = check.row(hidden);
    const PainnMixed<Real> mixed = {mixed_rows.data(), stride};
    using Table = KernelTable<Real>;
    check.compare(
        "compute_painn_norms",
        [&](const Table& table, auto& out) {
            table.compute_painn_norms(hidden, mixed, Real(1e-3), out[0].data(), out[1].data());
        },
        check.row(hidden), check.row(hidden));
    check.compare(
        "add_to_painn_scalars",
        [&](const Table& table, auto& out) { table.add_to_painn_scalars(hidden, mixed, gates.data(), out[0].data()); },
        check.row(hidden));
    check.compare(
        "update_painn_vectors",
        [&](const Table& table, auto& out) {
            table.update_painn_vectors(hidden, mixed, gates.data(), {vectors.data(), hidden}, out[0].data());
        },
        check.row(3 * hidden));
    for (const bool is_last : {false, true}) {
        const Real* by_vectors = is_last ? nullptr : vectors_gradient.data();
        check.compare(
            "reverse_painn_gates",
            [&](const Table& table, auto& out) {
                table.reverse_painn_gates(hidden, mixed, scalars_gradient.data(), by_vectors, out[0].data());
            },
            check.row(3 * hidden));
        check.compare(
            "reverse_painn_mixed",
            [&](const Table& table, auto& out) {
                table.reverse_painn_mixed(hidden, {mixed,
                                                   inverse_norms.data(),
                                                   gates.data(),
                                                   scalars_gradient.data(),
                                                   by_vectors,
                                                   norms_gradient.data(),
                                                   {out[0].data(), stride}});
            },
            check.row(3 * stride));
    }
    check.compare(
        "weigh_painn_vectors",
        [&](const Table& table, auto& out) {
            table.weigh_painn_vectors(hidden, phi.data(), vectors.data(), out[0].data());
        },
        check.row(3 * hidden));
    check.compare(
        "reverse_painn_weighing",
        [&](const Table& table, auto& out) {
            table.reverse_painn_weighing(hidden, phi.data(), vectors.data(), vectors_gradient.data(), out[0].data(),
                                         out[1].data());
        },
        check.row(hidden), check.row(3 * hidden));
}

template <class Real>
void check_activation(Comparison<Real>& check) {
    const auto memory = check.memory_scope();
    const int count = kStrip * check.size(2, 1, 6);
    for (const double range : {3.0, 200.0})
        check.compare(
            "activate_silu",
            [&](const KernelTable<Real>& table, auto& out) {
                table.activate_silu(out[0].data(), out[1].data(), count);
            },
            check.row(count, -range, range), check.row(count));
}

// Atoms in a box around an atom, which is one of them; runs of all lengths.
template <class Real>
void check_dispersion(Comparison<Real>& check) {
    const auto memory = check.memory_scope();
    constexpr int kSums = sizeof(DispersionSums<Real>) / sizeof(Real);
    const int atoms = check.size(21, 20, 60), padded_atoms = padded(atoms) + kRowPadding;
    std::array<std::span<Real>, 3> position;
    for (auto& row : position) row = check.row(padded_atoms, -9, 9);
    const std::array<int32_t, 6> runs = {0, 3, 4, 5, 5, atoms};
    DispersionNeighbors<Real> neighbors{.x = position[0].data(),
                                        .y = position[1].data(),
                                        .z = position[2].data(),
                                        .runs = runs.data(),
                                        .run_count = 3,
                                        .cutoff_square = Real(100),
                                        .least_square = Real(1e-6)};
    for (size_t k = 0; k < 3; ++k) neighbors.center[k] = position[k][6];
    const auto store = [](const DispersionSums<Real>& sums, std::span<Real> out) {
        const std::array<Real, 4> first = {sums.energy, sums.by_count, sums.count, sums.self};
        std::copy(first.begin(), first.end(), out.begin());
        std::copy_n(sums.force, 3, out.begin() + 4);
        std::copy_n(sums.virial, 6, out.begin() + 7);
    };
    DispersionPairs<Real> pairs{neighbors};
    pairs.weight_stride = padded_atoms;
    pairs.weights = check.row(kMostDispersionReferences * padded_atoms, 0.1, 1).data();
    for (int q = 0; q < kMostDispersionReferences; ++q) {
        pairs.shares[q] = static_cast<Real>(check.numbers().between(1, 2));
        pairs.share_slopes[q] = static_cast<Real>(check.numbers().between(1, 2));
    }
    pairs.six = 1, pairs.eight = 3;
    for (const bool is_zero : {false, true})
        for (const bool fades : {false, true})
            for (const int references : {1, 2, 3, 5, 7}) {
                if (references != 3 && (is_zero || fades)) continue;
                pairs.reference_count = references;
                pairs.half_exponent = is_zero ? 7 : 0;
                pairs.six_radius = is_zero ? Real(4) : Real(300);
                pairs.eight_radius = is_zero ? Real(3) : Real(4000);
                pairs.fade_begin = fades ? Real(5) : Real(10), pairs.fade_end = Real(10);
                check.compare(
                    "sum_dispersion_pairs",
                    [&](const KernelTable<Real>& table, auto& out) {
                        DispersionSums<Real> sums;
                        table.sum_dispersion_pairs(pairs, sums);
                        store(sums, out[0]);
                    },
                    check.row(kSums));
            }
    DispersionCounts<Real> counts{neighbors};
    counts.reach = 6;
    counts.gradient = check.row(padded_atoms, 0.1, 1).data();
    counts.own_gradient = Real(0.5);
    check.compare(
        "sum_dispersion_counts",
        [&](const KernelTable<Real>& table, auto& out) {
            DispersionSums<Real> sums;
            table.sum_dispersion_counts(counts, sums);
            store(sums, out[0]);
        },
        check.row(kSums));
    check.compare(
        "reverse_dispersion_counts",
        [&](const KernelTable<Real>& table, auto& out) {
            DispersionSums<Real> sums;
            table.reverse_dispersion_counts(counts, sums);
            store(sums, out[0]);
        },
        check.row(kSums));
}

}  // namespace

template <class Real>
std::vector<KernelFault> find_kernel_faults(const KernelTable<Real>& table, uint64_t seed, bool is_small) {
    Comparison<Real> check(table, seed, is_small);
    check_dense(check);
    check_functions(check);
    check_messages(check);
    check_polynomial(check, check.size(15, 1, 20), check.size(6, 1, 60));
    check_painn_moments(check);
    check_painn_messages(check);
    check_painn_updates(check);
    check_activation(check);
    check_dispersion(check);
    check.compare(
        "multiply_add",
        [](const KernelTable<Real>& kernels, auto& out) {
            out[0][0] = 0;
            kernels.multiply_add(3, out[0].data());
        },
        check.row(1));
    return std::move(check.faults);
}
template std::vector<KernelFault> find_kernel_faults(const KernelTable<float>&, uint64_t, bool);
template std::vector<KernelFault> find_kernel_faults(const KernelTable<double>&, uint64_t, bool);

}  // namespace mlff::kernels
