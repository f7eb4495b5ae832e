// SPDX-License-Identifier: MIT
// Runs a Python model inside the host program's process.
#include <dlfcn.h>

#include <string>

#include "core/error.h"
#include "core/log.h"
#include "formats/json_text.h"
#include "python_models/arrays.h"
#include "python_models/environment.h"
#include "python_models/load_library.h"
#include "python_models/teacher.h"

namespace mlff::python {
namespace {

void log_from_python(void*, int level, const char* line) { log(static_cast<LogLevel>(level), line); }

// A reply or an error from the interface.
class Answer {
public:
    TextSink sink() {
        return {[](void* to, const char* text, size_t size) { static_cast<std::string*>(to)->append(text, size); },
                &text_};
    }
    // Throws if the call failed.
    const std::string& of(int status, const std::string& model) const {
        if (status != 0) fail(static_cast<Status>(status), "model '", model, "': ", text_);
        return text_;
    }

private:
    std::string text_;
};

// If the host program is itself a Python interpreter, it already has these functions. Loading another version next to
// them would mix the two.
void check_interpreter_of_host(const std::string& version, const std::string& model) {
    using IsInitialized = int (*)();
    using GetVersion = const char* (*)();
    const auto is_initialized = reinterpret_cast<IsInitialized>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
    const auto get_version = reinterpret_cast<GetVersion>(dlsym(RTLD_DEFAULT, "Py_GetVersion"));
    if (!is_initialized || !get_version || !is_initialized()) return;
    const std::string running = get_version();
    if (!version.empty() && !running.starts_with(version + "."))
        fail(Status::unsupported, "model '", model, "': this program runs Python ",
             running.substr(0, running.find(' ')), " already, but this mlff was built for Python ", version,
             "; run the model in a separate process (host=process)");
}

class InProcessTeacher : public Teacher {
public:
    InProcessTeacher(const ModelName& model, const std::filesystem::path& environment) : name_(model.text) {
        check_interpreter_of_host(MLFF_PYTHON_VERSION, name_);
        interface_ = load_interface(find_python_library());
        Answer started;
        started.of(interface_->start(nlohmann::json{{"environment", environment.string()}}.dump().c_str(),
                                     &log_from_python, nullptr, started.sink()),
                   name_);
        Answer loaded;
        description_ =
            parse_json(loaded.of(interface_->load(model.request().dump().c_str(), &handle_, loaded.sink()), name_),
                       concat("model '", name_, "': its description from Python"));
    }
    ~InProcessTeacher() override {
        if (handle_) interface_->unload(handle_);
    }
    InProcessTeacher(const InProcessTeacher&) = delete;
    InProcessTeacher& operator=(const InProcessTeacher&) = delete;

    const JsonValue& description() const override { return description_; }

    void prepare(const nlohmann::json& choice) override {
        Answer answer;
        answer.of(interface_->prepare(handle_, choice.dump().c_str(), answer.sink()), name_);
    }

    void evaluate(const SystemView& system, const Outputs& outputs) override {
        const SystemArrays arrays = system_arrays(system);
        const ResultArrays results = {outputs.energy, outputs.forces, outputs.virial, outputs.atom_energies};
        Answer answer;
        answer.of(interface_->evaluate(handle_, &arrays, &results, answer.sink()), name_);
    }

private:
    std::string name_;
    const Interface* interface_ = nullptr;
    void* handle_ = nullptr;
    JsonValue description_;
};

}  // namespace

std::unique_ptr<Teacher> open_in_process(const ModelName& model, const std::filesystem::path& environment) {
    return std::make_unique<InProcessTeacher>(model, environment);
}

}  // namespace mlff::python
