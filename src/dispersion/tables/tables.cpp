// SPDX-License-Identifier: MIT
#include "dispersion/tables/tables.h"

#include <algorithm>
#include <cmath>

#include "core/embed_file.h"
#include "core/error.h"
#include "dispersion/tables/units.h"
#include "formats/safetensors.h"

MLFF_EMBED_FILE(mlff_d3_reference, MLFF_D3_REFERENCE_FILE)

namespace mlff::dispersion {
namespace {

// The published numbers, in bohr and hartree (radii in angstrom). Element indices are atomic number - 1.
class ReferenceData {
public:
    static const ReferenceData& get() {
        static const ReferenceData data;
        return data;
    }

    int count(int element) const { return static_cast<int>(counts_[at(element)]); }
    double coordination(int element, int p) const { return coordination_[at(first_[at(element)] + p)]; }
    double c6(int first, int p, int second, int q) const {
        return c6_[triangle(first_[at(first)] + p, first_[at(second)] + q)];
    }
    double covalent(int element) const { return covalent_[at(element)]; }
    double radius(int first, int second) const { return radii_[triangle(first, second)]; }
    // C8 / C6 = 3 moment moment
    double moment(int element) const { return std::sqrt(0.5 * moments_[at(element)] * std::sqrt(element + 1.0)); }

private:
    ReferenceData() {
        const Safetensors file = read_safetensors(MLFF_EMBEDDED(mlff_d3_reference), "the D3 reference data");
        counts_ = find(file, "count").to_integers();
        int64_t next = 0;
        for (const int64_t count : counts_) {
            first_.push_back(static_cast<int>(next));
            next += count;
        }
        coordination_ = numbers(file, "coordination", next);
        c6_ = numbers(file, "c6", next * (next + 1) / 2);
        moments_ = numbers(file, "moments", kElementCount);
        covalent_ = numbers(file, "covalent", kElementCount);
        radii_ = numbers(file, "radii", kElementCount * (kElementCount + 1) / 2);
    }

    static size_t at(int index) { return static_cast<size_t>(index); }
    static size_t triangle(int row, int column) {
        const size_t low = at(std::min(row, column)), high = at(std::max(row, column));
        return high * (high + 1) / 2 + low;
    }
    static const Tensor& find(const Safetensors& file, std::string_view name) {
        const Tensor* tensor = file.find(name);
        if (!tensor) fail(Status::internal, "the D3 reference data inside the library is damaged");
        return *tensor;
    }
    static std::vector<double> numbers(const Safetensors& file, std::string_view name, int64_t expected_count) {
        constexpr double kScale = 10000;
        std::vector<double> values = find(file, name).to_doubles();
        if (static_cast<int64_t>(values.size()) != expected_count)
            fail(Status::internal, "the D3 reference data inside the library is damaged");
        for (double& value : values) value /= kScale;
        return values;
    }

    std::vector<int64_t> counts_;
    std::vector<int> first_;
    std::vector<double> coordination_, c6_, moments_, covalent_, radii_;
};

PairForm<double> form_of(const Damping& damping, double c8_share, double radius) {
    PairForm<double> form{.six = damping.s6, .eight = damping.s8 * c8_share};
    if (damping.kind == DampingKind::bj) {
        const double square = whole_power(damping.a1 * std::sqrt(c8_share) + damping.a2 * kBohr, 2);
        form.six_radius = whole_power(square, 3);
        form.eight_radius = whole_power(square, 4);
    } else {
        form.six_radius = whole_power(damping.rs6 * radius, 2);
        form.eight_radius = whole_power(damping.rs8 * radius, 2);
    }
    return form;
}

}  // namespace

Tables make_tables(const std::vector<int>& elements, const Method& method) {
    constexpr double kScale = 4.0 / 3.0, kBohr6 = kBohr * kBohr * kBohr * kBohr * kBohr * kBohr;
    const ReferenceData& data = ReferenceData::get();
    Tables tables;
    tables.elements = elements;
    tables.method = method;
    tables.slot.assign(kElementCount + 1, -1);
    const size_t count = elements.size();
    tables.reference_counts.assign(count * kMaxReferences, 0);
    tables.c6.assign(count * count * kMaxReferences * kMaxReferences, 0);
    for (size_t i = 0; i < count; ++i) {
        const int first = elements[i] - 1;
        tables.slot[static_cast<size_t>(elements[i])] = static_cast<int32_t>(i);
        tables.reference_count.push_back(data.count(first));
        tables.covalent_radius.push_back(kScale * data.covalent(first));
        for (int p = 0; p < data.count(first); ++p)
            tables.reference_counts[i * kMaxReferences + static_cast<size_t>(p)] = data.coordination(first, p);
        for (size_t j = 0; j < count; ++j) {
            const int second = elements[j] - 1;
            const double c8_share = 3 * data.moment(first) * data.moment(second) * kBohr * kBohr;
            tables.forms.push_back(form_of(method.damping, c8_share, data.radius(first, second)));
            tables.pair_radius.push_back(kScale * data.radius(first, second));
            double* c6 = tables.c6.data() + (i * count + j) * kMaxReferences * kMaxReferences;
            for (int p = 0; p < data.count(first); ++p)
                for (int q = 0; q < data.count(second); ++q)
                    c6[p * kMaxReferences + q] = kHartree * kBohr6 * data.c6(first, p, second, q);
        }
    }
    return tables;
}

}  // namespace mlff::dispersion
