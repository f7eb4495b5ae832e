// SPDX-License-Identifier: GPL-2.0-only
#include "pair_mlff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "atom.h"
#include "chemical_symbols.h"
#include "comm.h"
#include "compute.h"
#include "domain.h"
#include "error.h"
#include "force.h"
#include "ghost_exchange.h"
#include "memory.h"
#include "mlff/mlff.h"
#include "modify.h"
#include "neigh_list.h"
#include "neighbor.h"
#include "ranks.h"
#include "update.h"
#include "utils.h"

using namespace LAMMPS_NS;
using mlff_lammps::GhostExchange;
using mlff_lammps::Owner;

namespace {

struct ModelDeleter {
    void operator()(mlff_model* model) const { mlff_model_free(model); }
};
struct SessionDeleter {
    void operator()(mlff_session* session) const { mlff_session_free(session); }
};

int32_t exchange_rows(const void* sent, void* received, size_t row_bytes, void* exchange) {
    static_cast<GhostExchange*>(exchange)->exchange(sent, received, row_bytes);
    return 0;
}

int32_t give_rows_back(const void* given, void* returned, size_t row_bytes, void* exchange) {
    static_cast<GhostExchange*>(exchange)->give_back(given, returned, row_bytes);
    return 0;
}

// Lattice vectors in rows.
std::array<double, 9> cell_of(const Domain& domain) {
    const double* h = domain.h;
    return {h[0], 0, 0, h[5], h[1], 0, h[4], h[3], h[2]};
}

const char* const kPrecisions[] = {"auto", "mixed", "fp64", "fp32", "fast"};  // mlff_precision

bool is_within(const double* a, const double* b, double reach) {
    const double dx = b[0] - a[0], dy = b[1] - a[1], dz = b[2] - a[2];
    return dx * dx + dy * dy + dz * dz <= reach * reach;
}

}  // namespace

struct PairMLFF::Impl {
    explicit Impl(MPI_Comm world_in) : exchange(world_in), world(world_in) { MPI_Comm_size(world, &rank_count); }

    // pair_style
    struct Settings {
        std::string device = "auto", head;
        mlff_precision precision = MLFF_PRECISION_AUTO;
        int thread_count = 0;  // 0: as many as LAMMPS has
        bool exact_radial = false;
        std::string rows = "auto";  // how rows of atoms go from GPU to GPU
        double charge = 0, spin = 1;
    } settings;

    // pair_coeff
    std::string model_name;
    std::vector<int32_t> number_of_type;  // [type], atomic number; 0: not ours
    std::unique_ptr<mlff_model, ModelDeleter> model;
    std::unique_ptr<mlff_session, SessionDeleter> session;
    mlff_row_transport transport = MLFF_ROWS_THROUGH_HOST;
    std::string why_no_gpus;     // where device auto has passed them over
    std::string why_not_shared;  // where rows auto has not found memory that all ranks share
    double cutoff = 0;           // of the neighbours that the model wants listed; 0: it finds all itself
    double reach = 0;            // of the ghosts that it wants
    double energy_unit = 1;      // eV in the energy unit of LAMMPS; both units of length are the angstrom

    // Atoms that are ours: own ones, then the ghosts that are near them.
    std::vector<int> atoms;  // [our atom]: which of LAMMPS' it is
    std::vector<int> place;  // [atom of LAMMPS]: which of ours; -1: none
    int owned_count = 0;
    std::vector<int32_t> numbers;   // [our atom]
    std::vector<double> positions;  // [our atom][3]
    std::vector<int64_t> first;     // neighbours of own atoms
    std::vector<int32_t> neighbors;
    std::vector<Owner> owners;  // [atom of LAMMPS]
    bigint listed_at = -1;      // the step of the neighbour list that they were taken from
    int64_t list_version = 0;   // grows with every list
    GhostExchange exchange;
    MPI_Comm world;
    int rank_count = 1;

    // Results, in eV and angstrom.
    double energy = 0;
    double total_virial[9] = {};
    std::vector<double> forces, atom_energies, atom_virials;

    bool wants_spread = false, wants_trust = false;  // in this step

    // The spread of a committee, in eV and angstrom.
    int member_count = 0;  // 0: no committee
    double sigma_energy = 0, sigma_max_force = 0;
    std::vector<double> sigma_forces;       // [own atom]
    std::vector<double> energy_deviations;  // [member - 1], see mlff_session_evaluate_domain
    std::vector<double> force_deviations;   // [member - 1][our atom][3]
    std::vector<double> returned;           // [atom of LAMMPS][3]: one of these deviations

    // What the trust meter says, in eV and angstrom. A committee has none.
    bool has_model_meter = false, has_trust_meter = false;  // of the model; of the session, which has one head
    std::vector<double> expected_errors, novelties;         // [own atom], and a place that has no number

