// SPDX-License-Identifier: MIT
// Paths and saddles that are known: of the potential of Mueller and Brown, and of crystals whose symmetry gives them.
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "analytic/model.h"
#include "close.h"
#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/relaxation_batch.h"
#include "properties/interpolation.h"
#include "properties/reaction_path.h"
#include "test_dynamics_support.h"

using namespace mlff;
using namespace mlff::test;

namespace {

using Method = BandOptions::Method;

// The potential of Mueller and Brown (1979) in the x and y of one atom, in hundreds of eV; z has a spring.
constexpr double kScale = 0.01;

std::vector<ImageResult> mueller_brown(std::span<const Image> images) {
    constexpr double kHeight[] = {-200, -100, -170, 15}, kXx[] = {-1, -1, -6.5, 0.7}, kXy[] = {0, 0, 11, 0.6},
                     kYy[] = {-10, -10, -6.5, 0.7}, kX[] = {1, 0, -0.5, -1}, kY[] = {0, 0.5, 1.5, 1};
    std::vector<ImageResult> results;
    for (const Image& image : images) {
        ImageResult result;
        result.forces.assign(3, 0);
        for (size_t k = 0; k < 4; ++k) {
            const double x = image[0] - kX[k], y = image[1] - kY[k];
            const double term = kHeight[k] * std::exp(kXx[k] * x * x + kXy[k] * x * y + kYy[k] * y * y);
            result.energy += term;
            result.forces[0] -= term * (2 * kXx[k] * x + kXy[k] * y);
            result.forces[1] -= term * (kXy[k] * x + 2 * kYy[k] * y);
        }
        result.energy = kScale * result.energy + 5 * image[2] * image[2];
        for (double& force : result.forces) force *= kScale;
        result.forces[2] = -10 * image[2];
        results.push_back(result);
    }
    return results;
}

// Minima and saddles of the literature, and their energies.
const Image kDeep = {-0.558223634633024, 1.441725841804669, 0}, kMiddle = {-0.050010822998206, 0.466694104871972, 0},
            kOther = {0.623499404930877, 0.028037758528685, 0};
const Image kHighSaddle = {-0.822001558732732, 0.624312802814871, 0},
            kLowSaddle = {0.212486582000662, 0.292988325107368, 0};
constexpr double kDeepEnergy = -146.69951720995402, kMiddleEnergy = -80.76781812965892,
                 kOtherEnergy = -108.16672411685236, kHighEnergy = -40.66484351147777, kLowEnergy = -72.24894011232681;

Band run_band(std::vector<Image> path, const Particles& atoms, RigidMotion motion, const BandOptions& options,
              const ImageForces& forces) {
    Band band(std::move(path), atoms.is_fixed, motion, options);
    for (band.evaluate(forces); !band.is_finished(); band.evaluate(forces)) band.move();
    return band;
}

BandOptions model_options(Method method) {
    BandOptions options;
    options.method = method;
    options.spring = 2;
    options.largest_force = 1e-4;
    options.climbs_below = 0.5;
    options.step_limit = 2000;
    return options;
}

}  // namespace

TEST_CASE("bands, strings and dimers find the saddles of Mueller and Brown") {
    struct Hop {
        Image from, to, saddle;
        double energy_before, energy_at_saddle;
    };
    const std::vector<Hop> hops = {{kDeep, kMiddle, kHighSaddle, kDeepEnergy, kHighEnergy},
                                   {kMiddle, kOther, kLowSaddle, kMiddleEnergy, kLowEnergy}};
    for (const Hop& hop : hops)
        for (const Method method : {Method::elastic_band, Method::string}) {
            const Band band = run_band(linear_path(hop.from, hop.to, 11), {}, RigidMotion::none, model_options(method),
                                       mueller_brown);
            CHECK(band.is_converged());
            REQUIRE(band.climbing());
            CHECK_ALL_CLOSE(band.images()[*band.climbing()], hop.saddle, 1e-4);
            const double barrier = kScale * (hop.energy_at_saddle - hop.energy_before);
            const PathSummary summary = summarize(ReactionPath(band), true);
            CHECK(is_close(summary.barrier_forward, barrier, 1e-6));
            CHECK(summary.minima.empty());
            // Without climbing, the curve between images knows the barrier.
            BandOptions flat = model_options(method);
            flat.climbs = false;
            const Band resting =
                run_band(linear_path(hop.from, hop.to, 11), {}, RigidMotion::none, flat, mueller_brown);
            CHECK(resting.is_converged());
            CHECK(!resting.climbing());
            CHECK(is_close(summarize(ReactionPath(resting), false).barrier_forward, barrier, 0.02));
            // A dimer that begins where the band is before it climbs.
            const size_t top = *resting.highest();
            Dimer dimer(resting.images()[top], resting.tangents()[top], {}, RigidMotion::none, {1e-6, 200});
            for (dimer.evaluate(mueller_brown); !dimer.is_finished(); dimer.evaluate(mueller_brown)) dimer.move();
            CHECK(dimer.is_converged());
            CHECK_ALL_CLOSE(dimer.image(), hop.saddle, 1e-5);
            CHECK(is_close(dimer.result().energy, kScale * hop.energy_at_saddle, 1e-9));
            CHECK(dimer.curvature() < 0);
        }
}

