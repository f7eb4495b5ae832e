// SPDX-License-Identifier: MIT
#include "tools/verify/verification.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>

#include <nlohmann/json.hpp>

#include "core/elements.h"
#include "core/error.h"
#include "core/matrix3.h"
#include "neighbors/lattice.h"
#include "tools/verify/evaluation.h"
#include "tools/verify/known_answers.h"
#include "tools/verify/probe_systems.h"

namespace mlff::verify {
namespace {

using validate::at_most;

constexpr size_t kElements = 4;                                          // tested as single atoms and pairs
constexpr double kDifferenceStep = 1e-3;                                 // angstrom, and strain
constexpr double kRoundedConstants = 1e-6;                               // rotation error of files in single precision,
                                                                         // whose rotation constants are rounded
constexpr double kPublishedTolerance = 1e-6, kPublishedRelative = 1e-9;  // the publishers' tolerance between machines

// Numbers in [-1, 1), the same on every machine.
std::vector<double> random_numbers(uint32_t seed, size_t count) {
    std::mt19937 engine(seed);
    std::vector<double> numbers;
    for (size_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(engine()) / 2147483648.0 - 1);
    return numbers;
}

// NaN is the worst, and is kept.
void keep_worse(double& worst, double value) {
    if (!std::isnan(worst) && !(value <= worst)) worst = value;
}

// The error that is largest relative to its limit.
struct Worst {
    double error = 0, limit = HUGE_VAL;
    void keep(double new_error, double new_limit) {
        if (std::isnan(error)) return;
        if (!(new_error / new_limit <= error / limit) || limit == HUGE_VAL) *this = {new_error, new_limit};
    }
};

// dE/ds at s = 0, to fourth order.
template <class Energy>
double slope(const Energy& energy) {
    const double h = kDifferenceStep;
    return (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h);
}

Frame transformed(const Mat3& matrix, Frame frame) {
    transform_vectors(matrix, frame.positions.data(), frame.atomic_numbers.size());
    if (frame.cell) transform_vectors(matrix, (*frame.cell)[0].data(), 3);
    return frame;
}

Mat3 rotation() {  // about a general axis
    const double a = 0.7, b = -1.1, c = 2.3;
    const double ca = std::cos(a), sa = std::sin(a), cb = std::cos(b), sb = std::sin(b), cc = std::cos(c),
                 sc = std::sin(c);
    return {{{ca * cb, ca * sb * sc - sa * cc, ca * sb * cc + sa * sc},
             {sa * cb, sa * sb * sc + ca * cc, sa * sb * cc - ca * sc},
             {-sb, cb * sc, cb * cc}}};
}

class Verifier {
public:
    Verifier(const std::shared_ptr<const Model>& model, const SessionOptions& options, const std::string& sha256,
             const std::function<void(const std::string&)>& on_check)
        : model_(model),
          options_(options),
          sha256_(sha256),
          on_check_(on_check),
          session_(model, options),
          bounds_(bounds_of(session_.precision())) {
        const std::vector<int>& known = model->summary().elements;
        probes_ = {probe_cluster(known), probe_crystal(known)};
    }

    Verification run() {
        found_ = {
            session_.device_name(), std::string(precision_name(session_.precision())), session_.head(), "", {}, {}};
        announce("published figures");
        check_published();
        announce("the probes");
        for (const Frame& probe : probes_) {
            alone_.push_back(evaluate(session_, probe));
            for (size_t atom = 0; atom < alone_.back().atom_energies.size(); ++atom)
                binding_ = std::max(binding_, std::abs(alone_.back().atom_energies[atom] -
                                                       isolated(probe.atomic_numbers[atom]).energy));
        }
        if (!std::isfinite(binding_)) binding_ = 1;  // non-finite energies get no tolerance
        announce("the fp64 reference");
        check_reference();
        announce("symmetries");
        check_symmetries();
        check_supercell();
        announce("batches, threads, repetition");
        check_batch();
        check_threads();
        check_repetition();
        announce("single atoms and pairs");
        check_cutoff();
        check_isolated();
        return found_;
    }

private:
    void announce(const std::string& what) const {
        if (on_check_) on_check_(what);
    }
    void add(std::string name, double value, double limit, std::string unit, std::string note = "") {
        found_.checks.push_back(at_most(std::move(name), value, limit, std::move(unit), std::move(note)));
    }
    void leave_out(const std::string& name, const std::string& reason) {
        found_.left_out.push_back(name + ": " + reason);
    }

