// SPDX-License-Identifier: MIT
// mlff phonons: how the atoms of a crystal vibrate, and what heat it stores.
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "core/output_file.h"
#include "dynamics/relaxation_batch.h"
#include "formats/extxyz.h"
#include "moving_atoms.h"
#include "phonons_report.h"
#include "plan_warning.h"
#include "progress_line.h"
#include "properties/phonons/phonopy_files.h"
#include "sessions.h"
#include "stop_signal.h"

namespace mlff::app {
namespace {

struct PhononOptions {
    std::string input, task, forces, phonopy_folder, json, report;
    ModelOptions model;
    std::string supercell, path, mesh, temperatures = "0:1000:100", primitive = "auto";
    double step = 0.01;  // angstrom
    std::optional<double> tolerance;
    double largest_force = 0.1;  // eV/angstrom
    int64_t line_points = 51;
    bool relaxes = false, ignores_symmetry = false;
};

constexpr double kDefaultTolerance = 1e-5;   // angstrom
constexpr double kWarningForce = 0.01;       // eV/angstrom
constexpr double kShortestSupercell = 10.0;  // angstrom, where nothing was chosen

// "4" or "4,4,2"
std::array<int64_t, 3> parse_three_counts(const std::string& text, const char* option) {
    std::array<int64_t, 3> counts{};
    std::string_view rest = text;
    size_t found = 0;
    for (; found < 3; ++found) {
        const size_t comma = rest.find(',');
        const std::string_view word = rest.substr(0, comma);
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), counts[found]);
        if (error != std::errc() || end != word.data() + word.size() || counts[found] < 1) break;
        if (comma == std::string_view::npos) {
            if (found == 0) counts[1] = counts[2] = counts[0];
            if (found != 1) return counts;
            break;
        }
        rest.remove_prefix(comma + 1);
    }
    fail(Status::argument, option, " '", text, "': expected N or A,B,C, whole numbers from 1 on");
}

// "BEGIN:END:STEP" or one temperature, K.
std::vector<double> parse_temperatures(const std::string& text, size_t count_between = 0) {
    std::vector<double> numbers;
    std::string_view rest = text;
    bool is_good = true;
    while (is_good) {
        const size_t colon = rest.find(':');
        const std::string_view word = rest.substr(0, colon);
        double value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        is_good = error == std::errc() && end == word.data() + word.size() && value >= 0 && value <= 1e6;
        numbers.push_back(value);
        if (colon == std::string_view::npos) break;
        rest.remove_prefix(colon + 1);
    }
    constexpr double kMostTemperatures = 100'000;
    if (is_good && numbers.size() == 1) return numbers;
    if (!is_good || numbers.size() != 3 || !(numbers[1] >= numbers[0]) || !(numbers[2] > 0) ||
        !((numbers[1] - numbers[0]) / numbers[2] < kMostTemperatures))
        fail(Status::argument, "--temperatures '", text, "': expected BEGIN:END:STEP or one temperature, in K");
    std::vector<double> temperatures;
    const double step = count_between > 0 ? (numbers[1] - numbers[0]) / static_cast<double>(count_between) : numbers[2];
    const auto count = static_cast<size_t>((numbers[1] - numbers[0]) / numbers[2] + 1e-9);
    for (size_t k = 0; k <= (count_between > 0 ? count_between : count); ++k)
        temperatures.push_back(numbers[0] + step * static_cast<double>(k));
    return temperatures;
}

// The only one of the file.
Frame phonon_frame(const PhononOptions& options) {
    ExtxyzReader reader(options.input);
    Frame frame, next;
    if (!reader.next(frame)) fail(Status::format, options.input, ": no frame in the file");
    if (reader.next(next)) fail(Status::format, options.input, ": several frames, expected one crystal");
    return frame;
}

std::array<int64_t, 3> default_phonon_supercell(const Mat3& lattice) {
    std::array<int64_t, 3> counts{};
    for (size_t k = 0; k < 3; ++k) {
        const double length = std::hypot(lattice[k][0], lattice[k][1], lattice[k][2]);
        counts[k] = std::max<int64_t>(1, std::llround(std::ceil(kShortestSupercell / length - 1e-6)));
    }
    return counts;
}