TEST_CASE("both methods space their images evenly, and the string exactly") {
    BandOptions options = model_options(Method::string);
    options.climbs = false;
    const Band string = run_band(linear_path(kDeep, kMiddle, 9), {}, RigidMotion::none, options, mueller_brown);
    options.method = Method::elastic_band;
    const Band band = run_band(linear_path(kDeep, kMiddle, 9), {}, RigidMotion::none, options, mueller_brown);
    for (const auto& [path, tolerance] : {std::pair(&string, 1e-3), {&band, 0.02}}) {
        const std::vector<double> found = distances_along(path->images());
        std::vector<double> even;
        for (size_t k = 0; k < found.size(); ++k) even.push_back(found.back() * static_cast<double>(k) / 8);
        CHECK_ALL_CLOSE(found, even, tolerance);
    }
}

TEST_CASE("a path over two ridges says where the valley is") {
    const Band band = run_band(linear_path(kDeep, kOther, 15), {}, RigidMotion::none,
                               model_options(Method::elastic_band), mueller_brown);
    CHECK(band.is_converged());
    const PathSummary summary = summarize(ReactionPath(band), true);
    CHECK(is_close(summary.barrier_forward, kScale * (kHighEnergy - kDeepEnergy), 1e-6));
    CHECK(is_close(summary.reaction_energy, kScale * (kOtherEnergy - kDeepEnergy), 1e-9));
    REQUIRE(summary.minima.size() == 1);
    CHECK(largest_move(difference_of(band.images()[summary.minima[0]], kMiddle)) < 0.2);
}

TEST_CASE("the lowest curvatures are eigenvalues of the Hessian") {
    // E = 1/2 x H x with eigenvalues -2, 0.5, 3, ... in rotated directions.
    const size_t size = 12;
    std::vector<Image> directions;
    for (size_t k = 0; k < size; ++k) {
        Image direction(size);
        for (size_t i = 0; i < size; ++i)
            direction[i] = std::sqrt(2.0 / size) *
                           std::cos(std::numbers::pi / size * (static_cast<double>(i) + 0.5) * static_cast<double>(k)) *
                           (k == 0 ? std::sqrt(0.5) : 1);
        directions.push_back(direction);
    }
    std::vector<double> eigenvalues = {3, 0.5, -2};
    while (eigenvalues.size() < size) eigenvalues.push_back(5 + static_cast<double>(eigenvalues.size()));
    const ImageForces forces = [&](std::span<const Image> images) {
        std::vector<ImageResult> results;
        for (const Image& image : images) {
            ImageResult result{0, Image(size)};
            for (size_t k = 0; k < size; ++k)
                for (size_t i = 0; i < size; ++i)
                    result.forces[i] -= eigenvalues[k] * dot_product(directions[k], image) * directions[k][i];
            results.push_back(result);
        }
        return results;
    };
    Image start(size);
    start[0] = 1;
    RotationOptions options;
    options.mode_count = 2;
    options.tolerance = 1e-6;
    const LowestModes modes = lowest_modes(Image(size), start, {}, RigidMotion::none, options, forces);
    CHECK(modes.is_converged);
    CHECK_ALL_CLOSE(modes.curvatures, std::vector<double>({-2, 0.5}), 1e-6);
    CHECK(is_close(std::abs(dot_product(modes.directions[0], directions[2])), 1, 1e-6));
    // A fixed atom takes its coordinates away: what is left is a part of the matrix, with higher eigenvalues.
    const LowestModes held = lowest_modes(Image(size), start, {1, 0, 0, 0}, RigidMotion::none, options, forces);
    CHECK(held.curvatures[0] > -2);
    for (size_t i = 0; i < 3; ++i) CHECK(held.directions[0][i] == 0);
}