    // What compute pair and fix pair give to the user, in the units of LAMMPS.
    static constexpr int kGlobalCount = 2;
    // compute pair sums them over ranks. Of rank 0: sigma_energy and sigma_max_force, or the largest of what the trust
    // meter says.
    double globals[kGlobalCount] = {};
    struct AtomQuantity {
        int is_wanted = 0;           // in the next step: set by fix pair
        bool is_known = false;       // of the last step
        std::vector<double> values;  // [atom of LAMMPS], own ones; 0 for types of other styles
    };
    AtomQuantity shown_sigma_forces, shown_expected_errors, shown_novelties;
    AtomQuantity* quantity(const std::string& name) {
        if (name == "sigma_forces") return &shown_sigma_forces;
        if (name == "expected_errors") return &shown_expected_errors;
        return name == "novelties" ? &shown_novelties : nullptr;
    }
    // `found`: [own atom], in eV and angstrom. `atom_count`: how many atoms LAMMPS has on this rank, ours and others.
    void show(AtomQuantity& shown, const std::vector<double>& found, double unit, int atom_count) const {
        if (!shown.is_wanted) return;
        shown.values.assign(static_cast<size_t>(std::max(atom_count, 1)), 0.0);  // fix pair takes NULL for an error
        for (size_t i = 0; i < static_cast<size_t>(owned_count); ++i)
            shown.values[static_cast<size_t>(atoms[i])] = unit * found[i];
        shown.is_known = true;
    }
    // "", or why the model has no such quantity.
    std::string why_none(const AtomQuantity& wanted) const {
        if (!model) return "";
        if (&wanted == &shown_sigma_forces)
            return member_count > 0 ? "" : "a spread was asked for, but " + model_name + " is no committee";
        if (has_trust_meter) return "";
        return "expected errors were asked for, but " + model_name + " has no trust meter" +
               (has_model_meter ? " for this head" : "; `mlff trust fit` makes one");
    }

    std::string open() {
        mlff_model* opened = nullptr;
        if (mlff_model_load(model_name.c_str(), &opened) != MLFF_OK) return mlff_last_error();
        model.reset(opened);
        mlff_model_info info = {};
        info.struct_size = sizeof info;
        if (mlff_model_get_info(opened, &info) != MLFF_OK) return mlff_last_error();
        if (!(info.reach_angstrom > 0))
            return model_name + ": the cutoff of the model is not known, and LAMMPS needs one";
        member_count = info.member_count;
        has_model_meter = info.has_trust_meter == 1;
        cutoff = info.cutoff_angstrom;
        reach = info.reach_angstrom;
        return "";
    }

    // "" if the model has dispersion in its name now.
    std::string add_dispersion(const std::string& d3) {
        std::vector<char> sum(2 * model_name.size() * (d3.size() + 5) + 1);  // many times what a committee needs
        const auto capacity = static_cast<int64_t>(sum.size());
        if (mlff_model_d3_name(model_name.c_str(), d3.c_str(), sum.data(), capacity) != MLFF_OK)
            return mlff_last_error();
        model_name = sum.data();
        return "";
    }

    // "" if the model knows all elements.
    std::string unknown_elements() const {
        int64_t count = 0;
        mlff_model_get_elements(model.get(), nullptr, 0, &count);
        std::vector<int32_t> known(static_cast<size_t>(count));
        mlff_model_get_elements(model.get(), known.data(), count, &count);
        std::string known_text;
        for (const int32_t number : known)
            known_text += (known_text.empty() ? "" : " ") + mlff_lammps::symbol_of(number);
        for (size_t type = 1; type < number_of_type.size(); ++type) {
            const int32_t number = number_of_type[type];
            if (number != 0 && std::find(known.begin(), known.end(), number) == known.end())
                return model_name + ": atom type " + std::to_string(type) + " is " + mlff_lammps::symbol_of(number) +
                       ", which the model does not know; it knows " + known_text;
        }
        return "";
    }