void relax_before_phonons(Session& session, Particles& particles) {
    RelaxationOptions options;
    options.with_cell = true;
    options.largest_force = 1e-4;
    options.largest_stress = 1e-6;
    Relaxation relaxation(particles, options);
    relax_together(session, {&relaxation, 1});
    if (!relaxation.is_converged())
        fail(Status::system, "--relax did not converge in ", options.step_limit,
             " steps; relax the crystal with 'mlff relax --cell' first");
    particles = relaxation.particles();
}

class PhononRun {
public:
    explicit PhononRun(const PhononOptions& options) : options_(options) {
        const SessionOptions session_options = options.model.session_options();
        if (options.forces.empty()) {
            sessions_.emplace(load_model(options.model.model), session_options);
        } else if (options.relaxes) {
            fail(Status::argument, "--relax needs a model, and with --forces none is evaluated");
        }
        thread_count_ = session_options.thread_count;
        results_.input = options.task.empty() ? options.input : options.task;
    }

    int run() {
        try {
            read_structure();
        } catch (const Error& error) {
            if (error.status() == Status::argument) throw;
            // "NAME: ..." or, of a reader, "NAME:LINE: ..."
            const bool has_name = std::string_view(error.what()).starts_with(results_.input + ":");
            throw Error(error.status(), has_name ? error.what() : results_.input + ": " + error.what());
        }
        std::vector<DisplacedForces> displaced;
        {
            const StopSignal stop;  // later nothing asks it, and a signal ends the process as usual
            displaced = find_forces(stop);
            if (stop.number() != 0) {
                std::cerr << "mlff: stopped by a signal; nothing was written\n";
                return kStoppedBySignal + stop.number();
            }
        }
        write_phonopy_files(displaced);
        find_modes(displaced);
        show();
        return kGood;
    }

private:
    void read_structure() {
        Particles particles;
        std::string head;
        if (!options_.task.empty()) {
            const auto file = MappedFile::open(options_.task);
            task_ = phonons::parse_phonopy_task(file->text(), options_.task);
            if (sessions_) session_ = &sessions_->for_head(options_.model.session.head);
        } else {
            const Frame frame = phonon_frame(options_);
            particles = moving_atoms(frame, "");
            if (particles.has_fixed_atoms())
                fail(Status::unsupported, "phonons beside fixed atoms are not there yet; remove the column move_mask");
            phonons::make_crystal(particles);  // refuses molecules before anything is computed
            if (sessions_) session_ = &sessions_->for_frame(frame);
            if (options_.relaxes) relax_before_phonons(*session_, particles);
            task_.unit_cell = phonons::make_crystal(particles);
            const std::array<int64_t, 3> counts = options_.supercell.empty()
                                                      ? default_phonon_supercell(task_.unit_cell.lattice)
                                                      : parse_three_counts(options_.supercell, "--supercell");
            task_.supercell = phonons::make_supercell(task_.unit_cell, counts);
            for (size_t k = 0; k < 3; ++k) task_.supercell_matrix[k][k] = counts[k];
        }
        phonons::SetupOptions setup_options;
        setup_options.uses_symmetry = !options_.ignores_symmetry;
        setup_options.finds_primitive_cell = options_.primitive == "auto";
        setup_options.primitive_lattice = setup_options.finds_primitive_cell ? task_.primitive_lattice : std::nullopt;
        setup_options.tolerance = options_.tolerance.value_or(task_.tolerance.value_or(kDefaultTolerance));
        if (!(setup_options.tolerance > 0 && setup_options.tolerance <= 1))
            fail(Status::argument, "--symmetry-tolerance ", setup_options.tolerance,
                 ": expected more than 0 and at most 1 A");
        if (!phonons::has_spglib() && setup_options.uses_symmetry)
            std::cerr << "mlff: this build has no spglib: only translations are used, every atom of the cell is "
                         "displaced, and the primitive cell is the cell of the input\n";
        setup_.emplace(phonons::make_setup(task_.unit_cell, task_.supercell, setup_options));
        task_.primitive_lattice = setup_->primitive.lattice;
        task_.tolerance = setup_options.tolerance;
        results_.imposes_mirrors =
            session_ && !session_->model().summary().is_mirror_symmetric && setup_->has_mirrors();
        if (session_) check_rest();
    }

