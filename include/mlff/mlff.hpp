// SPDX-License-Identifier: MIT
// C++17 over mlff.h: handles that free themselves, errors as exceptions. Header only; link libmlff.
//
//     mlff::Model model("builtin");
//     mlff::Session session(model);
//     mlff::Evaluation water = session.evaluate({numbers, positions});
#ifndef MLFF_MLFF_HPP
#define MLFF_MLFF_HPP

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <mlff/mlff.h>

namespace mlff {
inline namespace v0 {  // apart from the names inside a statically linked library

class StatusError : public std::runtime_error {
public:
    explicit StatusError(mlff_status status) : std::runtime_error(mlff_last_error()), status_(status) {}
    mlff_status status() const { return status_; }

private:
    mlff_status status_;
};

inline void check_status(mlff_status status) {
    if (status != MLFF_OK) throw StatusError(status);
}

// A model; copies share it.
class Model {
public:
    explicit Model(const std::string& path) {
        mlff_model* model = nullptr;
        check_status(mlff_model_load(path.c_str(), &model));
        model_ = std::shared_ptr<mlff_model>(model, mlff_model_free);
    }

    mlff_model_info info() const {
        mlff_model_info info{};
        info.struct_size = sizeof info;
        check_status(mlff_model_get_info(model_.get(), &info));
        return info;
    }
    std::vector<int32_t> elements() const {
        std::vector<int32_t> elements(static_cast<size_t>(info().element_count));
        check_status(
            mlff_model_get_elements(model_.get(), elements.data(), static_cast<int64_t>(elements.size()), nullptr));
        return elements;
    }
    std::vector<std::string> heads() const {
        std::vector<std::string> heads;
        for (int32_t i = 0; i < info().head_count; ++i) heads.emplace_back(mlff_model_head_name(model_.get(), i));
        return heads;
    }
    std::string class_name() const { return mlff_model_class_name(model_.get()); }
    std::string why_not_runnable() const { return mlff_model_why_not_runnable(model_.get()); }
    std::string description_json() const { return mlff_model_description_json(model_.get()); }

    const mlff_model* get() const { return model_.get(); }

private:
    std::shared_ptr<mlff_model> model_;
};

// Atoms by value. `cell` holds lattice vectors in rows; it may be left out if nothing is periodic.
struct Atoms {
    std::vector<int32_t> numbers;
    std::vector<double> positions;  // [atom][3], angstrom
    std::optional<std::array<double, 9>> cell;
    std::array<bool, 3> periodic{};
    double total_charge = 0;
    double spin_multiplicity = 1;

    mlff_system view() const {
        if (positions.size() != 3 * numbers.size())
            throw std::invalid_argument("mlff::Atoms: three coordinates for each atom are needed");
        mlff_system system{};
        system.struct_size = sizeof system;
        system.atom_count = static_cast<int64_t>(numbers.size());
        system.atomic_numbers = numbers.data();
        system.positions = positions.data();
        system.cell = cell ? cell->data() : nullptr;
        for (size_t k = 0; k < 3; ++k) system.periodic[k] = periodic[k];
        system.total_charge = total_charge;
        system.spin_multiplicity = spin_multiplicity;
        return system;
    }
    bool is_periodic() const { return periodic[0] || periodic[1] || periodic[2]; }
};

struct Evaluation {
    double energy = 0;
    std::vector<double> forces;                   // [atom][3]
    std::vector<double> atom_energies;            // [atom]
    std::array<double, 9> virial{};               // [3][3] = -dE/dstrain
    std::optional<std::array<double, 6>> stress;  // xx yy zz yz xz xy; where something is periodic
    std::vector<double> descriptors;              // [atom][descriptor_count], if Options ask for them
};

struct Options {
    std::string device = "auto";
    mlff_precision precision = MLFF_PRECISION_AUTO;
    int32_t thread_count = 0;
    std::string head;
    double neighbor_skin_angstrom = 0;
    bool exact_radial = false;
    int64_t gpu_memory_limit_bytes = 0;
    bool is_trajectory = false;
    bool want_descriptors = false;
};

// Movable, not copyable; one thread at a time.
class Session {
public:
    explicit Session(const Model& model, const Options& options = {}) {
        mlff_session_options given{};
        given.struct_size = sizeof given;
        given.device = options.device.c_str();
        given.precision = options.precision;
        given.thread_count = options.thread_count;
        given.head = options.head.empty() ? nullptr : options.head.c_str();
        given.neighbor_skin_angstrom = options.neighbor_skin_angstrom;
        given.exact_radial = options.exact_radial;
        given.gpu_memory_limit_bytes = options.gpu_memory_limit_bytes;
        given.is_trajectory = options.is_trajectory;
        if (options.want_descriptors) descriptor_count_ = static_cast<size_t>(model.info().descriptor_count);
        if (options.want_descriptors && descriptor_count_ == 0)
            throw std::invalid_argument("mlff::Session: the model has no descriptors");
        mlff_session* session = nullptr;
        check_status(mlff_session_create(model.get(), &given, &session));
        session_.reset(session);
    }

    Evaluation evaluate(const Atoms& atoms) { return std::move(evaluate(std::vector<Atoms>{atoms}).front()); }

    std::vector<Evaluation> evaluate(const std::vector<Atoms>& batch) {
        std::vector<Evaluation> evaluations(batch.size());
        std::vector<mlff_system> systems;
        std::vector<mlff_result> results;
        for (size_t i = 0; i < batch.size(); ++i) {
            Evaluation& evaluation = evaluations[i];
            systems.push_back(batch[i].view());
            evaluation.forces.resize(batch[i].positions.size());
            evaluation.atom_energies.resize(batch[i].numbers.size());
            evaluation.descriptors.resize(batch[i].numbers.size() * descriptor_count_);
            if (batch[i].is_periodic()) evaluation.stress.emplace();
            mlff_result result{};
            result.struct_size = sizeof result;
            result.energy = &evaluation.energy;
            result.forces = evaluation.forces.data();
            result.stress = evaluation.stress ? evaluation.stress->data() : nullptr;
            result.virial = evaluation.virial.data();
            result.atom_energies = evaluation.atom_energies.data();
            result.descriptors = descriptor_count_ > 0 ? evaluation.descriptors.data() : nullptr;
            results.push_back(result);
        }
        check_status(mlff_session_evaluate_batch(session_.get(), static_cast<int64_t>(batch.size()), systems.data(),
                                                 results.data()));
        return evaluations;
    }

    mlff_session_info info() const {
        mlff_session_info info{};
        info.struct_size = sizeof info;
        check_status(mlff_session_get_info(session_.get(), &info));
        return info;
    }
    std::string device() const { return mlff_session_device(session_.get()); }
    std::string device_reason() const { return mlff_session_device_reason(session_.get()); }

    mlff_session* get() { return session_.get(); }

private:
    struct Free {
        void operator()(mlff_session* session) const { mlff_session_free(session); }
    };
    std::unique_ptr<mlff_session, Free> session_;
    size_t descriptor_count_ = 0;
};

}  // namespace v0
}  // namespace mlff

#endif