    // Every rank calls it; all get the same message, "" if there are sessions now.
    std::string start_sessions(int lammps_thread_count) {
        const std::string message = choose_device(lammps_thread_count);
        has_trust_meter = message.empty() && session_info().has_trust_meter == 1;
        transport = MLFF_ROWS_THROUGH_HOST;
        return message.empty() && rank_count > 1 && is_on_gpu() ? choose_transport() : message;
    }
    // Whether MPI takes memory of GPUs, the user knows; what memory ranks share, all try.
    std::string choose_transport() {
        why_not_shared.clear();
        if (settings.rows == "device") transport = MLFF_ROWS_ON_DEVICE;
        if (settings.rows == "device" || settings.rows == "host") return "";
        const bool is_auto = settings.rows == "auto";
        std::string why_not;
        if (!mlff_lammps::is_one_node(world)) {
            why_not = "ranks are on several machines";
        } else {
            for (const mlff_row_transport tried : {MLFF_ROWS_SHARED, MLFF_ROWS_IN_WINDOW}) {
                if (!is_auto && settings.rows != (tried == MLFF_ROWS_SHARED ? "shared" : "window")) continue;
                const std::string message = why_ranks_share_no_memory(tried);
                if (message.empty()) {
                    transport = tried;
                    why_not_shared = why_not;
                    return "";
                }
                why_not += (why_not.empty() ? "" : "; ") + message;
            }
        }
        if (!is_auto) return model_name + ": rows " + settings.rows + ", but " + why_not;
        why_not_shared = why_not;
        return "";
    }
    std::string why_ranks_share_no_memory(mlff_row_transport tried) const {
        mlff_gpu_address own = {};
        own.struct_size = sizeof own;
        std::string message;
        const auto get = tried == MLFF_ROWS_SHARED ? mlff_session_get_gpu_address : mlff_session_get_window_address;
        if (get(session.get(), &own) != MLFF_OK) message = mlff_last_error();
        message = mlff_lammps::first_message(world, message);
        if (!message.empty()) return message;
        std::vector<mlff_gpu_address> all(static_cast<size_t>(rank_count));
        MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, world);
        for (const mlff_gpu_address& address : all)
            if (message.empty() && mlff_session_reach_gpu(session.get(), &address) != MLFF_OK)
                message = mlff_last_error();
        return mlff_lammps::first_message(world, message);
    }
    std::string choose_device(int lammps_thread_count) {
        why_no_gpus.clear();
        session.reset();
        if (rank_count == 1) return make_session(settings.device, lammps_thread_count);
        std::string device = settings.device;
        if (device == "cuda" || device == "auto") {
            const int gpu_count = mlff_device_count();
            const mlff_lammps::Node node = mlff_lammps::node_of(world);
            const std::string gpu = gpu_count > 0 ? "cuda:" + std::to_string(node.rank % gpu_count) : "cuda";
            if (device == "auto") {
                why_no_gpus = try_gpus(gpu_count, gpu_count >= node.rank_count, gpu, lammps_thread_count);
                if (session) return "";
                device = "cpu";
            } else {
                device = gpu;
            }
        }
        const std::string message = mlff_lammps::first_message(world, make_session(device, lammps_thread_count));
        return message.empty() ? different_ranks() : message;
    }
    bool is_on_gpu() const { return std::strncmp(mlff_session_device(session.get()), "cuda", 4) == 0; }

    // Sessions on GPUs, if all ranks can have one of their own. Otherwise why not, where there are GPUs at all.
    std::string try_gpus(int gpu_count, bool has_own, const std::string& gpu, int lammps_thread_count) {
        if (mlff_lammps::most_of_ranks(world, gpu_count) == 0) return "";
        if (settings.exact_radial) return "exact radial functions are asked for";
        if (mlff_lammps::least_of_ranks(world, has_own ? 1 : 0) == 0)
            return "not every rank has one of its own; device cuda shares them";
        std::string message = mlff_lammps::first_message(world, make_session(gpu, lammps_thread_count));
        if (message.empty()) message = different_ranks();
        if (!message.empty()) session.reset();
        return message;
    }

    // Rows of atoms are those of one kind of device and one precision: "" if all ranks have the same.
    std::string different_ranks() const {
        const int kind = 2 * session_info().precision + (is_on_gpu() ? 1 : 0);
        if (mlff_lammps::least_of_ranks(world, kind) == mlff_lammps::most_of_ranks(world, kind)) return "";
        return model_name +
               ": some ranks would use GPUs or a precision that others would not; give the same device and precision "
               "for all of them";
    }

    std::string make_session(const std::string& device, int lammps_thread_count) {
        mlff_session_options options = {};
        options.struct_size = sizeof options;
        options.device = device.c_str();
        options.precision = settings.precision;
        options.thread_count = settings.thread_count > 0 ? settings.thread_count : lammps_thread_count;
        options.exact_radial = settings.exact_radial;
        options.head = settings.head.empty() ? nullptr : settings.head.c_str();
        options.is_trajectory = rank_count == 1;  // then the session finds neighbours itself
        mlff_session* made = nullptr;
        if (mlff_session_create(model.get(), &options, &made) != MLFF_OK) return model_name + ": " + mlff_last_error();
        session.reset(made);
        return "";
    }

    mlff_session_info session_info() const {
        mlff_session_info info = {};
        info.struct_size = sizeof info;
        mlff_session_get_info(session.get(), &info);
        return info;
    }

    // On rank 0; every rank calls it.
    std::string description() const {
        std::string devices = mlff_lammps::different_texts(world, mlff_session_device(session.get()));
        if (rank_count > 1) {
            devices += " (" + std::to_string(rank_count) + " ranks";
            const char* const rows[] = {"; rows go through memory of the host", "; rows go from GPU to GPU by MPI",
                                        "; rows are read in memory of other GPUs",
                                        "; rows go through host memory that ranks share"};
            if (is_on_gpu()) devices += rows[transport] + (why_not_shared.empty() ? "" : ", because " + why_not_shared);
            devices += (why_no_gpus.empty() ? "" : "; not on GPUs: " + why_no_gpus) + ")";
        }
        const mlff_session_info info = session_info();
        return "mlff: " + model_name + " (" + mlff_model_class_name(model.get()) + ") on " + devices + ", precision " +
               kPrecisions[info.precision] + ", " + std::to_string(info.thread_count) +
               (info.thread_count == 1 ? " thread" : " threads") + " per rank\n";
    }

    bool has_far_ghosts() const { return reach > cutoff; }
    void add_atom(int index, int32_t number) {
        place[static_cast<size_t>(index)] = static_cast<int>(atoms.size());
        atoms.push_back(index);
        numbers.push_back(number);
    }

    // Types may change between neighbour lists, as with fix atom/swap.
    void gather(const Atom& all) {
        positions.resize(3 * atoms.size());
        for (size_t i = 0; i < atoms.size(); ++i) {
            numbers[i] = number_of_type[static_cast<size_t>(all.type[atoms[i]])];
            std::copy_n(all.x[atoms[i]], 3, positions.data() + 3 * i);
        }
    }

    // Where results go: forces always, of the rest what is asked for.
    mlff_result make_room(bool wants_virial, bool wants_atom_energies, bool wants_atom_virials) {
        forces.resize(3 * atoms.size());
        atom_energies.resize(wants_atom_energies ? static_cast<size_t>(owned_count) : 0);
        atom_virials.resize(wants_atom_virials ? 9 * atoms.size() : 0);
        mlff_result result = {};
        result.struct_size = sizeof result;
        result.energy = &energy;
        result.forces = forces.data();
        if (wants_virial) result.virial = total_virial;
        if (wants_atom_energies) result.atom_energies = atom_energies.data();
        if (wants_atom_virials) result.atom_virials = atom_virials.data();
        if (wants_trust) make_room_for_trust(result);
        if (wants_spread) make_room_for_spread(result);
        return result;
    }
    // Ranks without atoms ask for it too: all exchange rows.
    void make_room_for_trust(mlff_result& result) {
        expected_errors.resize(static_cast<size_t>(owned_count) + 1);
        novelties.resize(expected_errors.size());
        result.expected_errors = expected_errors.data();
        result.novelties = novelties.data();
    }
    void make_room_for_spread(mlff_result& result) {
        sigma_forces.resize(static_cast<size_t>(owned_count));
        if (rank_count == 1) {
            result.sigma_energy_per_atom = &sigma_energy;
            result.sigma_forces = sigma_forces.data();
            result.sigma_max_force = &sigma_max_force;
            return;
        }
        energy_deviations.resize(static_cast<size_t>(member_count - 1));
        force_deviations.resize(3 * atoms.size() * energy_deviations.size());
        result.energy_deviations = energy_deviations.data();
        result.force_deviations = force_deviations.data();
    }
};

