// SPDX-License-Identifier: MIT
// Committees against their members, on every device: means, spreads, batches; their names, and lists of members.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "close.h"
#include "committee/member_list.h"
#include "committee/model.h"
#include "core/error.h"
#include "engine/committee_name.h"
#include "engine/session.h"
#include "test_gpu_support.h"

using namespace mlff;

namespace {

struct Atoms {
    std::vector<int32_t> numbers;
    std::vector<double> positions;
    Mat3 cell{};
    bool is_periodic = false;

    SystemView view() const {
        SystemView view;
        view.atom_count = static_cast<int64_t>(numbers.size());
        view.atomic_numbers = numbers.data();
        view.positions = positions.data();
        view.cell = cell;
        view.periodic = {is_periodic, is_periodic, is_periodic};
        return view;
    }
};

Atoms random_atoms(unsigned seed, int count, bool is_periodic) {
    std::mt19937 random(seed);
    const int side = static_cast<int>(std::ceil(std::cbrt(count)));
    std::uniform_real_distribution<double> shift(-0.15, 0.15);
    Atoms atoms;
    for (int i = 0; i < count; ++i) {
        atoms.numbers.push_back(std::vector<int>{1, 6, 7, 8}[random() % 4]);
        for (const int place : {i % side, i / side % side, i / side / side})
            atoms.positions.push_back(1.8 * place + shift(random));
    }
    atoms.is_periodic = is_periodic;
    for (size_t k = 0; is_periodic && k < 3; ++k) atoms.cell[k][k] = 1.8 * side + 0.5;
    return atoms;
}

// All results that models alone have, in one array: energy, virial, forces, energies and virials of atoms.
struct Found {
    std::vector<double> all, sigma_forces;
    double sigma_energy = NAN, sigma_max = NAN;