TEST_CASE("connected images: the nearest copies, and no rigid motion") {
    Particles crystal = argon_atoms({0.1, 0.1, 0.1, 2.0, 0, 0}, 4);
    crystal.environment.cell = {{{4, 0, 0}, {2.4, 3.2, 0}, {0, 0, 4}}};  // skewed
    std::vector<Image> path = {{0, 0, 0, 2, 0, 0}, {4 - 2.4 - 0.1, -3.2, 0, 2, 0.1, 4}};
    connect(path, crystal.environment, RigidMotion::none);
    CHECK_ALL_CLOSE(path[1], std::vector<double>({-0.1, 0, 0, 2, 0.1, 0}), 1e-12);

    const Image molecule = {0, 0, 0, 1, 0, 0, 0, 1.5, 0, 0.2, 0.3, 2};
    Image moved = molecule;
    const double angle = 2.5;
    const Mat3 turn = {{{std::cos(angle), -std::sin(angle), 0}, {std::sin(angle), std::cos(angle), 0}, {0, 0, 1}}};
    const Mat3 other = {{{1, 0, 0}, {0, 0, -1}, {0, 1, 0}}};
    transform_vectors(product(turn, other), moved.data(), 4);
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += static_cast<double>(i % 3) - 3;
    path = {molecule, moved};
    connect(path, SystemView(), RigidMotion::translation_and_rotation);
    CHECK_ALL_CLOSE(path[1], molecule, 1e-12);
    Image mirrored = molecule;
    for (size_t i = 2; i < mirrored.size(); i += 3) mirrored[i] = -mirrored[i];
    path = {molecule, mirrored};
    connect(path, SystemView(), RigidMotion::translation_and_rotation);
    CHECK(largest_move(difference_of(path[1], molecule)) > 0.3);  // it is not turned inside out
    CHECK(rigid_directions(molecule, RigidMotion::translation_and_rotation).size() == 6);
    CHECK(rigid_directions({0, 0, 0, 1, 1, 1, 2, 2, 2}, RigidMotion::translation_and_rotation).size() == 5);
}

