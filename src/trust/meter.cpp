// SPDX-License-Identifier: MIT
#include "trust/meter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "core/bytes_text.h"
#include "core/error.h"
#include "core/sha256.h"
#include "formats/json_text.h"
#include "formats/tensor_reader.h"
#include "trust/formulas.h"

namespace mlff {
namespace {

constexpr const char* kFormat = "mlff-trust";
constexpr const char* kLayout = "1";
constexpr int kMostDescriptors = 1 << 14;

// The numbers of a meter that stand in its configuration, with what they may be.
struct Number {
    const char* key;
    double TrustMeter::*value;
    double low, high;
};
constexpr Number kNumbers[] = {
    {"radius", &TrustMeter::radius, 0.1, 100},
    {"rest_variance", &TrustMeter::rest_variance, 1e-30, 1e30},
    {"rest_weight", &TrustMeter::rest_weight, -1e3, 1e3},
    {"lowest_score", &TrustMeter::lowest_score, -50, 50},
    {"highest_score", &TrustMeter::highest_score, -50, 50},
    {"own_weight", &TrustMeter::own_weight, -1e3, 1e3},
    {"neighbor_weight", &TrustMeter::neighbor_weight, -1e3, 1e3},
    {"count_weight", &TrustMeter::count_weight, -1e3, 1e3},
    {"outside_error", &TrustMeter::outside_error, 0, 1e6},
    {"alarm_error", &TrustMeter::alarm_error, 0, 1e6},
};

double checked_number(const JsonValue& config, const char* key, double low, double high, const std::string& name) {
    if (!config.contains(key) || !config[key].is_number())
        fail(Status::format, name, ": config has no number '", key, "'");
    const double value = config[key].number();
    if (!(value >= low && value <= high))
        fail(Status::format, name, ": config '", key, "' is ", value, ", expected ", low, " to ", high);
    return value;
}
int checked_count(const JsonValue& config, const char* key, int high, const std::string& name) {
    const double value = checked_number(config, key, 1, high, name);
    if (value != std::floor(value)) fail(Status::format, name, ": config '", key, "' is no whole number");
    return static_cast<int>(value);
}

std::vector<float> floats(const std::vector<double>& numbers) { return {numbers.begin(), numbers.end()}; }

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& numbers) {
    return std::as_bytes(std::span(numbers));
}

}  // namespace

TrustMeter read_trust_meter(const Safetensors& file, const std::string& name) {
    if (file.text("format") != kFormat)
        fail(Status::format, name, ": metadata 'format' is '", file.text("format"), "', expected '", kFormat, "'");
    if (file.text("trust_layout") != kLayout)
        fail(Status::unsupported, name, ": layout '", file.text("trust_layout"), "' of trust meters, expected '",
             kLayout, "'");
    const JsonValue config = parse_json(file.text("config"), name + " (config)");
    if (!config.is_object()) fail(Status::format, name, ": config is not a JSON object");
    TrustMeter meter;
    meter.descriptor_count = checked_count(config, "descriptors", kMostDescriptors, name);
    meter.component_count = checked_count(config, "components", trust::kMostComponents, name);
    for (const Number& number : kNumbers)
        meter.*number.value = checked_number(config, number.key, number.low, number.high, name);
    if (meter.lowest_score > meter.highest_score)
        fail(Status::format, name, ": config 'lowest_score' is above 'highest_score'");
    meter.model_fingerprint = file.text("model");
    if (file.metadata.contains("head")) meter.head = file.text("head");
    meter.card = JsonValue::Object();
    if (file.metadata.contains("card")) meter.card = parse_json(file.text("card"), name + " (card)");

    TensorReader reader(file, name);
    meter.elements = reader.atomic_numbers("atomic_numbers");
    const auto elements = static_cast<int64_t>(meter.elements.size());
    const int64_t width = meter.descriptor_count, components = meter.component_count;
    meter.centers = floats(reader.matrix("centers", {elements, width}));
    meter.directions = floats(reader.matrix("directions", {width, components}));
    meter.variances = reader.doubles("variances", {components});
    meter.limits = reader.doubles("limits", {elements});
    for (const double limit : meter.limits)
        if (!(limit > 0)) reader.broken("limits", "holds ", limit, ", expected more than 0");
    meter.offsets = reader.doubles("offsets", {elements});
    meter.linear = reader.doubles("linear", {components});
    meter.quadratic = reader.doubles("quadratic", {components * (components + 1) / 2});
    meter.final_offsets = reader.doubles("final_offsets", {elements});
    reader.expect_all_used();
    return meter;
}

void write_trust_meter(const std::string& path, const TrustMeter& meter) {
    JsonValue::Object config = {{"descriptors", meter.descriptor_count}, {"components", meter.component_count}};
    for (const Number& number : kNumbers) config[number.key] = meter.*number.value;
    Safetensors file;
    file.metadata = {{"format", kFormat},
                     {"trust_layout", kLayout},
                     {"config", JsonValue(config).dump()},
                     {"model", meter.model_fingerprint},
                     {"card", meter.card.dump()}};
    if (!meter.head.empty()) file.metadata["head"] = meter.head;
    const auto elements = static_cast<int64_t>(meter.elements.size());
    const int64_t width = meter.descriptor_count, components = meter.component_count;
    const auto add = [&](const char* name, DType dtype, std::vector<int64_t> shape, Bytes bytes) {
        std::vector<int64_t> strides = row_major_strides(shape);
        file.tensors.emplace_back(name, make_tensor(dtype, std::move(shape), std::move(strides), 0, bytes, name));
    };
    const std::vector<int64_t> numbers(meter.elements.begin(), meter.elements.end());
    add("atomic_numbers", DType::int64, {elements}, bytes_of(numbers));
    add("centers", DType::float32, {elements, width}, bytes_of(meter.centers));
    add("directions", DType::float32, {width, components}, bytes_of(meter.directions));
    add("variances", DType::float64, {components}, bytes_of(meter.variances));
    add("limits", DType::float64, {elements}, bytes_of(meter.limits));
    add("offsets", DType::float64, {elements}, bytes_of(meter.offsets));
    add("linear", DType::float64, {components}, bytes_of(meter.linear));
    add("quadratic", DType::float64, {components * (components + 1) / 2}, bytes_of(meter.quadratic));
    add("final_offsets", DType::float64, {elements}, bytes_of(meter.final_offsets));
    write_safetensors(path, file);
}

std::string fingerprint_of_model(Bytes file) {
    constexpr size_t kEnd = 256 << 10;
    const uint64_t size = file.size();
    std::vector<std::byte> read(sizeof(size));
    std::memcpy(read.data(), &size, sizeof(size));
    const Bytes begin = file.first(std::min(kEnd, file.size())), end = file.last(std::min(kEnd, file.size()));
    read.insert(read.end(), begin.begin(), begin.end());
    read.insert(read.end(), end.begin(), end.end());
    return sha256_hex(read);
}

}  // namespace mlff
