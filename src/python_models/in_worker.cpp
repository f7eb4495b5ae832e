// SPDX-License-Identifier: MIT
// Runs a Python model in a separate process, which is restarted if it has died.
#include <memory>
#include <optional>

#include "core/error.h"
#include "formats/json_text.h"
#include "python_models/environment.h"
#include "python_models/teacher.h"
#include "python_models/worker.h"

namespace mlff::python {
namespace {

class WorkerTeacher : public Teacher {
public:
    WorkerTeacher(const ModelName& model, const std::filesystem::path& environment)
        : model_(model), environment_(environment) {
        start();
    }

    const JsonValue& description() const override { return description_; }

    void prepare(const nlohmann::json& choice) override {
        choice_ = choice;
        if (is_alive())
            worker_->ask(MessageKind::prepare, choice.dump());
        else
            start();
    }

    void evaluate(const SystemView& system, const Outputs& outputs) override {
        if (!is_alive()) start();
        worker_->evaluate(system, outputs);
    }

private:
    bool is_alive() const { return worker_ && worker_->is_usable(); }

    // Everything up to the first evaluation. A worker that fails in between is discarded.
    void start() {
        worker_.reset();
        auto worker =
            std::make_unique<Worker>(find_host_program(), find_python_library(), model_.text, model_.time_limit);
        worker->ask(MessageKind::start, nlohmann::json{{"environment", environment_.string()}}.dump());
        description_ = parse_json(worker->ask(MessageKind::load, model_.request().dump()),
                                  concat("model '", model_.text, "': its description from Python"));
        if (choice_) worker->ask(MessageKind::prepare, choice_->dump());
        worker_ = std::move(worker);
    }

    ModelName model_;
    std::filesystem::path environment_;
    std::unique_ptr<Worker> worker_;
    JsonValue description_;
    std::optional<nlohmann::json> choice_;
};

}  // namespace

std::unique_ptr<Teacher> open_in_worker(const ModelName& model, const std::filesystem::path& environment) {
    return std::make_unique<WorkerTeacher>(model, environment);
}

}  // namespace mlff::python