    // One isolated atom of an element, evaluated once.
    const Evaluation& isolated(int z) {
        const auto found = isolated_.find(z);
        if (found != isolated_.end()) return found->second;
        Frame atom;
        atom.atomic_numbers = {z};
        atom.positions = {0.3, 0.2, 0.1};
        return isolated_.emplace(z, evaluate(session_, atom)).first->second;
    }
    double energy_limit() const { return bounds_.energy_per_atom * binding_; }
    double force_limit(const Evaluation& e) const { return bounds_.forces * std::max(1.0, largest_size(e.forces)); }
    double virial_limit(const Evaluation& e) const { return bounds_.virial * std::max(1.0, largest_size(e.virial)); }
    static double atoms(const Evaluation& e) { return static_cast<double>(e.forces.size()) / 3; }

    // Compares energies, forces and virials of all probes with the expected values.
    void compare_all(const std::string& with, const std::vector<Evaluation>& found,
                     const std::vector<Evaluation>& expected) {
        double energy = 0;
        Worst forces, virial;
        for (size_t i = 0; i < found.size(); ++i) {
            keep_worse(energy, std::abs(found[i].energy - expected[i].energy) / atoms(expected[i]));
            keep_worse(energy, largest_difference(found[i].atom_energies, expected[i].atom_energies));
            forces.keep(largest_difference(found[i].forces, expected[i].forces), force_limit(expected[i]));
            if (!found[i].virial.empty())
                virial.keep(largest_difference(found[i].virial, expected[i].virial), virial_limit(expected[i]));
        }
        add("energies against " + with, energy, energy_limit(), "eV/atom");
        add("forces against " + with, forces.error, forces.limit, "eV/A");
        if (virial.limit != HUGE_VAL) add("virials against " + with, virial.error, virial.limit, "eV");
    }

    void check_published() {
        const KnownModel* known = sha256_.empty() ? nullptr : find_known_model(sha256_, session_.head());
        if (!known) return leave_out("published figures", "none are known of this file");
        found_.published = known->name;
        if (!known->head.empty() && known->head != session_.head())
            return leave_out("published figures", "they are of head '" + known->head + "'");
        for (const KnownStructure& structure : known->structures) {
            const Frame& frame = structure.frame;
            const Evaluation found = evaluate(session_, frame);
            const auto limit = [&](double bound, double largest) {
                return std::max(bound, kPublishedTolerance + kPublishedRelative * largest);
            };
            const double strongest = largest_size(structure.forces);
            double binding = 1;
            for (size_t atom = 0; atom < structure.atom_energies.size(); ++atom)
                binding = std::max(
                    binding, std::abs(structure.atom_energies[atom] - isolated(frame.atomic_numbers[atom]).energy));
            const std::string of = " of " + structure.name;
            add("published energy" + of, std::abs(found.energy - structure.energy),
                limit(bounds_.energy_per_atom * binding * atoms(found), std::abs(structure.energy)), "eV");
            if (!found.atom_energies.empty())
                add("published energies of atoms" + of,
                    largest_difference(found.atom_energies, structure.atom_energies),
                    limit(bounds_.energy_per_atom * binding, largest_size(structure.atom_energies)), "eV");
            add("published forces" + of, largest_difference(found.forces, structure.forces),
                limit(bounds_.forces * std::max(1.0, strongest), strongest), "eV/A");
            if (structure.stress.empty() || found.virial.empty()) continue;
            std::vector<double> stress(6, NAN);
            Results results;
            results.stress = stress.data();
            const SystemView system = frame.view();
            session_.evaluate_unchecked({&system, 1}, {&results, 1});
            const double volume = stress_volume(system, model_->summary().cutoff);
            add("published stress" + of, largest_difference(stress, structure.stress),
                limit(virial_limit(found) / volume, largest_size(structure.stress)), "eV/A^3");
        }
    }