    void check_rest() {
        PlanWarning(options_.model.model, options_.model.session.exact_radial)
            .look_at(*session_, task_.supercell.view(), results_.input);
        results_.rest = rest_state(*session_, task_.unit_cell);
        const double force = results_.rest->largest_force;
        if (!(force <= options_.largest_force))
            fail(Status::system, "the largest force at rest is ", force, " eV/A, expected at most ",
                 options_.largest_force,
                 ": phonons are about a minimum of the energy; --relax relaxes first, --rest-force allows more");
        if (force > kWarningForce)
            std::cerr << "mlff: " << results_.input << ": the largest force at rest is " << force
                      << " eV/A; frequencies may be imaginary because of that: use --relax\n";
    }

    // Those of a file, which counts atoms from 1.
    void check_displacements(const std::vector<Displacement>& displacements, const std::string& file) const {
        if (const auto atom = undetermined_atom(setup_->group, displacements))
            fail(Status::format, file, ": displacements are missing: those of atom ", *atom + 1,
                 " and of atoms equal to it by symmetry do not span three directions",
                 options_.ignores_symmetry ? "; with --no-symmetry each atom of the cell needs three" : "");
    }

    std::vector<DisplacedForces> find_forces(const StopSignal& stop) {
        if (!options_.forces.empty()) {
            const auto file = MappedFile::open(options_.forces);
            std::vector<DisplacedForces> displaced =
                phonons::parse_force_sets(file->text(), task_.supercell.atom_count(), options_.forces);
            for (const DisplacedForces& entry : displaced) results_.displacements.push_back(entry.displacement);
            check_displacements(results_.displacements, options_.forces);
            return displaced;
        }
        if (task_.displacements.empty()) {
            const std::vector<Vec3> axes(task_.supercell.lattice.begin(), task_.supercell.lattice.end());
            task_.displacements = displacements_for(setup_->group, options_.step, axes);
        } else {
            check_displacements(task_.displacements, options_.task);
        }
        results_.displacements = task_.displacements;
        ProgressLine line("mlff phonons");
        const auto goes_on = [&](size_t done) {
            line.show(concat(task_.displacements.size(), " displaced supercells"),
                      static_cast<double>(done) / static_cast<double>(task_.displacements.size()));
            return stop.number() == 0;
        };
        return phonons::forces_of(*session_, task_.supercell, task_.displacements, goes_on);
    }

    void write_phonopy_files(const std::vector<DisplacedForces>& displaced) {
        if (options_.phonopy_folder.empty()) return;
        const std::string folder = options_.phonopy_folder + "/";
        task_.displacements = results_.displacements;
        if (options_.task.empty()) write_text(folder + "phonopy_disp.yaml", phonopy_task_text(task_));
        write_text(folder + "FORCE_SETS", phonons::force_sets_text(displaced, task_.supercell.atom_count()));
    }