TEST_CASE("ends that are no ends of one path are refused by name") {
    const auto message = [](const Particles& first, const Particles& second) {
        try {
            check_same_atoms(first, second);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const Particles argon = argon_atoms({0, 0, 0, 2, 0, 0}, 5);
    CHECK(message(argon, argon) == "");
    CHECK(message(argon, argon_atoms({0, 0, 0}, 5)).find("2 atoms and the second has 1") != std::string::npos);
    Particles other = argon;
    other.atomic_numbers[1] = 10;
    CHECK(message(argon, other).find("atom 1 is Ar in the first structure and Ne in the second") != std::string::npos);
    CHECK(message(argon, argon_atoms({0, 0, 0, 2, 0, 0}, 6)).find("lattice vector 1 is (5, 0, 0)") !=
          std::string::npos);
    CHECK(message(argon, argon_atoms({0, 0, 0, 2, 0, 0})).find("direction 1") != std::string::npos);
    other = argon;
    other.is_fixed = {1, 0};
    CHECK(message(argon, other).find("atom 0 is fixed in one") != std::string::npos);
    Particles away = other;
    away.positions[0] = 5;  // the same place in the next cell
    CHECK(message(other, away) == "");
    away.positions[0] = 0.5;
    CHECK(message(other, away).find("atom 0 is fixed, but is 0.5 A away") != std::string::npos);
    const std::vector<Image> images = {argon.positions, {0, 0, 0, 0.1, 0, 0}};
    CHECK_THROWS_WITH_AS(check_atoms_are_apart(images, argon), doctest::Contains("image 1 of the path has atoms"),
                         Error);
}

TEST_CASE("the pair potential keeps atoms apart where straight lines do not") {
    // Two atoms change places around a third.
    const Particles atoms = argon_atoms({-2, 0, 0, 2, 0.1, 0, 0, 0, 5});
    const Image last = {2, 0, 0, -2, 0.1, 0, 0, 0, 5};
    const auto least = [](const std::vector<Image>& path) {
        double found = 10;
        for (const Image& x : path) found = std::min(found, std::hypot(x[0] - x[3], x[1] - x[4], x[2] - x[5]));
        return found;
    };
    CHECK(least(linear_path(atoms.positions, last, 9)) < 0.2);
    const std::vector<Image> path = pair_potential_path(atoms.positions, last, 9, atoms);
    CHECK(least(path) > 2);
    CHECK_ALL_CLOSE(path.front(), atoms.positions, 0);
    CHECK_ALL_CLOSE(path.back(), last, 0);
}

namespace {

// A face-centred cubic crystal of 32 places, one of them empty. `hopped`: the nearest atom is in it.
Particles crystal_with_vacancy(bool hopped) {
    const double cell = 3;
    std::vector<double> positions;
    for (int a = 0; a < 2; ++a)
        for (int b = 0; b < 2; ++b)
            for (int c = 0; c < 2; ++c)
                for (const Vec3& place : {Vec3{0, 0, 0}, {0, 0.5, 0.5}, {0.5, 0, 0.5}, {0.5, 0.5, 0}})
                    for (const double x : {a + place[0], b + place[1], c + place[2]}) positions.push_back(cell * x);
    // The vacancy is place 0, and the neighbour hops over the boundary of the cell.
    const std::vector<double> vacancy(positions.begin(), positions.begin() + 3);
    positions.erase(positions.begin(), positions.begin() + 3);
    if (hopped)
        for (size_t k = 0; k < 3; ++k) positions[k] = vacancy[k] + (k == 1 ? 2 * cell : 0);
    return argon_atoms(positions, 2 * cell);
}

Band vacancy_band(Session& session, Method method, int64_t step_limit = 300) {
    std::vector<Relaxation> ends;
    for (const bool hopped : {false, true}) {
        RelaxationOptions options;
        options.largest_force = 1e-4;
        ends.emplace_back(crystal_with_vacancy(hopped), options);
    }
    relax_together(session, ends);
    const Particles& atoms = ends[0].particles();
    std::vector<Image> path = {atoms.positions, ends[1].particles().positions};
    connect(path, atoms.environment, rigid_motion_of(atoms));
    BandOptions options;
    options.method = method;
    options.largest_force = 2e-3;
    options.step_limit = step_limit;
    return run_band(pair_potential_path(path[0], path[1], 7, atoms), atoms, rigid_motion_of(atoms), options,
                    session_image_forces(session, atoms));
}

Session analytic_session_of(int threads) {
    SessionOptions options;
    options.device = "cpu";
    options.thread_count = threads;
    return Session(make_analytic_model(), options);
}

}  // namespace

TEST_CASE("a vacancy of a crystal hops over a saddle that symmetry puts in the middle") {
    Session session = analytic_session_of(1);
    double barriers[2];
    for (const Method method : {Method::elastic_band, Method::string}) {
        const Band band = vacancy_band(session, method);
        CHECK(band.is_converged());
        REQUIRE(band.climbing() == 3);
        const ReactionPath path(band);
        const PathSummary summary = summarize(path, true);
        CHECK(is_close(summary.reaction_energy, 0, 1e-5));
        CHECK(summary.barrier_forward > 0.1);
        CHECK(is_close(summary.barrier_forward, summary.barrier_backward, 1e-5));
        // The atom that hops is half way between its two places.
        for (size_t k = 0; k < 3; ++k)
            CHECK(is_close(path.images[3][k], 0.5 * (path.images[0][k] + path.images[6][k]), 2e-3));
        CHECK(length_of(difference_of(path.images[6], path.images[0])) < 4);  // and did not cross the cell
        const Particles atoms = crystal_with_vacancy(false);
        const SaddleCheck check = check_saddle(path, 3, atoms, session_image_forces(session, atoms));
        CHECK(check.has_one_negative());
        CHECK(check.overlap > 0.9);
        barriers[method == Method::string] = summary.barrier_forward;
        Dimer dimer(path.images[2], path.tangents[2], {}, rigid_motion_of(atoms), {1e-3, 300});
        const ImageForces forces = session_image_forces(session, atoms);
        for (dimer.evaluate(forces); !dimer.is_finished(); dimer.evaluate(forces)) dimer.move();
        CHECK(dimer.is_converged());
        CHECK(is_close(dimer.result().energy - summary.energies[0], summary.barrier_forward, 1e-5));
    }
    CHECK(is_close(barriers[0], barriers[1], 1e-5));
}

TEST_CASE("a band does not depend on the number of threads") {
    Session one = analytic_session_of(1), three = analytic_session_of(3);
    const Band alone = vacancy_band(one, Method::elastic_band, 10),
               shared = vacancy_band(three, Method::elastic_band, 10);
    CHECK(alone.move_count() == 10);
    for (size_t k = 0; k < alone.images().size(); ++k) {
        CHECK_ALL_CLOSE(shared.images()[k], alone.images()[k], 0);
        CHECK_ALL_CLOSE(shared.results()[k].forces, alone.results()[k].forces, 0);
    }
}

TEST_CASE("options of bands that make no sense are refused") {
    const std::vector<Image> path = linear_path(kDeep, kMiddle, 5);
    BandOptions options;
    options.spring = 0;
    CHECK_THROWS_WITH_AS(Band(path, {}, RigidMotion::none, options), doctest::Contains("spring constant is 0"), Error);
    options = {};
    options.largest_force = std::nan("");
    CHECK_THROWS_WITH_AS(Band(path, {}, RigidMotion::none, options), doctest::Contains("force limit"), Error);
    CHECK_THROWS_WITH_AS(Band(linear_path(kDeep, kMiddle, 2), {}, RigidMotion::none, {}),
                         doctest::Contains("2 images, expected at least 3"), Error);
}