PairMLFF::PairMLFF(LAMMPS* lammps) : Pair(lammps), impl_(new Impl(world)) {
    single_enable = 0;
    restartinfo = 0;  // after read_restart the style is given again: model files are not part of a restart file
    one_coeff = 1;
    manybody_flag = 1;
    no_virial_fdotr_compute = 1;  // the session gives the virial
    centroidstressflag = CENTROID_NOTAVAIL;
    comm_forward = 2;
    comm_reverse = 3;
    pvector = impl_->globals;
}

PairMLFF::~PairMLFF() {
    if (!allocated) return;
    memory->destroy(setflag);
    memory->destroy(cutsq);
}

void PairMLFF::settings(int narg, char** arg) {
    const auto value_of = [&](int i) -> std::string {
        if (i + 1 >= narg) error->all(FLERR, std::string("pair_style mlff: ") + arg[i] + " has no value");
        return arg[i + 1];
    };
    Impl& impl = *impl_;
    impl.settings = {};
    for (int i = 0; i < narg; i += 2) {
        const std::string keyword = arg[i], value = value_of(i);
        if (keyword == "device") {
            impl.settings.device = value;
        } else if (keyword == "precision") {
            const auto* found = std::find(std::begin(kPrecisions), std::end(kPrecisions), value);
            if (found == std::end(kPrecisions))
                error->all(FLERR, "pair_style mlff: precision " + value + " is none of auto, mixed, fp64, fp32, fast");
            impl.settings.precision = static_cast<mlff_precision>(found - kPrecisions);
        } else if (keyword == "head") {
            impl.settings.head = value;
        } else if (keyword == "threads") {
            impl.settings.thread_count = utils::inumeric(FLERR, value, false, lmp);
            if (impl.settings.thread_count < 1 || impl.settings.thread_count > 4096)
                error->all(FLERR, "pair_style mlff: threads " + value + ", expected 1 to 4096");
        } else if (keyword == "radial") {
            if (value != "tables" && value != "exact")
                error->all(FLERR, "pair_style mlff: radial " + value + ", expected tables or exact");
            impl.settings.exact_radial = value == "exact";
        } else if (keyword == "rows") {
            const char* const known[] = {"auto", "host", "device", "shared", "window"};
            if (std::find(std::begin(known), std::end(known), value) == std::end(known))
                error->all(FLERR, "pair_style mlff: rows " + value + ", expected auto, host, device, shared or window");
            impl.settings.rows = value;
        } else if (keyword == "charge") {
            impl.settings.charge = utils::numeric(FLERR, value, false, lmp);
        } else if (keyword == "spin") {
            impl.settings.spin = utils::numeric(FLERR, value, false, lmp);
        } else {
            error->all(FLERR, "pair_style mlff: unknown keyword " + keyword +
                                  ", expected device, precision, head, threads, radial, rows, charge or spin");
        }
    }
    if (comm->nprocs > 1 && impl.settings.device == "reference")
        error->all(
            FLERR,
            "pair_style mlff: device reference works on one MPI rank only; on several ranks use device cpu or cuda");
    if (!impl.model) return;
    // The style was there already: its coefficients stay.
    const std::string message = impl.start_sessions(comm->nthreads);
    if (!message.empty()) error->all(FLERR, "pair_style mlff: " + message);
    offer_globals();
    log_description();
}