    void find_modes(const std::vector<DisplacedForces>& displaced) {
        std::optional<ThreadTeam> own_team;
        if (!session_) own_team.emplace(thread_count_);
        ThreadTeam& team = session_ ? session_->team() : *own_team;
        results_.step = options_.step;
        if (session_) {
            results_.model = options_.model.model;
            results_.device = session_->device_name();
            results_.precision = precision_name(session_->precision());
        }
        results_.constants = phonons::force_constants_from(setup_->group, setup_->map, displaced);
        const phonons::DynamicalMatrix matrix(setup_->primitive, setup_->supercell, setup_->map, results_.constants);
        const Mat3& lattice = setup_->primitive.lattice;

        phonons::StandardPath standard = phonons::standard_path(setup_->space_group);
        results_.lattice = standard.lattice;
        if (setup_->space_group && !standard.lattice.empty())
            standard = in_cell(standard, setup_->space_group->primitive_lattice, lattice);
        const phonons::BandPath path =
            options_.path.empty() ? standard.path : phonons::parse_path(options_.path, standard.points);
        results_.path = phonons::sampled_path(path, lattice, options_.line_points);
        std::vector<Vec3> wave_vectors;
        for (const phonons::BandPoint& point : results_.path) wave_vectors.push_back(point.wave_vector);
        results_.path_frequencies = frequencies_at(matrix, wave_vectors, team);

        results_.mesh =
            options_.mesh.empty() ? phonons::default_mesh(lattice) : parse_three_counts(options_.mesh, "--mesh");
        results_.modes.points = phonons::mesh_points(results_.mesh, setup_->operations);
        wave_vectors.clear();
        for (const phonons::MeshPoint& point : results_.modes.points) wave_vectors.push_back(point.wave_vector);
        results_.modes.frequencies = frequencies_at(matrix, wave_vectors, team);
        results_.density = phonons::state_density(results_.modes);
        for (const double temperature : parse_temperatures(options_.temperatures))
            results_.thermal.push_back(phonons::thermal_point(results_.modes, temperature));
        if (!options_.report.empty())
            for (const double temperature : parse_temperatures(options_.temperatures, 200))
                results_.thermal_curve.push_back(phonons::thermal_point(results_.modes, temperature));
    }

    void show() const {
        if (options_.json != "-") std::cout << phonon_text(*setup_, results_);
        const std::string json = phonon_json(*setup_, results_).dump(1) + "\n";
        if (!options_.json.empty()) write_text(options_.json, json);
        if (options_.report.empty()) return;
        write_text(options_.report + "/report.json", json);
        write_text(options_.report + "/report.md", phonon_markdown(*setup_, results_));
        write_text(options_.report + "/report.html", phonon_html(*setup_, results_));
    }

    const PhononOptions& options_;
    std::optional<Sessions> sessions_;
    Session* session_ = nullptr;  // nullptr: forces come from a file
    int thread_count_ = 0;
    phonons::PhonopyTask task_;
    std::optional<phonons::Setup> setup_;
    PhononResults results_;
};

int run_phonons(const PhononOptions& options) {
    if (options.input.empty() == options.task.empty())
        fail(Status::argument, "mlff phonons needs either FILE or --read-phonopy");
    if (!options.task.empty() && (!options.supercell.empty() || options.relaxes))
        fail(Status::argument, "--read-phonopy has the supercell and the positions: leave --supercell and --relax out");
    if (!(options.step > 0 && options.step <= 0.5))
        fail(Status::argument, "--step ", options.step, ": expected more than 0 and at most 0.5 A");
    if (options.line_points < 2 || options.line_points > 10'000)
        fail(Status::argument, "--line-points ", options.line_points, ": expected 2 to 10000");
    if (!(options.largest_force >= 0))
        fail(Status::argument, "--rest-force ", options.largest_force, ": expected 0 or more");
    if (!options.supercell.empty()) parse_three_counts(options.supercell, "--supercell");
    if (!options.mesh.empty()) phonons::mesh_points(parse_three_counts(options.mesh, "--mesh"), {});
    parse_temperatures(options.temperatures);
    check_outputs(options.report, "report.html", options.json);
    if (!options.phonopy_folder.empty()) {
        std::error_code error;
        std::filesystem::create_directories(options.phonopy_folder, error);
        if (error)
            fail(Status::file, "--write-phonopy ", options.phonopy_folder, ": cannot make the folder (",
                 error.message(), ")");
        OutputFile(options.phonopy_folder + "/FORCE_SETS");
    }
    return PhononRun(options).run();
}

}  // namespace

