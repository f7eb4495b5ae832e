// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "api/guard.h"
#include "api/handles.h"
#include "core/log.h"
#include "derivatives/hessian.h"

using mlff::concat;
using mlff::fail;
using mlff::Status;
using namespace mlff::api;

namespace {

mlff::SessionOptions read_options(const mlff_session_options* given) {
    mlff::SessionOptions options;
    if (!given) return options;
    require_size(given->struct_size, offsetof(mlff_session_options, is_trajectory), "mlff_session_options");
    if (given->device) options.device = given->device;
    if (given->precision < MLFF_PRECISION_AUTO || given->precision > MLFF_PRECISION_FAST)
        fail(Status::argument, "precision ", given->precision, " is not one of mlff_precision");
    options.precision = static_cast<mlff::Precision>(given->precision);
    options.thread_count = given->thread_count;
    if (given->head) options.head = given->head;
    if (given->neighbor_skin_angstrom != 0)
        options.neighbor_skin = mlff::NeighborSkin::of(given->neighbor_skin_angstrom);
    if (given->exact_radial != 0 && given->exact_radial != 1)
        fail(Status::argument, "exact_radial is ", given->exact_radial, ", expected 0 or 1");
    options.exact_radial = given->exact_radial == 1;
    options.gpu_memory_limit_bytes = given->gpu_memory_limit_bytes;
    if (given->struct_size < sizeof(mlff_session_options)) return options;
    if (given->is_trajectory != 0 && given->is_trajectory != 1)
        fail(Status::argument, "is_trajectory is ", given->is_trajectory, ", expected 0 or 1");
    options.is_trajectory = given->is_trajectory == 1;
    return options;
}

mlff::Results read_result(const mlff_result* result) {
    require(result, "result");
    // Callers compiled before spreads were added have none.
    require_size(result->struct_size, offsetof(mlff_result, sigma_energy_per_atom), "mlff_result");
    mlff::Results results = {{result->energy, result->forces, result->virial, result->atom_energies,
                              result->atom_virials, result->descriptors},
                             result->stress};
    if (result->struct_size < offsetof(mlff_result, energy_deviations)) return results;
    results.outputs.sigma_energy_per_atom = result->sigma_energy_per_atom;
    results.outputs.sigma_forces = result->sigma_forces;
    results.sigma_max_force = result->sigma_max_force;
    if (result->struct_size < offsetof(mlff_result, expected_errors)) return results;
    results.outputs.energy_deviations = result->energy_deviations;
    results.outputs.force_deviations = result->force_deviations;
    if (result->struct_size < sizeof(mlff_result)) return results;
    results.outputs.expected_errors = result->expected_errors;
    results.outputs.novelties = result->novelties;
    return results;
}

mlff::HessianOptions read_hessian_options(const mlff_hessian_options* given) {
    mlff::HessianOptions options;
    if (!given) return options;
    require_size(given->struct_size, sizeof(mlff_hessian_options), "mlff_hessian_options");
    if (given->step_angstrom != 0) options.step = given->step_angstrom;
    if (given->symmetry_tolerance_angstrom < 0)
        options.symmetry_tolerance = 0;
    else if (given->symmetry_tolerance_angstrom != 0)  // NaN is refused where it is used
        options.symmetry_tolerance = given->symmetry_tolerance_angstrom;
    return options;
}

// The caller's function as what the evaluators know.
class CalledHalo : public mlff::HaloExchange {
public:
    explicit CalledHalo(const mlff_domain& domain)
        : domain_(domain), back_(domain.struct_size >= sizeof(mlff_domain) ? domain.exchange_back : nullptr) {}
    void exchange(const void* sent, void* received, size_t row_bytes) override {
        const int32_t failure = domain_.exchange(sent, received, row_bytes, domain_.user_data);
        if (failure != 0) fail(Status::argument, "exchange returned ", failure, ", expected 0");
    }
    bool can_return() const override { return back_ != nullptr; }
    void give_back(const void* given, void* returned, size_t row_bytes) override {
        const int32_t failure = back_(given, returned, row_bytes, domain_.user_data);
        if (failure != 0) fail(Status::argument, "exchange_back returned ", failure, ", expected 0");
    }

private:
    const mlff_domain& domain_;
    mlff_exchange_rows back_;  // NULL: not given
};

mlff::RowTransport read_transport(int32_t given) {
    switch (given) {
        case MLFF_ROWS_THROUGH_HOST: return mlff::RowTransport::host;
        case MLFF_ROWS_ON_DEVICE: return mlff::RowTransport::device;
        case MLFF_ROWS_SHARED: return mlff::RowTransport::shared;
        case MLFF_ROWS_IN_WINDOW: return mlff::RowTransport::window;
        default: fail(Status::argument, "row_transport is ", given, ", expected one of mlff_row_transport");
    }
}

void write_address(mlff_session* session, mlff::RowTransport transport, mlff_gpu_address* address) {
    require(session, "session");
    const OnlyUse use(session->is_used, "session");
    require(address, "address");
    require_size(address->struct_size, sizeof(mlff_gpu_address), "mlff_gpu_address");
    const mlff::GpuAddress found = session->session.halo_sharing().gpu_address(transport);
    static_assert(sizeof found <= sizeof address->bytes);
    std::memset(address->bytes, 0, sizeof address->bytes);
    std::memcpy(address->bytes, &found, sizeof found);
}

void read_cell(const double* cell, const uint8_t* periodic, mlff::Mat3& to, std::array<bool, 3>& is_periodic) {
    for (size_t k = 0; k < 3; ++k) {
        if (periodic[k] > 1) fail(Status::argument, "periodic[", k, "] is ", int{periodic[k]}, ", expected 0 or 1");
        is_periodic[k] = periodic[k] == 1;
        if (is_periodic[k] && !cell) fail(Status::argument, "periodic[", k, "] is set but cell is NULL");
        if (cell) std::copy_n(cell + 3 * k, 3, to[k].begin());
    }
}

// The i-th element of a caller's array, whose stride is the caller's idea of the struct's size.
template <class Struct>
Struct* element(Struct* first, int64_t i) {
    using Byte = std::conditional_t<std::is_const_v<Struct>, const char, char>;
    return reinterpret_cast<Struct*>(reinterpret_cast<Byte*>(first) + static_cast<size_t>(i) * first->struct_size);
}

}  // namespace

