// SPDX-License-Identifier: MIT
#include "tools/plan/calibration.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/bytes_text.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "core/output_file.h"
#include "core/sha256.h"
#include "core/user_folder.h"
#include "formats/json_text.h"

namespace mlff::plan {
namespace {

namespace fs = std::filesystem;
using PlanJson = nlohmann::json;

constexpr const char* kFormat = "mlff calibration";
constexpr int kVersion = 1;
constexpr size_t kLargestFile = 1 << 20, kMostSamples = 1000;
constexpr double kLargestNumber = 1e18;  // bytes or atoms; far above any measurement

PlanJson samples_json(const std::vector<Sample>& samples, const char* unit) {
    PlanJson json = PlanJson::array();
    for (const Sample& sample : samples)
        json.push_back({{"atoms", sample.load.atoms}, {"edges", sample.load.edges}, {unit, sample.value}});
    return json;
}
PlanJson time_json(const FlooredCost& cost, double error, const std::vector<Sample>& samples) {
    return {{"floor_s", cost.floor},
            {"fixed_s", cost.linear.fixed},
            {"s_per_atom", cost.linear.per_atom},
            {"s_per_edge", cost.linear.per_edge},
            {"largest_error", error},
            {"samples", samples_json(samples, "s")}};
}

// One object of the file, and its position for messages.
class Fields {
public:
    Fields(const PlanJson& json, std::string where) : json_(json), where_(std::move(where)) {
        if (!json.is_object()) fail(Status::format, where_, " is not an object");
    }
    std::string text(const char* key) const {
        if (!has(key) || !json_[key].is_string()) fail(Status::format, where_, ": '", key, "' is missing or not text");
        return json_[key].get<std::string>();
    }
    bool flag(const char* key) const {
        if (!has(key) || !json_[key].is_boolean())
            fail(Status::format, where_, ": '", key, "' is neither true nor false");
        return json_[key].get<bool>();
    }
    double number(const char* key) const {
        const double value = has(key) && json_[key].is_number() ? json_[key].get<double>() : NAN;
        if (!(value >= 0 && value <= kLargestNumber))
            fail(Status::format, where_, ": '", key, "' is not a number from 0 to ", kLargestNumber);
        return value;
    }
    int64_t count(const char* key) const {
        const double value = number(key);
        if (value != std::floor(value)) fail(Status::format, where_, ": '", key, "' is not a whole number");
        return static_cast<int64_t>(value);
    }
    Fields object(const char* key) const {
        if (!has(key)) fail(Status::format, where_, ": '", key, "' is missing");
        return {json_[key], concat(where_, ": '", key, "'")};
    }
    std::vector<Sample> samples(const char* unit) const {
        if (!has("samples") || !json_["samples"].is_array() || json_["samples"].size() > kMostSamples)
            fail(Status::format, where_, ": 'samples' is not a list of at most ", kMostSamples);
        std::vector<Sample> samples;
        for (const PlanJson& entry : json_["samples"]) {
            const Fields fields(entry, where_ + ": a sample");
            samples.push_back({{fields.count("atoms"), fields.count("edges")}, fields.number(unit)});
        }
        return samples;
    }
    FlooredCost time() const {
        return {number("floor_s"), {number("fixed_s"), number("s_per_atom"), number("s_per_edge")}};
    }

private:
    bool has(const char* key) const { return json_.contains(key); }
    const PlanJson& json_;
    std::string where_;
};

std::string read_text(const std::string& path) {
    const auto file = MappedFile::open(path);
    if (file->bytes().size() > kLargestFile)
        fail(Status::format, path, ": larger than ", bytes_text(kLargestFile), ", too large for a calibration");
    return std::string(file->text());
}

bool is_of_this_version(const Calibration& calibration) { return calibration.mlff_version == MLFF_VERSION_STRING; }
std::string version_text(const Calibration& calibration) {
    return concat("was made by mlff ", calibration.mlff_version, ", this is ", MLFF_VERSION_STRING);
}

std::string folder_of_calibrations() {
    if (const std::string folder = environment_text("MLFF_CALIBRATIONS"); !folder.empty()) return folder;
    const std::string data = user_data_folder();
    return data.empty() ? "" : data + "/calibrations";
}

}  // namespace

std::string difference_text(const CalibrationKey& key, const CalibrationKey& other) {
    std::string text;
    const auto compare = [&](const char* what, const auto& mine, const auto& others) {
        if (mine != others) text += concat(text.empty() ? "" : "; ", what, " '", mine, "', not '", others, "'");
    };
    compare("processor", key.processor, other.processor);
    compare("architecture", key.architecture, other.architecture);
    compare("instructions", key.instructions, other.instructions);
    compare("cores", key.cores, other.cores);
    compare("GPU", key.gpu, other.gpu);
    compare("model", key.model, other.model);
    compare("device", key.device, other.device);
    compare("precision", key.precision, other.precision);
    compare("threads", key.threads, other.threads);
    compare("exact radial functions", key.exact_radial, other.exact_radial);
    return text;
}

void fit(Calibration& calibration) {
    calibration.memory = fit_floored_cost(calibration.memory_samples, kMemoryResolution);
    calibration.memory_error = largest_error(calibration.memory, calibration.memory_samples, kMemoryResolution);
    calibration.evaluation = fit_floored_cost(calibration.evaluation_samples);
    calibration.evaluation_error = largest_error(calibration.evaluation, calibration.evaluation_samples);
    calibration.step = fit_floored_cost(calibration.step_samples);
    calibration.step_error = largest_error(calibration.step, calibration.step_samples);
}

std::string calibration_text(const Calibration& calibration) {
    const CalibrationKey& key = calibration.key;
    const FlooredCost& memory = calibration.memory;
    const PlanJson json = {
        {"format", kFormat},
        {"version", kVersion},
        {"mlff", calibration.mlff_version},
        {"made", calibration.made},
        {"material", calibration.material},
        {"quick", calibration.is_quick},
        {"machine",
         {{"processor", key.processor},
          {"architecture", key.architecture},
          {"instructions", key.instructions},
          {"cores", key.cores},
          {"gpu", key.gpu}}},
        {"model", {{"name", calibration.model_name}, {"id", key.model}}},
        {"device", key.device},
        {"precision", key.precision},
        {"threads", key.threads},
        {"exact_radial", key.exact_radial},
        {"memory",
         {{"process_B", calibration.process_bytes},
          {"floor_B", memory.floor},
          {"fixed_B", memory.linear.fixed},
          {"B_per_atom", memory.linear.per_atom},
          {"B_per_edge", memory.linear.per_edge},
          {"largest_error", calibration.memory_error},
          {"samples", samples_json(calibration.memory_samples, "B")}}},
        {"evaluation", time_json(calibration.evaluation, calibration.evaluation_error, calibration.evaluation_samples)},
        {"step", time_json(calibration.step, calibration.step_error, calibration.step_samples)}};
    return json.dump(1, ' ', false, PlanJson::error_handler_t::replace) + "\n";
}

Calibration parse_calibration(std::string_view text, const std::string& where) {
    const PlanJson json = parse_untrusted_json(text, where);
    if (!json.is_object() || json.value("format", PlanJson()) != kFormat)
        fail(Status::format, where, ": is not a calibration of 'mlff bench --calibrate'");
    if (json.value("version", PlanJson()) != kVersion)
        fail(Status::format, where, ": version ", json.value("version", PlanJson()).dump(), " of the format, expected ",
             kVersion, "; calibrate again with 'mlff bench --calibrate'");
    const Fields top(json, where), machine = top.object("machine"), model = top.object("model"),
                                   memory = top.object("memory"), evaluation = top.object("evaluation"),
                                   step = top.object("step");
    Calibration found;
    found.mlff_version = top.text("mlff");
    found.made = top.text("made");
    found.material = top.text("material");
    found.is_quick = top.flag("quick");
    found.model_name = model.text("name");
    found.key = {machine.text("processor"),
                 machine.text("architecture"),
                 machine.text("instructions"),
                 machine.text("gpu"),
                 static_cast<int>(std::min<int64_t>(machine.count("cores"), 1 << 20)),
                 model.text("id"),
                 top.text("device"),
                 top.text("precision"),
                 static_cast<int>(std::min<int64_t>(top.count("threads"), 1 << 20)),
                 top.flag("exact_radial")};
    found.process_bytes = memory.number("process_B");
    found.memory = {memory.number("floor_B"),
                    {memory.number("fixed_B"), memory.number("B_per_atom"), memory.number("B_per_edge")}};
    found.memory_error = memory.number("largest_error");
    found.memory_samples = memory.samples("B");
    found.evaluation = evaluation.time();
    found.evaluation_error = evaluation.number("largest_error");
    found.evaluation_samples = evaluation.samples("s");
    found.step = step.time();
    found.step_error = step.number("largest_error");
    found.step_samples = step.samples("s");
    return found;
}

CalibrationStore::CalibrationStore() : CalibrationStore(folder_of_calibrations()) {}
CalibrationStore::CalibrationStore(std::string folder) : folder_(std::move(folder)) {}

// A readable file name; the digits distinguish machines and models. A newer calibration for the same key replaces it.
std::string CalibrationStore::path_of(const CalibrationKey& key) const {
    const PlanJson all = {key.processor, key.architecture, key.instructions, key.cores,   key.gpu,
                          key.model,     key.device,       key.precision,    key.threads, key.exact_radial};
    const std::string text = all.dump(-1, ' ', false, PlanJson::error_handler_t::replace);
    return concat(folder_, "/", key.device, "-", key.precision, "-", key.threads, "-",
                  sha256_hex(std::as_bytes(std::span(text))).substr(0, 16), ".json");
}

std::string CalibrationStore::put(const Calibration& calibration) const {
    if (folder_.empty()) fail(Status::file, "there is no folder for calibrations: set MLFF_CALIBRATIONS or HOME");
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) fail(Status::file, folder_, ": cannot create the folder for calibrations (", error.message(), ")");
    const std::string path = path_of(calibration.key), text = calibration_text(calibration);
    OutputFile file(path);
    file.write(text.data(), text.size());
    file.commit();
    return path;
}