    // Compares with the plain loops of the reference, and with finite differences of its energies.
    void check_reference() {
        SessionOptions options = options_;
        options.device = "reference";
        options.precision = Precision::fp64;
        std::optional<Session> reference;
        try {
            reference.emplace(model_, options);
        } catch (const Error& error) {
            if (error.status() != Status::unsupported) throw;
            leave_out("the fp64 reference", error.what());
        }
        if (reference) compare_all("the fp64 reference", alone_, evaluate(*reference, probes_));
        // Low-precision energies are too coarse for finite differences.
        if (!reference && session_.precision() != Precision::fp64)
            return leave_out("finite differences", "they need energies in fp64");
        check_slopes(reference ? *reference : session_);
    }

    void check_slopes(Session& energies) {
        for (size_t i = 0; i < probes_.size(); ++i) {
            const Frame& probe = probes_[i];
            std::vector<double> direction = random_numbers(5 + static_cast<uint32_t>(i), probe.positions.size());
            double length = 0, expected = 0;
            for (double x : direction) length += x * x;
            for (size_t k = 0; k < direction.size(); ++k) {
                direction[k] /= std::sqrt(length);
                expected -= alone_[i].forces[k] * direction[k];
            }
            const double found = slope([&](double s) {
                Frame moved = probe;
                for (size_t k = 0; k < direction.size(); ++k) moved.positions[k] += s * direction[k];
                return evaluate(energies, moved).energy;
            });
            const double limit = force_limit(alone_[i]) * std::sqrt(static_cast<double>(direction.size())) +
                                 1e-6 * std::max(1.0, largest_size(alone_[i].forces));
            add(concat("forces against finite differences, ", probe.cell ? "crystal" : "cluster"),
                std::abs(found - expected), limit, "eV/A", "along a random direction");
        }
        if (alone_[1].virial.empty()) return leave_out("strained cells", "the model gives no virial");
        const Frame& crystal = probes_[1];
        const std::vector<double> r = random_numbers(9, 6);
        const Mat3 strain = {{{r[0], r[1], r[2]}, {r[1], r[3], r[4]}, {r[2], r[4], r[5]}}};
        double expected = 0;
        for (size_t k = 0; k < 9; ++k) expected -= alone_[1].virial[k] * strain[k / 3][k % 3];
        const double found = slope([&](double s) {
            Mat3 matrix = strain;
            for (size_t i = 0; i < 3; ++i)
                for (size_t j = 0; j < 3; ++j) matrix[i][j] = (i == j ? 1 : 0) + s * strain[i][j];
            return evaluate(energies, transformed(matrix, crystal)).energy;
        });
        add("virial against strained cells", std::abs(found - expected),
            6 * virial_limit(alone_[1]) + 1e-5 * std::max(1.0, largest_size(alone_[1].virial)), "eV",
            "along a random strain");
    }

    void check_symmetries() {
        // The constants in the file are part of the model, whatever the working precision.
        const double rounding = model_->summary().dtype == DType::float32 ? kRoundedConstants : 0;
        double energy = 0;
        const auto compare = [&](const std::string& name, const auto& change, const auto& forces_of) {
            Worst worst;
            for (size_t i = 0; i < probes_.size(); ++i) {
                const Evaluation changed = evaluate(session_, change(probes_[i]));
                const double forces = largest_difference(changed.forces, forces_of(alone_[i].forces)),
                             energies = std::abs(changed.energy - alone_[i].energy) / atoms(changed);
                worst.keep(forces, std::max(bounds_.forces, rounding) * std::max(1.0, largest_size(alone_[i].forces)));
                keep_worse(energy, energies);
            }
            add("forces under " + name, worst.error, worst.limit, "eV/A");
        };
        const auto turned_by = [](const Mat3& matrix) {
            return std::pair{[matrix](const Frame& frame) { return transformed(matrix, frame); },
                             [matrix](std::vector<double> forces) {
                                 transform_vectors(matrix, forces.data(), forces.size() / 3);
                                 return forces;
                             }};
        };
        const auto [rotate, rotated] = turned_by(rotation());
        compare("a rotation", rotate, rotated);
        const auto [invert, inverted] = turned_by({{{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}}});
        if (model_->summary().is_mirror_symmetric)
            compare("inversion", invert, inverted);
        else
            leave_out("forces under inversion", "the model has no parity, so mirror images differ");
        const auto same = [](const std::vector<double>& forces) { return forces; };
        compare(
            "a translation",
            [](Frame frame) {
                for (size_t i = 0; i < frame.positions.size(); ++i)
                    frame.positions[i] += std::array{3.7, -41.3, 12.9}[i % 3];
                return frame;
            },
            same);
        compare(
            "another order of the atoms",
            [](Frame frame) {
                std::reverse(frame.atomic_numbers.begin(), frame.atomic_numbers.end());
                std::reverse(frame.positions.begin(), frame.positions.end());  // turns x, y, z around, too
                for (size_t i = 0; i < frame.positions.size(); i += 3)
                    std::swap(frame.positions[i], frame.positions[i + 2]);
                return frame;
            },
            [](std::vector<double> forces) {
                std::reverse(forces.begin(), forces.end());
                for (size_t i = 0; i < forces.size(); i += 3) std::swap(forces[i], forces[i + 2]);
                return forces;
            });
        add("energies under all of these", energy, std::max(bounds_.energy_per_atom, rounding) * binding_, "eV/atom");
    }