namespace mlff::api {

SystemView system_view(const mlff_system* system) {
    require(system, "system");
    require_size(system->struct_size, sizeof(mlff_system), "mlff_system");
    SystemView view;
    view.atom_count = system->atom_count;
    view.atomic_numbers = system->atomic_numbers;
    view.positions = system->positions;
    view.total_charge = system->total_charge;
    view.spin_multiplicity = system->spin_multiplicity == 0 ? 1 : system->spin_multiplicity;
    read_cell(system->cell, system->periodic, view.cell, view.periodic);
    return view;
}

}  // namespace mlff::api

mlff_status mlff_session_create(const mlff_model* model, const mlff_session_options* options, mlff_session** session) {
    if (session) *session = nullptr;
    return guarded([&] {
        require(model, "model");
        require(session, "session");
        *session = new mlff_session{mlff::Session(model->model, read_options(options))};
        const mlff::Session& made = (*session)->session;
        if (mlff::is_logged(mlff::LogLevel::info))
            mlff::log(mlff::LogLevel::info,
                      concat("session on ", made.device_name(), " (", made.device_reason(), "), ",
                             mlff::precision_name(made.precision()), ", ", made.thread_count(), " threads"));
    });
}

void mlff_session_free(mlff_session* session) { delete session; }

mlff_status mlff_session_get_info(const mlff_session* session, mlff_session_info* info) {
    return guarded([&] {
        require(session, "session");
        require(info, "info");
        // Callers compiled before trust meters were added have none.
        require_size(info->struct_size, offsetof(mlff_session_info, has_trust_meter), "mlff_session_info");
        info->precision = static_cast<mlff_precision>(session->session.precision());
        info->thread_count = session->session.thread_count();
        info->evaluation_count = session->session.evaluation_count();
        info->neighbor_build_count = session->session.neighbor_build_count();
        if (info->struct_size < sizeof(mlff_session_info)) return;
        info->has_trust_meter = session->session.trust_meter() != nullptr;
    });
}

const char* mlff_session_device(const mlff_session* session) {
    return session ? session->session.device_name().c_str() : nullptr;
}

const char* mlff_session_device_reason(const mlff_session* session) {
    return session ? session->session.device_reason().c_str() : nullptr;
}

mlff_status mlff_session_evaluate(mlff_session* session, const mlff_system* system, mlff_result* result) {
    return guarded([&] {
        require(session, "session");
        const OnlyUse use(session->is_used, "session");
        const mlff::SystemView view = system_view(system);
        const mlff::Results results = read_result(result);
        session->session.evaluate({&view, 1}, {&results, 1});
    });
}

mlff_status mlff_session_evaluate_device(mlff_session* session, const mlff_system* system, mlff_result* result,
                                         void* stream) {
    return guarded([&] {
        require(session, "session");
        const OnlyUse use(session->is_used, "session");
        session->session.evaluate_on_device(system_view(system), read_result(result), stream);
    });
}