std::optional<Calibration> CalibrationStore::find(const CalibrationKey& key, std::string* why) const {
    const std::string path = path_of(key);
    std::error_code error;
    if (folder_.empty() || !fs::exists(path, error)) {
        *why = "this machine has no calibration for this model, device, precision and number of threads";
        return {};
    }
    try {
        return read_calibration(path, key);
    } catch (const Error& problem) {
        *why = problem.what();
        return {};
    }
}

std::vector<Calibration> CalibrationStore::list() const {
    std::vector<Calibration> found;
    std::error_code error;
    if (folder_.empty()) return found;
    for (auto entry = fs::directory_iterator(folder_, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        if (entry->path().extension() != ".json") continue;
        try {
            Calibration calibration = parse_calibration(read_text(entry->path().string()), entry->path().string());
            if (is_of_this_version(calibration)) found.push_back(std::move(calibration));
        } catch (const Error&) {
            continue;  // find() reports the fault if this one is requested
        }
    }
    return found;
}

Calibration read_calibration(const std::string& path, const CalibrationKey& key) {
    Calibration found = parse_calibration(read_text(path), path);
    const std::string difference = difference_text(found.key, key);
    if (!difference.empty()) fail(Status::format, path, ": is a calibration of something else: ", difference);
    if (!is_of_this_version(found))
        fail(Status::format, path, ": ", version_text(found), "; calibrate again with 'mlff bench --calibrate'");
    return found;
}

}  // namespace mlff::plan