    void check_supercell() {
        const Frame& crystal = probes_[1];
        Frame doubled = crystal;
        for (size_t atom = 0; atom < crystal.atomic_numbers.size(); ++atom) {
            doubled.atomic_numbers.push_back(crystal.atomic_numbers[atom]);
            for (size_t k = 0; k < 3; ++k)
                doubled.positions.push_back(crystal.positions[3 * atom + k] + (*crystal.cell)[0][k]);
        }
        for (double& x : (*doubled.cell)[0]) x *= 2;
        const Evaluation found = evaluate(session_, doubled);
        std::vector<double> expected = alone_[1].forces;
        expected.insert(expected.end(), alone_[1].forces.begin(), alone_[1].forces.end());
        add("forces in a doubled cell", largest_difference(found.forces, expected), force_limit(alone_[1]), "eV/A");
        add("energy of a doubled cell", std::abs(found.energy - 2 * alone_[1].energy) / atoms(found), energy_limit(),
            "eV/atom");
    }

    void check_batch() {
        std::vector<Frame> frames;
        std::vector<Evaluation> expected;
        for (int i = 0; i < 3; ++i)
            for (size_t p = 0; p < probes_.size(); ++p) {
                frames.push_back(probes_[p]);
                expected.push_back(alone_[p]);
            }
        compare_all("single systems, in a batch", evaluate(session_, frames), expected);
    }

    void check_threads() {
        if (session_.device().kind != Device::Kind::cpu)
            return leave_out("one thread against many",
                             "the work is not shared by threads on " + session_.device_name());
        if (session_.thread_count() == 1) return leave_out("one thread against many", "the session has one thread");
        SessionOptions options = options_;
        options.device = session_.device_name();
        options.thread_count = 1;
        Session one(model_, options);
        std::vector<Evaluation> found;
        for (const Frame& probe : probes_)
            found.push_back(evaluate(one, probe));  // one by one, as before: a batch may round differently
        check_bits(concat("one thread against ", session_.thread_count()), found);
    }
    // Evaluates the same atoms several times in a row, because backends cache data about them; then atoms that have
    // moved a little.
    void check_repetition() {
        SessionOptions options = options_;
        options.device = session_.device_name();
        Session other(model_, options);
        std::vector<Frame> near = probes_;
        std::vector<Evaluation> again, in_other, moved, expected;
        for (size_t i = 0; i < probes_.size(); ++i) {
            for (int call = 0; call < 4; ++call) {
                again.push_back(evaluate(session_, probes_[i]));
                in_other.push_back(evaluate(other, probes_[i]));
            }
            const std::vector<double> shake = random_numbers(41, near[i].positions.size());
            for (size_t k = 0; k < shake.size(); ++k) near[i].positions[k] += 0.02 * shake[k];
            moved.push_back(evaluate(session_, near[i]));
        }
        for (const Frame& frame : near)
            expected.push_back(evaluate(other, frame));  // follows other atoms, so it searches
        check_bits("the same call again", again);
        check_bits("another session", in_other);
        compare_all("a search for neighbours anew, atoms moved a little", moved, expected);
    }
    void check_bits(const std::string& name, const std::vector<Evaluation>& found) {
        double difference = 0;
        const size_t calls = found.size() / alone_.size();  // of each probe
        for (size_t i = 0; i < found.size(); ++i) {
            const Evaluation& first = alone_[i / calls];
            if (found[i] == first) continue;
            const double forces =
                std::max(largest_difference(found[i].forces, first.forces), std::abs(found[i].energy - first.energy));
            difference = std::isnan(forces) ? forces : std::max({difference, forces, 1e-300});
        }
        add(name, difference, 0, "eV, eV/A", "the very same numbers");
    }