mlff_status mlff_session_evaluate_domain(mlff_session* session, const mlff_domain* domain, mlff_result* result) {
    return guarded([&] {
        require(session, "session");
        const OnlyUse use(session->is_used, "session");
        require(domain, "domain");
        // Callers compiled before `cell` was added give no cell.
        require_size(domain->struct_size, offsetof(mlff_domain, cell), "mlff_domain");
        const bool has_cell = domain->struct_size >= offsetof(mlff_domain, exchange_back);
        if (!domain->exchange) fail(Status::argument, "exchange is NULL");
        if (domain->owned_count < 0 || domain->ghost_count < 0)
            fail(Status::argument, "the domain has ", domain->owned_count, " atoms and ", domain->ghost_count,
                 " ghosts");
        if (domain->sent_count < 0)
            fail(Status::argument, "sent_count is ", domain->sent_count, ", expected 0 or more");
        if (domain->sent_count > 0) require(domain->sent, "sent");
        if (domain->ghost_count > 0) require(domain->ghost_source, "ghost_source");
        const mlff::Results results = read_result(result);
        if (results.sigma_max_force)
            fail(Status::unsupported,
                 "a spread was asked for, but a domain has only a share of each force: ask for deviations");
        if (results.stress)
            fail(Status::argument, "a stress was asked for, but a domain has no volume: ask for the virial");
        CalledHalo halo(*domain);
        mlff::Domain view;
        view.atoms.atom_count = domain->owned_count + domain->ghost_count;
        view.atoms.atomic_numbers = domain->atomic_numbers;
        view.atoms.positions = domain->positions;
        view.atoms.total_charge = domain->total_charge;
        view.atoms.spin_multiplicity = domain->spin_multiplicity == 0 ? 1 : domain->spin_multiplicity;
        view.owned_count = domain->owned_count;
        if (has_cell) read_cell(domain->cell, domain->periodic, view.cell, view.periodic);
        view.first = domain->first;
        view.neighbors = domain->neighbors;
        view.halo = {{domain->sent, static_cast<size_t>(domain->sent_count)},
                     domain->received_count,
                     {domain->ghost_source, static_cast<size_t>(domain->ghost_count)},
                     &halo,
                     read_transport(domain->row_transport)};
        view.list_version = domain->list_version;
        session->session.evaluate_domain(view, results.outputs);
    });
}

mlff_status mlff_session_get_gpu_address(mlff_session* session, mlff_gpu_address* address) {
    return guarded([&] { write_address(session, mlff::RowTransport::shared, address); });
}

mlff_status mlff_session_get_window_address(mlff_session* session, mlff_gpu_address* address) {
    return guarded([&] { write_address(session, mlff::RowTransport::window, address); });
}

mlff_status mlff_session_reach_gpu(mlff_session* session, const mlff_gpu_address* address) {
    return guarded([&] {
        require(session, "session");
        const OnlyUse use(session->is_used, "session");
        require(address, "address");
        require_size(address->struct_size, sizeof(mlff_gpu_address), "mlff_gpu_address");
        mlff::GpuAddress wanted;
        std::memcpy(&wanted, address->bytes, sizeof wanted);
        session->session.halo_sharing().reach_gpu(wanted);
    });
}

mlff_status mlff_session_evaluate_batch(mlff_session* session, int64_t count, const mlff_system* systems,
                                        mlff_result* results) {
    return guarded([&] {
        require(session, "session");
        const OnlyUse use(session->is_used, "session");
        if (count < 0) fail(Status::argument, "count is ", count);
        if (count == 0) return;
        require(systems, "systems");
        require(results, "results");
        require_size(systems->struct_size, sizeof(mlff_system), "mlff_system");
        require_size(results->struct_size, offsetof(mlff_result, sigma_energy_per_atom), "mlff_result");
        std::vector<mlff::SystemView> views;
        std::vector<mlff::Results> outputs;
        for (int64_t i = 0; i < count; ++i) {
            const mlff_system* system = element(systems, i);
            const mlff_result* result = element(results, i);
            if (system->struct_size != systems->struct_size || result->struct_size != results->struct_size)
                fail(Status::argument, "system ", i, ": struct_size differs from that of system 0");
            views.push_back(system_view(system));
            outputs.push_back(read_result(result));
        }
        session->session.evaluate(views, outputs);
    });
}

mlff_status mlff_session_hessian(mlff_session* session, const mlff_system* system, const mlff_hessian_options* options,
                                 double* hessian, mlff_hessian_report* report) {
    return guarded([&] {
        require(session, "session");
        const OnlyUse use(session->is_used, "session");
        const mlff::SystemView view = system_view(system);
        if (view.atom_count > 0) require(hessian, "hessian");
        if (report) require_size(report->struct_size, sizeof(mlff_hessian_report), "mlff_hessian_report");
        const mlff::Hessian found = mlff::compute_hessian(session->session, view, read_hessian_options(options));
        std::copy(found.values.begin(), found.values.end(), hessian);
        if (!report) return;
        report->step_error = found.step_error;
        report->asymmetry = found.asymmetry;
        report->sum_rule_error = found.sum_rule_error;
        report->evaluation_count = found.evaluation_count;
        report->operation_count = found.operation_count;
        report->is_extrapolated = found.is_extrapolated;
    });
}
