// SPDX-License-Identifier: MIT
// The reference of SevenNet and Nequix: stages and models against finite differences, and what must hold for any model.
// test_goldens.cpp has its numbers.
#include <doctest/doctest.h>

#include <functional>

#include "core/error.h"
#include "nequip/functions/norm.h"
#include "nequip/reference/evaluator.h"
#include "test_mace_backends.h"
#include "test_nequip_support.h"

using namespace mace_test;
using mlff::Status;
using nequip::Weights;

namespace {

// With onset, modalities, norm, unnormalised harmonics, biases and odd scalars; see tests/golden/nequip/README.md.
constexpr std::array kVaried = {"p08_bias_fcn_readout",        "p10_three_modals_all_flags", "p11_v093_old_signs_f32",
                                "p12_v093_names_of_22may_f32", "p15_other_activations",      "n02_indexed_skip_no_norm",
                                "n03_lmax1_two_layers"};

class Reference {
public:
    explicit Reference(const std::string& name)
        : weights(std::make_shared<const Weights>(nequip_test::load(nequip_test::goldens().at(name)))),
          evaluator_(weights) {}

    Result evaluate(const System& system, int threads = 1) {
        const size_t descriptors = system.numbers.size() * static_cast<size_t>(weights->descriptor_count());
        return mace_test::evaluate(evaluator_, *weights, system, threads, descriptors);
    }
    double energy(const System& system) { return evaluate(system).energy; }

    std::shared_ptr<const Weights> weights;

private:
    nequip::reference::ReferenceEvaluator evaluator_;
};

// df/dx of f(x + step), to fourth order. Steps are short, for p08 has a network with relu.
double slope(const std::function<double(double step)>& f) {
    constexpr double kStep = 2e-4;
    return (8 * (f(kStep) - f(-kStep)) - (f(2 * kStep) - f(-2 * kStep))) / (12 * kStep);
}

void check_same(const Result& found, const Result& expected, double tolerance) {
    CHECK(std::abs(found.energy - expected.energy) <= tolerance * std::max(1.0, std::abs(expected.energy)));
    check_close(found.forces, expected.forces, tolerance);
    check_close(found.atom_energies, expected.atom_energies, tolerance);
    check_close(found.descriptors, expected.descriptors, tolerance);
}

// About the axis (1, 1, 1).
Mat3 rotation() {
    const double c = std::cos(0.8), s = std::sin(0.8) / std::sqrt(3.0), t = (1 - c) / 3;
    return {{{t + c, t - s, t + s}, {t + s, t + c, t - s}, {t - s, t + s, t + c}}};
}

}  // namespace

TEST_CASE("nequip reference: the norm and its reverse") {
    const Irreps irreps = Irreps::parse("3x0e+2x0o+2x1o+1x2e");
    std::mt19937 random(11);
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto numbers = [&](size_t count) {
        std::vector<double> values(count);
        for (double& value : values) value = uniform(random);
        return values;
    };
    nequip::Norm norm = {numbers(8), 1e-3};
    const auto size = static_cast<size_t>(irreps.dimension());
    const std::vector<double> in = numbers(size), weights = numbers(size);
    std::vector<double> out(size), gradient(size, NAN), expected(size);
    nequip::compute_norm(norm, irreps, in.data(), out.data());
    double s = 0;  // of the formula, block by block
    for (size_t i = 0; i < size; ++i) s += in[i] * in[i] / (i < 5 ? 1.0 : i < 11 ? 9.0 : 25.0) / 4;
    for (size_t i = 0; i < size; ++i) {
        const size_t copy = i < 5 ? i : i < 11 ? 5 + (i - 5) / 3 : 7;
        CHECK(out[i] == doctest::Approx(in[i] * norm.scale[copy] / std::sqrt(s + norm.epsilon)).epsilon(1e-14));
    }
    nequip::reverse_norm(norm, irreps, in.data(), weights.data(), gradient.data());
    for (size_t i = 0; i < size; ++i)
        expected[i] = slope([&](double step) {
            std::vector<double> moved = in;
            moved[i] += step;
            nequip::compute_norm(norm, irreps, moved.data(), out.data());
            double sum = 0;
            for (size_t k = 0; k < size; ++k) sum += weights[k] * out[k];
            return sum;
        });
    check_close(gradient, expected, 1e-9);
}