void PairMLFF::coeff(int narg, char** arg) {
    Impl& impl = *impl_;
    const int type_count = atom->ntypes;
    if (narg < 3 || std::strcmp(arg[0], "*") != 0 || std::strcmp(arg[1], "*") != 0)
        error->all(FLERR,
                   "pair_coeff of mlff: expected * * MODEL [d3 FUNCTIONAL] and an element, or NULL, for each "
                   "atom type");
    const bool has_dispersion = narg > 3 && std::strcmp(arg[3], "d3") == 0;
    const auto is_element = [](const char* word) {
        return std::strcmp(word, "NULL") == 0 || mlff_lammps::atomic_number(word) != 0;
    };
    if (has_dispersion && (narg == 4 || is_element(arg[4])))
        error->all(FLERR,
                   "pair_coeff of mlff: d3 has no functional; expected * * MODEL d3 FUNCTIONAL and an element, "
                   "or NULL, for each atom type");
    const int before_elements = has_dispersion ? 5 : 3;
    if (narg != before_elements + type_count)
        error->all(FLERR, "pair_coeff of mlff: " + std::to_string(narg - before_elements) + " elements for " +
                              std::to_string(type_count) + " atom types");
    if (!allocated) {
        memory->create(setflag, type_count + 1, type_count + 1, "pair:setflag");
        memory->create(cutsq, type_count + 1, type_count + 1, "pair:cutsq");
        allocated = 1;
    }
    impl.model_name = arg[2];
    impl.number_of_type.assign(static_cast<size_t>(type_count) + 1, 0);
    for (int type = 1; type <= type_count; ++type) {
        const std::string symbol = arg[before_elements + type - 1];
        if (symbol == "NULL") continue;
        impl.number_of_type[static_cast<size_t>(type)] = mlff_lammps::atomic_number(symbol);
        if (impl.number_of_type[static_cast<size_t>(type)] == 0)
            error->all(FLERR, "pair_coeff of mlff: " + symbol +
                                  " is no element; expected a chemical symbol or NULL for atom type " +
                                  std::to_string(type));
    }
    int set_count = 0;
    for (int i = 1; i <= type_count; ++i)
        for (int j = 1; j <= type_count; ++j) {
            setflag[i][j] = j >= i && impl.number_of_type[static_cast<size_t>(i)] != 0 &&
                                    impl.number_of_type[static_cast<size_t>(j)] != 0
                                ? 1
                                : 0;
            set_count += setflag[i][j];
        }
    if (set_count == 0) error->all(FLERR, "pair_coeff of mlff: no atom type has an element");

    std::string message = has_dispersion ? impl.add_dispersion(arg[4]) : "";
    if (message.empty()) message = impl.open();
    if (message.empty()) message = impl.unknown_elements();
    message = mlff_lammps::first_message(world, message);
    if (message.empty()) message = impl.start_sessions(comm->nthreads);
    if (!message.empty()) error->all(FLERR, "pair_coeff of mlff: " + message);
    offer_globals();
    log_description();
}

// How many numbers compute pair has, which it asks for when it is made.
void PairMLFF::offer_globals() {
    nextra = impl_->member_count > 0 || impl_->has_trust_meter ? Impl::kGlobalCount : 0;
    std::fill_n(pvector, Impl::kGlobalCount, NAN);
}

void PairMLFF::log_description() {
    const std::string text = impl_->description();
    if (comm->me == 0) utils::logmesg(lmp, text);
}

void PairMLFF::init_style() {
    Impl& impl = *impl_;
    const std::string units = update->unit_style;
    if (units != "metal" && units != "real")
        error->all(FLERR, "pair_style mlff needs units metal or real, not " + units);
    impl.energy_unit = units == "real" ? utils::get_conversion_factor(utils::ENERGY, utils::METAL2REAL) : 1.0;
    if (domain->dimension != 3) error->all(FLERR, "pair_style mlff needs dimension 3");
    if (force->newton_pair == 0) error->all(FLERR, "pair_style mlff needs newton pair on");
    if (neighbor->nex_type + neighbor->nex_group + neighbor->nex_mol > 0)
        error->all(FLERR, "pair_style mlff needs all neighbours: it does not work with neigh_modify exclude");
    if (atom->molecular != Atom::ATOMIC)
        for (int k = 1; k <= 3; ++k)
            if (force->special_lj[k] == 0.0 && force->special_coul[k] == 0.0)
                error->all(
                    FLERR,
                    "pair_style mlff needs all neighbours, bonded ones too: give special_bonds lj/coul 1.0 1.0 1.0");
    impl.listed_at = -1;
    if (comm->nprocs == 1) return;
    neighbor->add_request(this, NeighConst::REQ_FULL);
    if (!impl.has_far_ghosts()) return;
    // Ghosts reach further than the list, which would have thousands of neighbours for each atom.
    if (comm->mode != Comm::SINGLE)
        error->all(FLERR, "pair_style mlff: on several ranks this model needs comm_modify mode single");
    comm->cutghostuser = std::max(comm->cutghostuser, impl.reach + neighbor->skin);
}