void add_phonons(CLI::App& app, Work& work) {
    auto options = std::make_shared<PhononOptions>();
    options->model.precision = "fp64";
    CLI::App* command = app.add_subcommand("phonons", "compute phonons and thermal properties of a crystal");
    command->add_option("FILE", options->input, "a crystal in extended XYZ; '-' = standard input");
    options->model.add_to(*command);
    command
        ->add_option("--supercell", options->supercell,
                     "cells of FILE along its vectors, N or A,B,C (default: as many as make 10 A or more)")
        ->option_text("A,B,C");
    command->add_option("--step", options->step, "length of displacements, in A")
        ->capture_default_str()
        ->option_text("LENGTH");
    command->add_flag("--relax", options->relaxes, "relax positions and cell first, to 1e-4 eV/A and 1e-6 eV/A^3");
    command->add_option("--rest-force", options->largest_force, "refuse a crystal with a larger force at rest, in eV/A")
        ->capture_default_str()
        ->option_text("FORCE");
    command->add_option("--primitive", options->primitive, "auto: the primitive cell that spglib finds; none: FILE's")
        ->capture_default_str()
        ->check(CLI::IsMember({"auto", "none"}))
        ->option_text("WHICH");
    command->add_flag("--no-symmetry", options->ignores_symmetry,
                      "use only the translations of FILE's cell: displace all its atoms, take it as primitive");
    command
        ->add_option("--symmetry-tolerance", options->tolerance,
                     "how far atoms may be from where symmetry has them, in A (default: 1e-5, or phonopy's)")
        ->option_text("LEN");
    command
        ->add_option("--path", options->path,
                     "wave vectors of the dispersion: labels of the lattice or LABEL=a,b,c in reciprocal vectors of "
                     "the primitive cell; | begins a new piece (default: the usual path of the lattice)")
        ->option_text("'G X|...'");
    command->add_option("--line-points", options->line_points, "wave vectors on each line of the path, with its ends")
        ->capture_default_str()
        ->option_text("N");
    command
        ->add_option("--mesh", options->mesh,
                     "wave vectors for the density of states and thermal properties, N or A,B,C (default: 0.1/A apart)")
        ->option_text("A,B,C");
    command->add_option("--temperatures", options->temperatures, "of thermal properties, in K; or one temperature")
        ->capture_default_str()
        ->option_text("BEGIN:END:STEP");
    add_json_option(*command, options->json);
    add_report_option(*command, options->report);
    command->add_option("--write-phonopy", options->phonopy_folder, "write phonopy_disp.yaml and FORCE_SETS to DIR")
        ->option_text("DIR");
    command
        ->add_option("--read-phonopy", options->task,
                     "instead of FILE: cells and displacements from a phonopy_disp.yaml that phonopy wrote")
        ->option_text("YAML");
    command
        ->add_option("--forces", options->forces,
                     "read the forces from a FORCE_SETS of phonopy instead of computing them; no model is needed")
        ->option_text("FORCE_SETS");
    command->footer(
        R"(Displaces atoms of a supercell, as few as the symmetry of the crystal allows, computes all forces in
batches, and makes from them force constants, frequencies along a path, the density of states, and
zero-point energy, free energy, entropy and heat capacity of harmonic vibrations. Index symmetry and
acoustic sum rule are imposed on the force constants; how far they were violated is printed.
Frequencies are in THz, in --json also in 1/cm. Imaginary modes have negative frequencies, and are
counted. Thermal properties are per mole of primitive cells. The default precision is fp64: forces
of small displacements are differences. There is no splitting of longitudinal and transverse
optical modes at Gamma.
A build without spglib knows only the translations of a crystal and says so.

Examples:
  # Silicon, relaxed first, with plots
  mlff phonons silicon.xyz --model X.model --supercell 2 --relax --report silicon
  # The same forces for phonopy, which can read them in DIR
  mlff phonons silicon.xyz --model X.model --supercell 2 --write-phonopy DIR
  # The forces of displacements that phonopy made, as FORCE_SETS in this folder
  mlff phonons --read-phonopy phonopy_disp.yaml --model X.model --write-phonopy .)");
    command->callback([options, &work] { work = [options] { return run_phonons(*options); }; });
}

}  // namespace mlff::app