TEST_CASE("nequip reference: forces and the virial are slopes of the energy") {
    for (const std::string name : kVaried) {
        CAPTURE(name);
        Reference model(name);
        const System system = random_crystal(*model.weights, 5, 5, 5.5);
        const Result found = model.evaluate(system);
        std::vector<double> forces(found.forces.size()), virial(9);
        for (size_t i = 0; i < forces.size(); ++i)
            forces[i] = -slope([&](double step) {
                System moved = system;
                moved.positions[i] += step;
                return model.energy(moved);
            });
        check_close(found.forces, forces, 2e-7);
        for (size_t a = 0; a < 3; ++a)
            for (size_t b = 0; b < 3; ++b)
                virial[3 * a + b] = -slope([&](double step) {
                    Mat3 strain = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
                    strain[a][b] += step / 2;
                    strain[b][a] += step / 2;
                    return model.energy(transformed(system, strain, 0));
                });
        // Couplings that a file stores in single precision are not exactly invariant.
        check_close(found.virial, virial, 1e-6);
    }
}

TEST_CASE("nequip reference: rotations, translations, order of atoms, copies of the cell, threads") {
    for (const std::string name : kVaried) {
        CAPTURE(name);
        Reference model(name);
        const System system = random_crystal(*model.weights, 7, 6, 6.0);
        const Result first = model.evaluate(system);
        const size_t atoms = system.numbers.size();

        std::vector<double> force(3, 0.0), virial(9, 0.0);
        for (size_t i = 0; i < first.forces.size(); ++i) force[i % 3] += first.forces[i];
        for (size_t i = 0; i < first.atom_virials.size(); ++i) virial[i % 9] += first.atom_virials[i];
        CHECK(largest_size(force) <= 1e-11 * std::max(1.0, largest_size(first.forces)));
        check_close(virial, first.virial, 1e-12);

        const Mat3 turn = rotation();
        Result turned = first;
        for (size_t i = 0; i < 3 * atoms; i += 3)
            for (size_t k = 0; k < 3; ++k)
                turned.forces[i + k] =
                    turn[k][0] * first.forces[i] + turn[k][1] * first.forces[i + 1] + turn[k][2] * first.forces[i + 2];
        check_same(model.evaluate(transformed(system, turn, 0)), turned, 1e-6);
        check_same(model.evaluate(transformed(system, {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, 11.7)), first, 1e-10);

        System swapped = system;
        std::swap(swapped.numbers[0], swapped.numbers[atoms - 1]);
        std::swap_ranges(swapped.positions.begin(), swapped.positions.begin() + 3, swapped.positions.end() - 3);
        Result back = model.evaluate(swapped);
        std::swap_ranges(back.forces.begin(), back.forces.begin() + 3, back.forces.end() - 3);
        std::swap(back.atom_energies[0], back.atom_energies[atoms - 1]);
        const std::ptrdiff_t row = model.weights->descriptor_count();
        std::swap_ranges(back.descriptors.begin(), back.descriptors.begin() + row, back.descriptors.end() - row);
        check_same(back, first, 1e-11);

        System doubled = system;
        doubled.numbers.insert(doubled.numbers.end(), system.numbers.begin(), system.numbers.end());
        for (size_t i = 0; i < 3 * atoms; ++i) doubled.positions.push_back(system.positions[i] + system.cell[1][i % 3]);
        for (double& value : doubled.cell[1]) value *= 2;
        const Result two = model.evaluate(doubled);
        std::vector<double> forces = first.forces;
        forces.insert(forces.end(), first.forces.begin(), first.forces.end());
        CHECK(std::abs(two.energy - 2 * first.energy) <= 1e-11 * std::max(1.0, std::abs(first.energy)));
        check_close(two.forces, forces, 1e-11);

        const Result again = model.evaluate(system, 3);
        CHECK(again.energy == first.energy);
        CHECK(again.forces == first.forces);
        CHECK(again.atom_virials == first.atom_virials);
    }
}

TEST_CASE("nequip reference: no edges, no atoms, an element that is not known") {
    for (const std::string name : kVaried) {
        CAPTURE(name);
        Reference model(name);
        System far;
        far.numbers = {model.weights->atomic_numbers.front()};
        far.positions = {0, 0, 0};
        const Result one = model.evaluate(far);
        CHECK(std::isfinite(one.energy));
        CHECK(largest_size(one.forces) == 0);
        CHECK(largest_size(one.virial) == 0);
        far.numbers.push_back(far.numbers[0]);
        far.positions = {0, 0, 0, 50, 0, 0};
        CHECK(std::abs(model.energy(far) - 2 * one.energy) <= 1e-12 * std::max(1.0, std::abs(one.energy)));
        CHECK(model.energy(System()) == 0);

        far.numbers[1] = 118;
        try {
            model.evaluate(far);
            FAIL("expected an Error");
        } catch (const Error& error) {
            CHECK(error.status() == Status::system);
            CHECK(std::string(error.what()).find("atom 1 has atomic number 118") == 0);
        }
    }
}