    explicit Found(size_t atoms) : all(10 + 13 * atoms, NAN), sigma_forces(atoms, NAN) {}
    size_t atom_count() const { return sigma_forces.size(); }
    Results results(bool has_spread) {
        Results results;
        Outputs& to = results.outputs;
        to.energy = all.data();
        to.virial = all.data() + 1;
        to.forces = all.data() + 10;
        to.atom_energies = to.forces + 3 * atom_count();
        to.atom_virials = to.atom_energies + atom_count();
        if (!has_spread) return results;
        to.sigma_energy_per_atom = &sigma_energy;
        to.sigma_forces = sigma_forces.data();
        results.sigma_max_force = &sigma_max;
        return results;
    }
};

SessionOptions on(const std::string& device, Precision precision, int thread_count = 2) {
    SessionOptions options;
    options.device = device;
    options.precision = precision;
    options.thread_count = thread_count;
    return options;
}

Found evaluate(Session& session, const Atoms& atoms, bool has_spread) {
    Found found(atoms.numbers.size());
    const SystemView view = atoms.view();
    const Results results = found.results(has_spread);
    session.evaluate({&view, 1}, {&results, 1});
    return found;
}

// The definitions, in two passes.
Found expected_of(const std::vector<Found>& members, const std::vector<double>& weights) {
    Found expected(members[0].atom_count());
    const size_t atoms = expected.atom_count();
    std::fill(expected.all.begin(), expected.all.end(), 0.0);
    for (size_t m = 0; m < members.size(); ++m)
        for (size_t i = 0; i < expected.all.size(); ++i) expected.all[i] += weights[m] * members[m].all[i];
    std::vector<double> variances(1 + atoms, 0.0);
    for (size_t m = 0; m < members.size(); ++m) {
        const auto square = [&](size_t i) { return std::pow(members[m].all[i] - expected.all[i], 2); };
        variances[0] += weights[m] * square(0);
        for (size_t i = 0; i < 3 * atoms; ++i) variances[1 + i / 3] += weights[m] * square(10 + i);
    }
    expected.sigma_energy = std::sqrt(variances[0]) / static_cast<double>(atoms);
    expected.sigma_max = 0;
    for (size_t atom = 0; atom < atoms; ++atom) {
        expected.sigma_forces[atom] = std::sqrt(variances[1 + atom]);
        expected.sigma_max = std::max(expected.sigma_max, expected.sigma_forces[atom]);
    }
    return expected;
}

void check_spread(const Found& found, const Found& expected, double tolerance) {
    CHECK_ALL_CLOSE(found.sigma_forces, expected.sigma_forces, tolerance);
    CHECK(test::is_close(found.sigma_energy, expected.sigma_energy, tolerance));
    CHECK(test::is_close(found.sigma_max, expected.sigma_max, tolerance));
}

struct Case {
    std::string name;
    std::vector<std::string> members;
};
// The longest cutoff is first in one, and in the middle in the other, which also has a sum as a member.
const Case kCommittees[] = {{"builtin,self-test", {"builtin", "self-test"}},
                            {"zbl,builtin+zbl,self-test", {"zbl", "builtin+zbl", "self-test"}}};

void check_committees_on(const std::string& device, Precision precision, double tolerance) {
    CAPTURE(device);
    CAPTURE(precision_name(precision));
    for (const Case& committee : kCommittees) {
        CAPTURE(committee.name);
        Session session(load_model(committee.name), on(device, precision));
        const std::vector<double> weights(committee.members.size(),
                                          1.0 / static_cast<double>(committee.members.size()));
        std::vector<Atoms> systems;
        std::vector<Found> expected;
        for (const int count : {20, 1, 9})
            for (const bool is_periodic : {false, true}) {
                Atoms atoms = random_atoms(5, count, is_periodic);
                const std::vector<int>& known = session.model().summary().elements;
                for (int32_t& z : atoms.numbers)
                    if (std::find(known.begin(), known.end(), z) == known.end()) z = known.front();
                std::vector<Found> alone;
                for (const std::string& member : committee.members) {
                    Session only(load_model(member), on(device, precision));
                    alone.push_back(evaluate(only, atoms, false));
                }
                systems.push_back(atoms);
                expected.push_back(expected_of(alone, weights));
            }
        CHECK(expected[0].sigma_max > 0.1);
        for (const Found& each : expected) CHECK(each.sigma_max < 1e3);  // distances that the models are made for
        // Energies of self-test and builtin differ by thousands of eV; their virials, too, are large.
        const auto scale = [&](const Found& of) {
            double largest = 1;
            for (const double number : of.all) largest = std::max(largest, std::abs(number));
            return largest * tolerance;
        };
        for (size_t s = 0; s < systems.size(); ++s) {
            CAPTURE(s);
            for (const bool has_spread : {true, true, false}) {  // plain, then as a graph
                const Found found = evaluate(session, systems[s], has_spread);
                CHECK_ALL_CLOSE(found.all, expected[s].all, scale(expected[s]));
                if (has_spread) check_spread(found, expected[s], scale(expected[s]));
            }
        }
        std::vector<Found> found;
        std::vector<SystemView> views;
        std::vector<Results> results;
        for (const Atoms& atoms : systems) found.emplace_back(atoms.numbers.size());
        for (size_t s = 0; s < systems.size(); ++s) {
            views.push_back(systems[s].view());
            results.push_back(found[s].results(s != 2));
        }
        session.evaluate(views, results);
        for (size_t s = 0; s < systems.size(); ++s) {
            CHECK_ALL_CLOSE(found[s].all, expected[s].all, scale(expected[s]));
            if (s != 2) check_spread(found[s], expected[s], scale(expected[s]));
        }
    }
}

// The error of `call`; "" if it works.
template <class Call>
std::string message_of(Status status, const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.status() == status);
        return error.what();
    }
    return "";
}
std::string refusal_of_name(const std::string& name, Status status) {
    return message_of(status, [&] { load_model(name); });
}
bool has(const std::string& text, const std::string& part) {
    CAPTURE(text);
    return text.find(part) != std::string::npos;
}