    // The energy and the forces of a pair must go to zero at the cutoff.
    void check_cutoff() {
        const std::vector<int> elements = probe_elements(model_->summary().elements, kElements);
        const double cutoff = model_->summary().reach(), step = 1e-4;
        if (!(cutoff > 0)) return leave_out("smoothness at the cutoff", "the model has none");
        double jump = 0, force = 0;
        for (int z : elements) {
            Frame pair;
            pair.atomic_numbers = {elements.front(), z};
            pair.positions = {0, 0, 0, (cutoff - step) * 0.6, 0, (cutoff - step) * 0.8};
            const Evaluation inside = evaluate(session_, pair);
            pair.positions[3] = (cutoff + step) * 0.6;
            pair.positions[5] = (cutoff + step) * 0.8;
            const Evaluation outside = evaluate(session_, pair);
            const double change = std::abs(inside.energy - outside.energy),
                         strongest = std::max(largest_size(inside.forces), largest_size(outside.forces));
            keep_worse(jump, change);
            keep_worse(force, strongest);
        }
        add("energy of a pair that crosses the cutoff", jump, 1e-6 + 2 * bounds_.energy_per_atom, "eV");
        add("force on a pair at the cutoff", force, 1e-3 + bounds_.forces, "eV/A");
    }

    void check_isolated() {
        const std::vector<int> elements = probe_elements(model_->summary().elements, kElements);
        const double far = 10 * std::max(1.0, model_->summary().reach());
        Frame spread;
        double sum = 0, force = 0;
        for (int z : elements) {
            const Evaluation& found = isolated(z);
            sum += found.energy;
            keep_worse(force, largest_size(found.forces));
            spread.positions.insert(spread.positions.end(),
                                    {far * static_cast<double>(spread.atomic_numbers.size()), 0.2, 0.1});
            spread.atomic_numbers.push_back(z);
        }
        add("force on an isolated atom", force, 0, "eV/A");
        add("energy of isolated atoms together",
            std::abs(evaluate(session_, spread).energy - sum) / static_cast<double>(elements.size()),
            bounds_.energy_per_atom, "eV/atom");
    }

    std::shared_ptr<const Model> model_;
    SessionOptions options_;
    std::string sha256_;
    const std::function<void(const std::string&)>& on_check_;
    Session session_;
    Bounds bounds_;
    std::vector<Frame> probes_;  // the cluster and the crystal
    std::vector<Evaluation> alone_;
    std::map<int, Evaluation> isolated_;  // by atomic number
    double binding_ = 1;                  // eV, of the most strongly bound or repelled atom; at least 1
    Verification found_;
};

}  // namespace

Bounds bounds_of(Precision precision) {
    if (precision == Precision::fp64) return {1e-9, 1e-8, 1e-8};
    if (precision == Precision::fast) return {2e-3, 2e-2, 5e-2};
    return {2e-5, 1e-4, 2e-4};
}

bool Verification::is_passed() const {
    return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.is_passed(); });
}

Verification verify_model(const std::shared_ptr<const Model>& model, const SessionOptions& options,
                          const std::string& sha256, const std::function<void(const std::string&)>& on_check) {
    return Verifier(model, options, sha256, on_check).run();
}

nlohmann::json verification_json(const Verification& verification) {
    nlohmann::json checks = nlohmann::json::array();
    for (const Check& check : verification.checks) {
        nlohmann::json entry = {{"name", check.name},
                                {"value", nullptr},
                                {"limit", check.upper},
                                {"unit", check.unit},
                                {"passed", check.is_passed()}};
        if (std::isfinite(check.value)) entry["value"] = check.value;  // null: NaN
        if (!check.note.empty()) entry["note"] = check.note;
        checks.push_back(std::move(entry));
    }
    nlohmann::json result = {{"device", verification.device}, {"precision", verification.precision},
                             {"head", verification.head},     {"passed", verification.is_passed()},
                             {"checks", std::move(checks)},   {"left_out", verification.left_out}};
    result["published"] = nullptr;
    if (!verification.published.empty()) result["published"] = verification.published;
    return result;
}

}  // namespace mlff::verify