double PairMLFF::init_one(int i, int j) {
    if (setflag[i][j] == 0)
        error->all(FLERR,
                   "pair_coeff of mlff is not set for atom types " + std::to_string(i) + " and " + std::to_string(j));
    return impl_->cutoff > 0 ? impl_->cutoff : 1;  // a model that finds its neighbours itself reads no list
}

void PairMLFF::compute(int eflag, int vflag) {
    ev_init(eflag, vflag);
    Impl& impl = *impl_;
    for (Impl::AtomQuantity* each : {&impl.shown_sigma_forces, &impl.shown_expected_errors, &impl.shown_novelties}) {
        if (each->is_wanted) require(impl.why_none(*each));
        each->is_known = false;
    }
    const bool has_reader = are_globals_wanted();
    impl.wants_spread = impl.shown_sigma_forces.is_wanted || (has_reader && impl.member_count > 0);
    impl.wants_trust =
        impl.shown_expected_errors.is_wanted || impl.shown_novelties.is_wanted || (has_reader && impl.has_trust_meter);
    if (comm->nprocs == 1)
        evaluate_box();
    else
        evaluate_domain();
    add_results();
    if (impl.wants_spread) keep_spread();
    if (impl.wants_trust) keep_trust();
}

// In this step: compute pair may read them wherever it may read the energy.
bool PairMLFF::are_globals_wanted() const {
    if (!eflag_global || nextra == 0) return false;
    const std::vector<Compute*>& computes = modify->get_compute_list();
    return std::any_of(computes.begin(), computes.end(), [](const Compute* compute) {
        return std::strcmp(compute->style, "pair") == 0 && compute->vector_flag != 0;
    });
}

void PairMLFF::require(const std::string& why_none) const {
    if (!why_none.empty()) error->all(FLERR, "pair_style mlff: " + why_none);
}

// Own atoms of our types.
void PairMLFF::find_atoms() {
    Impl& impl = *impl_;
    impl.atoms.clear();
    impl.numbers.clear();
    impl.place.assign(static_cast<size_t>(atom->nlocal + atom->nghost), -1);
    for (int i = 0; i < atom->nlocal; ++i) {
        const int32_t number = impl.number_of_type[static_cast<size_t>(atom->type[i])];
        if (number != 0) impl.add_atom(i, number);
    }
    impl.owned_count = static_cast<int>(impl.atoms.size());
}

// One rank: all atoms are own atoms, and the session knows the box.
void PairMLFF::evaluate_box() {
    Impl& impl = *impl_;
    find_atoms();
    impl.gather(*atom);
    const std::array<double, 9> cell = cell_of(*domain);
    mlff_system system = {};
    system.struct_size = sizeof system;
    system.atom_count = impl.owned_count;
    system.atomic_numbers = impl.numbers.data();
    system.positions = impl.positions.data();
    system.cell = cell.data();
    for (int k = 0; k < 3; ++k) system.periodic[k] = domain->periodicity[k] != 0;
    system.total_charge = impl.settings.charge;
    system.spin_multiplicity = impl.settings.spin;
    mlff_result result = impl.make_room(vflag_global, eflag_atom, vflag_atom);
    if (mlff_session_evaluate(impl.session.get(), &system, &result) != MLFF_OK)
        error->one(FLERR, "mlff, " + impl.model_name + ": " + mlff_last_error());
}