class Folder {
public:
    explicit Folder(const std::string& name) : path_(std::filesystem::temp_directory_path() / name) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string file(const std::string& name, const std::string& text) const {
        std::ofstream(path_ / name) << text;
        return path(name);
    }
    std::string path(const std::string& name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

}  // namespace

TEST_CASE("committees are the means of their members, with their spread, alone and in batches") {
    check_committees_on("reference", Precision::fp64, 1e-11);
    check_committees_on("cpu", Precision::fp64, 1e-10);
    check_committees_on("cpu", Precision::mixed, 1e-6);
}

TEST_CASE("on a GPU: committees are the means of their members, with their spread, alone and in batches") {
    if (!has_gpu()) return;
    check_committees_on("cuda", Precision::fp64, 1e-10);
    check_committees_on("cuda", Precision::mixed, 1e-6);
    // Bits repeat, and members that agree have no spread.
    for (const Precision precision : {Precision::fp64, Precision::mixed}) {
        Session committee(load_model("builtin,builtin,builtin"), on("cuda", precision)),
            alone(load_model("builtin"), on("cuda", precision));
        const Atoms atoms = random_atoms(8, 60, true);
        const Found found = evaluate(committee, atoms, true);
        CHECK(found.all == evaluate(alone, atoms, false).all);
        CHECK(found.sigma_forces == std::vector<double>(60, 0.0));
        CHECK(evaluate(committee, atoms, true).all == found.all);
    }
}

TEST_CASE("on a GPU: results of committees in device memory have no spread") {
    if (!has_gpu()) return;
    Session session(load_model("builtin,self-test"), on("cuda", Precision::fp64));
    Found found(2);
    const Atoms atoms = {{1, 1}, {0, 0, 0, 0.74, 0, 0}};
    CHECK(has(message_of(Status::unsupported,
                         [&] { session.evaluate_on_device(atoms.view(), found.results(true), nullptr); }),
              "use host memory"));
}

TEST_CASE("a committee of members that agree is its member, with no spread, and bits do not depend on threads") {
    const Atoms atoms = random_atoms(3, 40, true);
    Session alone(load_model("builtin"), on("cpu", Precision::mixed, 1)),
        committee(load_model("builtin,builtin,builtin"), on("cpu", Precision::mixed, 1));
    const Found found = evaluate(committee, atoms, true);
    CHECK(found.all == evaluate(alone, atoms, false).all);
    CHECK(found.sigma_forces == std::vector<double>(40, 0.0));
    CHECK(found.sigma_energy == 0.0);
    CHECK(found.sigma_max == 0.0);

    Session one(load_model("builtin,self-test"), on("cpu", Precision::mixed, 1)),
        two(load_model("builtin,self-test"), on("cpu", Precision::mixed, 2));
    const Found first = evaluate(one, atoms, true), second = evaluate(two, atoms, true);
    CHECK(first.all == second.all);
    CHECK(first.sigma_forces == second.sigma_forces);
    CHECK(first.sigma_energy == second.sigma_energy);
}

TEST_CASE("each part of a spread can be asked for alone, and there may be no atoms") {
    Session session(load_model("builtin,self-test"), on("cpu", Precision::fp64));
    const Atoms atoms = random_atoms(4, 9, false), nothing;
    const Found expected = evaluate(session, atoms, true);
    for (const int part : {0, 1, 2}) {
        Found found(9);
        Results results;
        if (part == 0) results.outputs.sigma_energy_per_atom = &found.sigma_energy;
        if (part == 1) results.outputs.sigma_forces = found.sigma_forces.data();
        if (part == 2) results.sigma_max_force = &found.sigma_max;
        const SystemView view = atoms.view();
        session.evaluate({&view, 1}, {&results, 1});
        if (part == 0) CHECK(found.sigma_energy == expected.sigma_energy);
        if (part == 1) CHECK(found.sigma_forces == expected.sigma_forces);
        if (part == 2) CHECK(found.sigma_max == expected.sigma_max);
    }
    const Found empty = evaluate(session, nothing, true);
    CHECK(empty.all == std::vector<double>(10, 0.0));
    CHECK(empty.sigma_energy == 0.0);
    CHECK(empty.sigma_max == 0.0);
}

TEST_CASE("spreads are refused where there are none") {
    const Atoms atoms = random_atoms(4, 4, false);
    Session single(load_model("builtin"), on("cpu", Precision::fp64)),
        committee(load_model("builtin,zbl"), on("cpu", Precision::fp64));
    CHECK(has(message_of(Status::unsupported, [&] { evaluate(single, atoms, true); }), "no committee"));
    Found found(4);
    const int64_t first[] = {0, 0, 0, 0, 0};
    struct Silence : HaloExchange {
        void exchange(const void*, void*, size_t) override {}
    } silence;
    mlff::Domain domain;
    domain.atoms = atoms.view();
    domain.owned_count = 4;
    domain.first = first;
    domain.halo.exchange = &silence;
    CHECK(has(message_of(Status::unsupported, [&] { committee.evaluate_domain(domain, found.results(true).outputs); }),
              "ask for deviations"));
    Results deviations;
    deviations.outputs.force_deviations = found.all.data();
    const SystemView view = atoms.view();
    CHECK(has(message_of(Status::argument,
                         [&] {
                             committee.evaluate({&view, 1}, {&deviations, 1});
                         }),
              "only domains have them"));
    CHECK(has(message_of(Status::unsupported, [&] { single.evaluate_domain(domain, deviations.outputs); }),
              "no committee"));
}

TEST_CASE("names of committees") {
    using Names = std::vector<std::string>;
    CHECK(committee_members("a.model").empty());
    CHECK(committee_members("a,b+zbl,c") == Names{"a", "b+zbl", "c"});
    CHECK(committee_members("d3:s8=0.7,a1=0.4").empty());
    CHECK(committee_members("x.model+d3:s8=0.7,a1=0.4").empty());
    CHECK(committee_members("x.model+d3:s8=0.7,a1=0.4,y.model") == Names{"x.model+d3:s8=0.7,a1=0.4", "y.model"});
    CHECK(committee_members("a,b=1.model") == Names{"a", "b=1.model"});
    CHECK(committee_members("a,") == Names{"a", ""});
    const Folder folder("mlff_committee_names");
    CHECK(committee_members(folder.file("a,b", "")).empty());  // a file of that name

    CHECK(has(refusal_of_name("builtin,", Status::argument), "no model beside it"));
    CHECK(has(refusal_of_name(",builtin", Status::argument), "no model beside it"));
    CHECK(has(refusal_of_name("builtin,no-such.model", Status::file), "no-such.model"));
    std::string many = "zbl";
    for (int i = 0; i < 64; ++i) many += ",zbl";
    CHECK(has(refusal_of_name(many, Status::argument), "65 members"));
    const auto model = load_model("builtin,self-test");
    CHECK(model->summary().member_count == 2);
    CHECK(model->summary().elements == std::vector<int>{1, 6, 7, 8});
    CHECK(load_model("builtin")->summary().member_count == 0);
}

TEST_CASE("committees from members: weights, heads and elements") {
    const auto builtin = load_model("builtin"), self_test = load_model("self-test"), zbl = load_model("zbl");
    const auto make = [](std::vector<CommitteeMember> members) { make_committee_model(std::move(members), "here"); };
    CHECK(has(message_of(Status::argument, [&] { make({{"one", builtin}}); }), "expected two or more"));
    CHECK(has(message_of(Status::argument, [&] { make({{"a", builtin, 1e300}, {"b", zbl, 1e-300}}); }), "too small"));
    CHECK(has(message_of(Status::unsupported,
                         [&] {
                             make({{"a", load_model("builtin,zbl")}, {"b", builtin}});
                         }),
              "a committee itself"));
    const auto two_heads = load_model(MLFF_GOLDEN_DIR "/p07_nonlinear_mh.model");
    const auto both = make_committee_model({{"a", two_heads}, {"b", two_heads}}, "here");
    for (const std::string head : {"omat_pbe", "omol"}) {
        SessionOptions options = on("cpu", Precision::fp64);
        options.head = head;
        Session committee(both, options), alone(two_heads, options);
        Atoms atoms = random_atoms(2, 6, false);
        for (int32_t& z : atoms.numbers) z = two_heads->summary().elements.front();
        CHECK(evaluate(committee, atoms, true).all == evaluate(alone, atoms, false).all);
    }
    const auto mixed = make_committee_model({{"a", zbl}, {"b", two_heads}}, "here");
    CHECK(has(message_of(Status::argument, [&] { Session session(mixed, on("cpu", Precision::fp64)); }), "no head"));
}

TEST_CASE("lists of members") {
    const Folder folder("mlff_committee_list");
    std::filesystem::copy_file(MLFF_GOLDEN_DIR "/p18_cueq_ir_mul.model", folder.path("my model.model"));
    std::filesystem::copy_file(MLFF_GOLDEN_DIR "/p03_mace_plain_l1.model", folder.path("b+c.model"));
    const std::string list = folder.file("list",
                                         "mlff committee \r\n\n# text\nmy model.model weight=3 # why\n"
                                         "  b+c.model\r\nzbl weight=2\n");
    const auto model = load_model(list);
    CHECK(model->summary().member_count == 3);
    const std::string names[] = {folder.path("my model.model"), folder.path("b+c.model"), "zbl"};
    Atoms atoms = random_atoms(2, 8, false);
    for (int32_t& z : atoms.numbers) z = model->summary().elements.front();
    std::vector<Found> alone;
    for (const std::string& name : names) {
        Session session(load_model(name), on("cpu", Precision::fp64));
        alone.push_back(evaluate(session, atoms, false));
    }
    Session session(model, on("cpu", Precision::fp64));
    const Found found = evaluate(session, atoms, true), expected = expected_of(alone, {0.5, 1.0 / 6, 1.0 / 3});
    CHECK_ALL_CLOSE(found.all, expected.all, 1e-8);
    check_spread(found, expected, 1e-8);

    CHECK(has(refusal_of_name(folder.file("self", "mlff committee\nself\nself\n"), Status::unsupported), "a part of"));
    CHECK(has(refusal_of_name(list + "+zbl", Status::unsupported), "a part of a sum"));
    CHECK(has(refusal_of_name(folder.file("gone", "mlff committee\nzbl\ngone.model\n"), Status::file), "gone.model"));
    // Lists name no programs, and what is in the folder of the process does not matter.
    for (const char* program : {"python:os:getcwd", "builtin+python:os:getcwd"})
        CHECK(has(refusal_of_name(folder.file("program", std::string("mlff committee\nzbl\n") + program + "\n"),
                                  Status::unsupported),
                  "nothing in a file is executed"));
    std::filesystem::create_directory(folder.path("zbl"));
    CHECK(load_model(folder.file("folder", "mlff committee\nzbl\nbuiltin\n"))->summary().member_count == 2);
    folder.file("analytic", "not a model");
    const std::string near = folder.file("near", "mlff committee\nanalytic\nbuiltin\n");
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(std::filesystem::path(near).parent_path());
    CHECK(has(message_of(Status::format, [] { load_model("near"); }), "analytic"));
    std::filesystem::current_path(before);
    CHECK(has(refusal_of_name(folder.file("few", "mlff committee\nzbl\n"), Status::format), "1 members"));
}

TEST_CASE("lists of members that are not right are refused") {
    const auto refused = [](const std::string& text) {
        return message_of(Status::format, [&] { parse_member_list(text, "here"); });
    };
    CHECK(parse_member_list("mlff committee\na weight=1e-3\nb", "here") ==
          std::vector<ListedMember>{{"a", 1e-3}, {"b", 1}});
    CHECK(parse_member_list("mlff committee\na#b\n#\nc d\tweight=2", "here") ==
          std::vector<ListedMember>{{"a#b", 1}, {"c d", 2}});
    for (const std::string first : {"", "mlff", "mlff committees\n", " mlff committee\n", "MLFF committee\n"}) {
        CHECK_FALSE(is_member_list(first));
        CHECK(has(refused(first + "a\nb\n"), "first line"));
    }
    const std::string begin = "mlff committee\na\n";
    for (const std::string weight : {"", "0", "-1", "nan", "inf", "1e999", "1x", "0x1p3"})
        CHECK(has(refused(begin + "b weight=" + weight), "line 3: the weight"));
    CHECK(has(refused(begin + "weight=2"), "line 3: a weight has no member"));
    CHECK(has(refused(begin + std::string("b\0c", 3)), "UTF-8"));
    CHECK(has(refused(begin + "\xff"), "UTF-8"));
    std::string many = begin, large = begin;
    for (int i = 0; i < 64; ++i) many += "b\n";
    CHECK(has(refused(many), "more than 64"));
    CHECK(has(refused(large + std::string(1 << 20, ' ') + "b"), "bytes"));
}
