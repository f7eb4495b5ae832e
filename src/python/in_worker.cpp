// SPDX-License-Identifier: MIT
// Python in a process of its own, which is started again if it has died.
#include <memory>
#include <optional>

#include "core/error.h"
#include "python/environment.h"
#include "python/teacher.h"
#include "python/worker.h"

namespace mlff::python {
namespace {

class WorkerTeacher : public Teacher {
public:
    WorkerTeacher(const ModelName& model, const std::filesystem::path& environment) : model_(model), environment_(environment) { description_ = start(); }

    const nlohmann::json& description() const override { return description_; }

    void prepare(const nlohmann::json& choice) override {
        choice_ = choice;
        revive();
        worker_->ask(MessageKind::prepare, choice.dump());
    }

    void evaluate(const SystemView& system, const Outputs& outputs) override {
        if (revive()) worker_->ask(MessageKind::prepare, choice_->dump());
        worker_->evaluate(system, outputs);
    }

private:
    nlohmann::json start() {
        worker_ = std::make_unique<Worker>(find_host_program(), find_python_library(), model_.text, model_.time_limit);
        worker_->ask(MessageKind::start, nlohmann::json{{"environment", environment_.string()}}.dump());
        return nlohmann::json::parse(worker_->ask(MessageKind::load, model_.request().dump()));
    }

    // Whether a new process had to be started.
    bool revive() {
        if (worker_->is_usable()) return false;
        start();
        return true;
    }

    ModelName model_;
    std::filesystem::path environment_;
    std::unique_ptr<Worker> worker_;
    nlohmann::json description_;
    std::optional<nlohmann::json> choice_;
};

}  // namespace

std::unique_ptr<Teacher> open_in_worker(const ModelName& model, const std::filesystem::path& environment) {
    return std::make_unique<WorkerTeacher>(model, environment);
}

}  // namespace mlff::python