// After a new neighbour list: our atoms, their neighbours, the ghosts that are among these, and where the atoms that
// they copy are.
void PairMLFF::find_domain() {
    Impl& impl = *impl_;
    find_atoms();
    impl.owners.assign(impl.place.size(), Owner());
    for (int i = 0; i < atom->nlocal; ++i)
        impl.owners[static_cast<size_t>(i)] = {comm->me, impl.place[static_cast<size_t>(i)]};
    comm->forward_comm(this);

    std::vector<char> is_listed(static_cast<size_t>(atom->nlocal),
                                0);  // a list for some types says nothing of atoms of others
    for (int ii = 0; ii < list->inum; ++ii) is_listed[static_cast<size_t>(list->ilist[ii])] = 1;
    const double listed = impl.cutoff + neighbor->skin;
    const bool goes_further = neighbor->cutneighmax > listed;  // for other styles
    double* const* x = atom->x;
    impl.neighbors.clear();
    impl.first.assign(1, 0);
    std::vector<Owner> owner_of_ghost;
    const auto add_ghost = [&](int j, int32_t number) {
        impl.add_atom(j, number);
        owner_of_ghost.push_back(impl.owners[static_cast<size_t>(j)]);
    };
    for (int own = 0; own < impl.owned_count; ++own) {
        const int i = impl.atoms[static_cast<size_t>(own)];
        const int count = is_listed[static_cast<size_t>(i)] ? list->numneigh[i] : 0;
        for (int n = 0; n < count; ++n) {
            const int j = list->firstneigh[i][n] & NEIGHMASK;
            const int32_t number = impl.number_of_type[static_cast<size_t>(atom->type[j])];
            if (number == 0 || (goes_further && !is_within(x[i], x[j], listed))) continue;
            if (impl.place[static_cast<size_t>(j)] < 0) add_ghost(j, number);
            impl.neighbors.push_back(impl.place[static_cast<size_t>(j)]);
        }
        impl.first.push_back(static_cast<int64_t>(impl.neighbors.size()));
    }
    if (impl.has_far_ghosts())  // all that LAMMPS has: around the brick, and at least that far
        for (int j = atom->nlocal; j < atom->nlocal + atom->nghost; ++j) {
            const int32_t number = impl.number_of_type[static_cast<size_t>(atom->type[j])];
            if (number != 0 && impl.place[static_cast<size_t>(j)] < 0) add_ghost(j, number);
        }
    impl.exchange.plan(owner_of_ghost);
    impl.listed_at = neighbor->lastcall;
    ++impl.list_version;
}

// Several ranks: messages between layers are passed to atoms of other ranks too.
void PairMLFF::evaluate_domain() {
    Impl& impl = *impl_;
    if (neighbor->ago == 0 || impl.listed_at != neighbor->lastcall) find_domain();
    impl.gather(*atom);
    const std::array<double, 9> cell = cell_of(*domain);
    mlff_domain part = {};
    part.struct_size = sizeof part;
    part.owned_count = impl.owned_count;
    part.ghost_count = static_cast<int64_t>(impl.atoms.size()) - impl.owned_count;
    part.atomic_numbers = impl.numbers.data();
    part.positions = impl.positions.data();
    part.first = impl.first.data();
    part.neighbors = impl.neighbors.data();
    part.sent_count = static_cast<int64_t>(impl.exchange.sent().size());
    part.sent = impl.exchange.sent().data();
    part.received_count = impl.exchange.received_count();
    part.ghost_source = impl.exchange.ghost_source().data();
    part.exchange = exchange_rows;
    part.exchange_back = give_rows_back;
    part.user_data = &impl.exchange;
    part.list_version = impl.list_version;
    part.row_transport = impl.transport;
    part.total_charge = impl.settings.charge;
    part.spin_multiplicity = impl.settings.spin;
    part.cell = cell.data();
    for (int k = 0; k < 3; ++k) part.periodic[k] = domain->periodicity[k] != 0;
    mlff_result result = impl.make_room(vflag_global, eflag_atom, vflag_atom);
    // Other ranks wait for this one, so that a failure here ends them too.
    if (mlff_session_evaluate_domain(impl.session.get(), &part, &result) != MLFF_OK)
        error->one(FLERR, "mlff, " + impl.model_name + ": " + mlff_last_error());
    if (impl.wants_spread) sum_deviations();
}

// The spread of the whole system from the shares of all ranks. Forces go one member at a time, so that LAMMPS' buffers
// need not grow.
void PairMLFF::sum_deviations() {
    Impl& impl = *impl_;
    std::vector<double> sums = impl.energy_deviations;
    sums.push_back(impl.owned_count);
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_DOUBLE, MPI_SUM, world);
    const double atom_count = sums.back();
    sums.pop_back();
    double square = 0;
    for (const double sum : sums) square += sum * sum;
    impl.sigma_energy = std::sqrt(square) / std::max(atom_count, 1.0);

    std::fill(impl.sigma_forces.begin(), impl.sigma_forces.end(), 0.0);
    for (size_t member = 0; member < sums.size(); ++member) {
        const double* const deviations = impl.force_deviations.data() + 3 * impl.atoms.size() * member;
        impl.returned.assign(3 * impl.place.size(), 0.0);  // ghosts that are not ours pass on what is not ours
        for (size_t i = 0; i < impl.atoms.size(); ++i)
            std::copy_n(deviations + 3 * i, 3, impl.returned.data() + 3 * impl.atoms[i]);
        comm->reverse_comm(this);
        for (size_t i = 0; i < impl.sigma_forces.size(); ++i)
            for (size_t k = 0; k < 3; ++k) {
                const double sum = impl.returned[3 * static_cast<size_t>(impl.atoms[i]) + k];
                impl.sigma_forces[i] += sum * sum;
            }
    }
    impl.sigma_max_force = 0;
    for (double& sigma : impl.sigma_forces) {
        sigma = std::sqrt(sigma);
        impl.sigma_max_force = std::max(impl.sigma_max_force, sigma);
    }
    MPI_Allreduce(MPI_IN_PLACE, &impl.sigma_max_force, 1, MPI_DOUBLE, MPI_MAX, world);
}

// Where compute pair and fix pair find it.
void PairMLFF::keep_spread() {
    Impl& impl = *impl_;
    const double unit = comm->me == 0 ? impl.energy_unit : 0;
    impl.globals[0] = unit * impl.sigma_energy;
    impl.globals[1] = unit * impl.sigma_max_force;
    impl.show(impl.shown_sigma_forces, impl.sigma_forces, impl.energy_unit, atom->nlocal);
}

// Every rank has expected errors of its own atoms.
void PairMLFF::keep_trust() {
    Impl& impl = *impl_;
    double largest[2] = {0, 0};
    for (size_t i = 0; i < static_cast<size_t>(impl.owned_count); ++i) {
        largest[0] = std::max(largest[0], impl.expected_errors[i]);
        largest[1] = std::max(largest[1], impl.novelties[i]);
    }
    MPI_Allreduce(MPI_IN_PLACE, largest, 2, MPI_DOUBLE, MPI_MAX, world);
    impl.globals[0] = comm->me == 0 ? impl.energy_unit * largest[0] : 0;
    impl.globals[1] = comm->me == 0 ? largest[1] : 0;
    impl.show(impl.shown_expected_errors, impl.expected_errors, impl.energy_unit, atom->nlocal);
    impl.show(impl.shown_novelties, impl.novelties, 1, atom->nlocal);
}

void* PairMLFF::extract(const char* name, int& dimension) {
    dimension = 0;
    const std::string flag = name, ending = "_flag";
    if (flag.size() < ending.size() || flag.compare(flag.size() - ending.size(), ending.size(), ending) != 0)
        return nullptr;
    Impl::AtomQuantity* const found = impl_->quantity(flag.substr(0, flag.size() - ending.size()));
    return found ? &found->is_wanted : nullptr;
}

// fix pair also asks when it is made: then there are no numbers yet.
void* PairMLFF::extract_peratom(const char* name, int& column_count) {
    column_count = 0;
    Impl::AtomQuantity* const found = impl_->quantity(name);
    if (!found) return nullptr;
    require(impl_->why_none(*found));
    return found->is_known ? found->values.data() : nullptr;
}

// What ghosts get is brought to their owners by LAMMPS, as newton pair is on.
void PairMLFF::add_results() {
    const Impl& impl = *impl_;
    const double unit = impl.energy_unit;
    constexpr int kOrder[6] = {0, 4, 8, 1, 2, 5};  // xx yy zz xy xz yz
    for (size_t i = 0; i < impl.atoms.size(); ++i)
        for (size_t k = 0; k < 3; ++k) atom->f[impl.atoms[i]][k] += unit * impl.forces[3 * i + k];
    if (eflag_global) eng_vdwl += unit * impl.energy;
    if (vflag_global)
        for (int k = 0; k < 6; ++k) virial[k] += unit * impl.total_virial[kOrder[k]];
    if (eflag_atom)
        for (size_t i = 0; i < static_cast<size_t>(impl.owned_count); ++i)
            eatom[impl.atoms[i]] += unit * impl.atom_energies[i];
    if (vflag_atom)
        for (size_t i = 0; i < impl.atoms.size(); ++i)
            for (int k = 0; k < 6; ++k)
                vatom[impl.atoms[i]][k] += unit * impl.atom_virials[9 * i + static_cast<size_t>(kOrder[k])];
}

int PairMLFF::pack_forward_comm(int n, int* sent, double* buffer, int, int*) {
    for (int i = 0; i < n; ++i) {
        const Owner& owner = impl_->owners[static_cast<size_t>(sent[i])];
        buffer[2 * i] = owner.rank;
        buffer[2 * i + 1] = owner.atom;
    }
    return 2 * n;
}

void PairMLFF::unpack_forward_comm(int n, int first, double* buffer) {
    for (int i = 0; i < n; ++i)
        impl_->owners[static_cast<size_t>(first + i)] = {static_cast<int>(buffer[2 * i]),
                                                         static_cast<int>(buffer[2 * i + 1])};
}

int PairMLFF::pack_reverse_comm(int n, int first, double* buffer) {
    std::copy_n(impl_->returned.data() + 3 * first, 3 * n, buffer);
    return 3 * n;
}

void PairMLFF::unpack_reverse_comm(int n, int* owners, double* buffer) {
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < 3; ++k) impl_->returned[static_cast<size_t>(3 * owners[i] + k)] += buffer[3 * i + k];
}

double PairMLFF::memory_usage() {
    const Impl& impl = *impl_;
    return Pair::memory_usage() +
           static_cast<double>(
               sizeof(double) * (impl.positions.capacity() + impl.forces.capacity() + impl.atom_virials.capacity() +
                                 impl.force_deviations.capacity() + impl.returned.capacity()) +
               sizeof(int32_t) * (impl.neighbors.capacity() + impl.atoms.capacity() + impl.place.capacity()) +
               sizeof(Owner) * impl.owners.capacity());
}
