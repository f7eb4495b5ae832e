// SPDX-License-Identifier: MIT
// Trust meters: files come out as they went in, broken ones get a sentence, and sessions give what the formulas say.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "capture_binding.h"
#include "engine/describe.h"
#include "engine/load_model.h"
#include "engine/session.h"
#include "model_files.h"
#include "test_painn_support.h"
#include "trust_meters.h"

using namespace mlff;
using namespace painn_test;
using test::TemporaryDirectory;

namespace {

FileParts parts_of(const TrustMeter& meter) {
    const TemporaryDirectory folder;
    const std::string path = folder.file("meter.trust");
    write_trust_meter(path, meter);
    const auto mapped = MappedFile::open(path);
    const Safetensors file = read_safetensors(mapped->bytes(), path);
    FileParts parts;
    parts.metadata = file.metadata;
    for (const auto& [name, tensor] : file.tensors) {
        std::string bytes(tensor.storage.size(), '\0');
        tensor.copy_bytes_to(reinterpret_cast<std::byte*>(bytes.data()));
        const char* type = tensor.dtype == DType::int64 ? "I64" : tensor.dtype == DType::float32 ? "F32" : "F64";
        parts.tensors[name] = {type, tensor.shape, bytes};
    }
    return parts;
}

TrustMeter read_bytes_of(const std::string& bytes) {
    return read_trust_meter(read_safetensors(test::as_bytes(bytes), "meter"), "meter");
}

// The error of `call`; "no error" if it works.
template <class Call>
std::string trust_error(Status status, const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.status() == status);
        return error.what();
    }
    return "no error";
}
std::string error_of_file(const FileParts& parts, Status status = Status::format) {
    return trust_error(status, [&] { read_bytes_of(parts.bytes()); });
}
#define CHECK_SAYS(text, words)                                                        \
    do {                                                                               \
        const std::string said = text;                                                 \
        CHECK_MESSAGE(said.find(words) != std::string::npos, said, " has no ", words); \
    } while (0)

void check_same(const TrustMeter& found, const TrustMeter& expected) {
    CHECK(found.descriptor_count == expected.descriptor_count);
    CHECK(found.component_count == expected.component_count);
    CHECK(found.radius == expected.radius);
    CHECK(found.elements == expected.elements);
    CHECK(found.centers == expected.centers);
    CHECK(found.directions == expected.directions);
    CHECK(found.variances == expected.variances);
    CHECK(found.rest_variance == expected.rest_variance);
    CHECK(found.limits == expected.limits);
    CHECK(found.offsets == expected.offsets);
    CHECK(found.linear == expected.linear);
    CHECK(found.quadratic == expected.quadratic);
    CHECK(found.rest_weight == expected.rest_weight);
    CHECK(found.lowest_score == expected.lowest_score);
    CHECK(found.highest_score == expected.highest_score);
    CHECK(found.own_weight == expected.own_weight);
    CHECK(found.neighbor_weight == expected.neighbor_weight);
    CHECK(found.count_weight == expected.count_weight);
    CHECK(found.final_offsets == expected.final_offsets);
    CHECK(found.outside_error == expected.outside_error);
    CHECK(found.alarm_error == expected.alarm_error);
    CHECK(found.model_fingerprint == expected.model_fingerprint);
    CHECK(found.head == expected.head);
    CHECK(found.card == expected.card);
}

// ---- What a session says ----

struct Measured {
    std::vector<double> expected_errors, novelties, descriptors;

    Results results(bool has_descriptors = true) {
        Results results;
        results.outputs.expected_errors = expected_errors.data();
        results.outputs.novelties = novelties.data();
        if (has_descriptors) results.outputs.descriptors = descriptors.data();
        return results;
    }
    Measured(size_t atoms, int descriptor_count)
        : expected_errors(atoms, NAN),
          novelties(atoms, NAN),
          descriptors(atoms * static_cast<size_t>(descriptor_count), NAN) {}
};

SessionOptions trust_options(const std::string& device, Precision precision, int threads) {
    SessionOptions options;
    options.device = device;
    options.precision = precision;
    options.thread_count = threads;
    return options;
}

Measured measured_by(Session& session, const System& system, bool has_descriptors = true) {
    Measured found(system.numbers.size(), session.model().summary().descriptor_count);
    const SystemView view = system.view();
    const Results results = found.results(has_descriptors);
    session.evaluate({&view, 1}, {&results, 1});
    return found;
}

// The formulas in plain double precision, with distances from all images.
Measured plain_measure(const TrustMeter& meter, const System& system, std::vector<double> descriptors, double cutoff) {
    const size_t atoms = system.numbers.size(), width = static_cast<size_t>(meter.descriptor_count),
                 components = static_cast<size_t>(meter.component_count);
    Measured found(atoms, meter.descriptor_count);
    found.descriptors = std::move(descriptors);
    std::vector<double> scores(atoms, meter.highest_score);
    std::vector<int> elements(atoms, -1);
    for (size_t a = 0; a < atoms; ++a) {
        found.novelties[a] = 1000;
        const auto at = std::find(meter.elements.begin(), meter.elements.end(), system.numbers[a]);
        if (at == meter.elements.end()) continue;
        const auto e = static_cast<size_t>(at - meter.elements.begin());
        elements[a] = static_cast<int>(e);
        std::vector<double> y(components, 0.0);
        double rest = 0, distance = 0;
        for (size_t d = 0; d < width; ++d) {
            const double x = found.descriptors[a * width + d] - meter.centers[e * width + d];
            rest += x * x;
            for (size_t k = 0; k < components; ++k) y[k] += x * meter.directions[d * components + k];
        }
        for (size_t k = 0; k < components; ++k) {
            rest -= meter.variances[k] * y[k] * y[k];
            distance += y[k] * y[k];
        }
        rest = std::max(rest, 0.0) / meter.rest_variance;
        found.novelties[a] = std::sqrt((distance + rest) / meter.limits[e]);
        double score = meter.offsets[e] + meter.rest_weight * std::log(rest + 1e-12);
        size_t pair = 0;
        for (size_t i = 0; i < components; ++i) {
            const double one = std::clamp(y[i], -5.0, 5.0);
            score += meter.linear[i] * one;
            for (size_t j = i; j < components; ++j)
                score += meter.quadratic[pair++] * one * std::clamp(y[j], -5.0, 5.0);
        }
        scores[a] = std::clamp(score, meter.lowest_score, meter.highest_score);
    }
    const int reach = system.periodic[0] ? 2 : 0;
    for (size_t a = 0; a < atoms; ++a) {
        double weight = 0, weighted = 0;
        for (size_t b = 0; b < atoms; ++b)
            for (int i = -reach; i <= reach; ++i)
                for (int j = -reach; j <= reach; ++j)
                    for (int k = -reach; k <= reach; ++k) {
                        double square = 0;
                        for (size_t c = 0; c < 3; ++c) {
                            const double x = system.positions[3 * b + c] - system.positions[3 * a + c] +
                                             i * system.cell[0][c] + j * system.cell[1][c] + k * system.cell[2][c];
                            square += x * x;
                        }
                        if (square == 0 || square >= cutoff * cutoff || square >= meter.radius * meter.radius) continue;
                        const double w = std::pow(1 - square / (meter.radius * meter.radius), 2);
                        weight += w;
                        weighted += w * std::exp(scores[b]);
                    }
        const double around = weight > 1e-9 ? std::log(weighted / weight) : scores[a];
        const double offset = elements[a] >= 0 ? meter.final_offsets[static_cast<size_t>(elements[a])] : 0;
        found.expected_errors[a] = std::exp(offset + meter.own_weight * scores[a] + meter.neighbor_weight * around +
                                            meter.count_weight * weight);
        if (found.novelties[a] > 1) found.expected_errors[a] = std::max(found.expected_errors[a], meter.outside_error);
    }
    return found;
}

void check_measured(const Measured& found, const Measured& expected, double tolerance) {
    REQUIRE(found.novelties.size() == expected.novelties.size());
    for (size_t a = 0; a < expected.novelties.size(); ++a) {
        CAPTURE(a);
        CHECK(test::is_close(found.novelties[a], expected.novelties[a], tolerance * expected.novelties[a]));
        CHECK(test::is_close(found.expected_errors[a], expected.expected_errors[a],
                             tolerance * expected.expected_errors[a]));
    }
}

std::string write_painn(const TemporaryDirectory& folder, const std::string& name, const Shape& shape = {}) {
    const std::string path = folder.file(name);
    test::write_bytes(path, file_of(random_weights(shape)).bytes());
    return path;
}

System molecule_of(std::vector<int32_t> numbers) {
    System system;
    for (size_t i = 0; i < numbers.size(); ++i) {
        const auto x = static_cast<double>(i);
        const std::vector<double> place = {1.3 * x, 0.4 * std::sin(2.3 * x), 0.7 * std::cos(1.7 * x)};
        system.positions.insert(system.positions.end(), place.begin(), place.end());
    }
    system.numbers = std::move(numbers);
    return system;
}

struct OneElement {
    std::vector<int> atomic_numbers;
};

}  // namespace

TEST_CASE("a meter comes out of its file as it went in") {
    const TemporaryDirectory folder;
    const std::string path = folder.file("meter.trust");
    for (const int components : {1, 7, 32}) {
        TrustMeter meter = test::random_trust_meter(40, {1, 6, 92}, 1.5, 3, components);
        meter.model_fingerprint = std::string(64, 'a');
        meter.rest_variance = 1 / 3.0;
        if (components == 7) meter.head = "PBE";
        write_trust_meter(path, meter);
        check_same(read_trust_meter(read_safetensors(MappedFile::open(path)->bytes(), path), path), meter);
        check_same(read_bytes_of(parts_of(meter).bytes()), meter);
        CHECK(meter.element_of(92) == 2);
        CHECK(meter.element_of(7) == -1);
        CHECK(meter.element_of(93) == -1);
    }
    FileParts cardless = parts_of(test::random_trust_meter(8, {1}));
    cardless.metadata.erase("card");
    CHECK(read_bytes_of(cardless.bytes()).card == JsonValue::Object());
}

TEST_CASE("metadata of meters that make no sense") {
    const FileParts good = parts_of(test::random_trust_meter(8, {1, 8}));
    const auto with = [&](const char* key, const std::string& text) {
        FileParts file = good;
        file.metadata[key] = text;
        return file;
    };
    CHECK_SAYS(error_of_file(with("format", "mlff-painn")), "meter: metadata 'format' is 'mlff-painn', expected");
    CHECK_SAYS(error_of_file(with("trust_layout", "2"), Status::unsupported),
               "layout '2' of trust meters, expected '1'");
    CHECK_SAYS(error_of_file(with("config", "[]")), "meter: config is not a JSON object");
    CHECK_SAYS(error_of_file(with("config", "{")), "meter (config)");
    CHECK_SAYS(error_of_file(with("card", "{")), "meter (card)");
    const nlohmann::json config = nlohmann::json::parse(good.metadata.at("config"));
    struct Case {
        const char* key;
        nlohmann::json value;
        const char* words;
    };
    const Case cases[] = {{"components", 33, "'components' is 33, expected 1 to 32"},
                          {"components", 0, "'components' is 0"},
                          {"components", 2.5, "'components' is no whole number"},
                          {"components", "5", "no number 'components'"},
                          {"descriptors", 0, "'descriptors' is 0"},
                          {"descriptors", 1e9, "'descriptors' is 1e+09"},
                          {"descriptors", -8, "'descriptors' is -8"},
                          {"radius", 0, "'radius' is 0, expected 0.1 to 100"},
                          {"radius", nullptr, "no number 'radius'"},
                          {"rest_variance", 0, "'rest_variance' is 0"},
                          {"rest_weight", 1e4, "'rest_weight' is 10000"},
                          {"highest_score", 51, "'highest_score' is 51"},
                          {"highest_score", -7, "'lowest_score' is above 'highest_score'"},
                          {"own_weight", 1e300, "'own_weight' is 1e+300"},
                          {"outside_error", -1, "'outside_error' is -1"},
                          {"alarm_error", -0.1, "'alarm_error' is -0.1"}};
    for (const auto& [key, value, words] : cases) {
        CAPTURE_BINDING(key);
        nlohmann::json changed = config;
        changed[key] = value;
        CHECK_SAYS(error_of_file(with("config", changed.dump())), words);
    }
    for (const auto& [key, value] : config.items()) {
        nlohmann::json changed = config;
        changed.erase(key);
        CHECK_SAYS(error_of_file(with("config", changed.dump())), "no number '" + key + "'");
    }
}

TEST_CASE("every tensor of a meter that is missing, misshapen, of the wrong type or not finite is named") {
    const FileParts good = parts_of(test::random_trust_meter(8, {1, 8}));
    CHECK(good.tensors.size() == 9);
    for (const auto& [name, entry] : good.tensors) {
        CAPTURE_BINDING(name);
        const std::string named = "meter: tensor '" + name + "' ";
        FileParts file = good;
        file.tensors.erase(name);
        CHECK_SAYS(error_of_file(file), named + "is missing");
        file = good;
        file.tensors[name].shape.push_back(1);
        CHECK_SAYS(error_of_file(file), named + "has shape");
        file = good;
        file.tensors[name].dtype = entry.dtype == "F32" ? "I32" : entry.dtype == "F64" ? "I64" : "F64";
        CHECK_SAYS(error_of_file(file), named + "has type");
        if (entry.dtype == "I64") continue;
        for (const double bad : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, 1e31}) {
            file = good;
            std::string& bytes = file.tensors[name].bytes;
            const auto single = static_cast<float>(bad);
            if (entry.dtype == "F32")
                bytes.replace(bytes.size() - sizeof single, sizeof single, raw_bytes(std::vector{single}));
            else
                bytes.replace(bytes.size() - sizeof bad, sizeof bad, raw_bytes(std::vector{bad}));
            CHECK_SAYS(error_of_file(file), named + "holds");
        }
    }
    for (const double limit : {0.0, -1.0}) {
        FileParts file = good;
        file.tensors["limits"].bytes = raw_bytes(std::vector{1.0, limit});
        CHECK_SAYS(error_of_file(file), "meter: tensor 'limits' holds");
    }
    FileParts file = good;
    file.tensors["atomic_numbers"].bytes = raw_bytes(std::vector<int64_t>{8, 1});
    CHECK_SAYS(error_of_file(file), "is not ascending");
    file.tensors["atomic_numbers"].bytes = raw_bytes(std::vector<int64_t>{1, 300});
    CHECK_SAYS(error_of_file(file), "holds 300");
    file = good;
    file.tensors["extra"] = good.tensors.at("limits");
    CHECK_SAYS(error_of_file(file), "meter: tensor 'extra' is unknown");
    const std::string bytes = good.bytes();
    for (size_t length = 0; length < bytes.size(); length += 1 + length / 50)
        CHECK(trust_error(Status::format, [&] { read_bytes_of(bytes.substr(0, length)); }) != "no error");
}

TEST_CASE("a meter belongs to one model file") {
    const TemporaryDirectory folder;
    const std::string path = write_painn(folder, "one.safetensors");
    CHECK(!load_model(path)->trust_meter());
    const TrustMeter written = test::add_trust_file(path, test::random_trust_meter(32, {1, 6, 8}));
    const auto model = load_model(path);
    REQUIRE(model->trust_meter());
    check_same(*model->trust_meter(), written);

    // Of another file, of another width, of no model, and broken.
    Shape shape;
    shape.seed = 2;
    const std::string other = write_painn(folder, "other.safetensors", shape);
    std::filesystem::copy_file(trust_file_of(path), trust_file_of(other));
    const auto error = [&] { return trust_error(Status::format, [&] { load_model(other); }); };
    CHECK_SAYS(error(), trust_file_of(other) + ": this trust meter was fitted to another model than " + other);
    CHECK_SAYS(error(), "fit one with `mlff trust fit`, or remove the file");
    test::add_trust_file(other, test::random_trust_meter(31, {1, 6, 8}));
    CHECK_SAYS(error(), "was fitted to another model");
    test::write_bytes(trust_file_of(other), "not a meter");
    CHECK_SAYS(error(), trust_file_of(other));
    std::filesystem::remove(trust_file_of(other));
    CHECK(!load_model(other)->trust_meter());
}

TEST_CASE("what is known of a model has its meter") {
    const TemporaryDirectory folder;
    const std::string path = write_painn(folder, "one.safetensors");
    CHECK(describe(*load_model(path))["trust_meter"].is_null());
    test::add_trust_file(path, test::random_trust_meter(32, {1, 8}));
    const auto model = load_model(path);
    const JsonValue expected =
        JsonValue::Object{{"alarm_error", 0.3}, {"elements", std::vector<int>{1, 8}},
                          {"descriptors", 32},  {"components", 5},
                          {"radius", 4},        {"card", JsonValue::Object{{"frames", 3}, {"spearman", 0.1}}}};
    CHECK(describe(*model)["trust_meter"] == expected);
    CHECK(describe(*model)["class"] == model->description()["class"]);
}

TEST_CASE("sessions give what the formulas say, with any number of threads") {
    const TemporaryDirectory folder;
    struct Case {
        std::string path;
        double cutoff, scale;
    };
    std::vector<Case> cases = {{write_painn(folder, "painn.safetensors"), 4.5, 1}};
    if (const test::Golden* golden = test::find_golden("p09_l2_ell3")) {
        cases.push_back({folder.file("mace.model"), 0, 1});
        std::filesystem::copy_file(golden->model_path, cases.back().path);
    }
    for (Case& each : cases) {
        CAPTURE(each.path);
        const ModelSummary summary = load_model(each.path)->summary();
        each.cutoff = summary.cutoff;
        std::vector<int> seen = summary.elements;
        if (seen.size() > 2) seen.pop_back();
        std::vector<System> systems = {random_crystal(OneElement{summary.elements}, 4, 30, 8.5),
                                       molecule_of({summary.elements[0], seen.back(), summary.elements.back()}),
                                       molecule_of({summary.elements[0]}),
                                       random_crystal(OneElement{summary.elements}, 5, 7, 6)};
        systems[3].periodic = {false, false, false};
        {  // how large its descriptors are
            Session session(load_model(each.path), trust_options("cpu", Precision::fp64, 1));
            System& first = systems[0];
            std::vector<double> descriptors(first.numbers.size() * static_cast<size_t>(summary.descriptor_count));
            Results results;
            results.outputs.descriptors = descriptors.data();
            const SystemView view = first.view();
            session.evaluate({&view, 1}, {&results, 1});
            double sum = 0;
            for (const double number : descriptors) sum += number * number;
            each.scale = std::sqrt(sum / static_cast<double>(descriptors.size()));
        }
        const TrustMeter meter =
            test::add_trust_file(each.path, test::random_trust_meter(summary.descriptor_count, seen, each.scale));
        const auto model = load_model(each.path);
        for (const auto& [device, precision] :
             {std::pair("reference", Precision::fp64), std::pair("cpu", Precision::fp64),
              std::pair("cpu", Precision::mixed)}) {
            CAPTURE_BINDING(device);
            std::vector<Measured> alone;
            int novel = 0, known = 0, unseen = 0;
            for (const System& system : systems) {
                Session session(model, trust_options(device, precision, 1));
                alone.push_back(measured_by(session, system));
                const Measured& found = alone.back();
                check_measured(found, plain_measure(meter, system, found.descriptors, each.cutoff), 2e-5);
                for (const double novelty : found.novelties) ++(novelty == 1000 ? unseen : novelty > 1 ? novel : known);
                for (const int threads : {2, 3}) {
                    Session more(model, trust_options(device, precision, threads));
                    const Measured again = measured_by(more, system);
                    CHECK(again.expected_errors == found.expected_errors);
                    CHECK(again.novelties == found.novelties);
                    const Measured without = measured_by(more, system, false);  // descriptors are not asked for
                    CHECK(without.expected_errors == found.expected_errors);
                }
            }
            CHECK(novel > 0);
            CHECK(known > 0);
            CHECK(unseen > 0);

            // In a batch, where only some ask for it.
            Session session(model, trust_options(device, precision, 2));
            std::vector<Measured> found;
            std::vector<SystemView> views;
            std::vector<Results> results;
            for (const System& system : systems) {
                views.push_back(system.view());
                found.emplace_back(system.numbers.size(), summary.descriptor_count);
            }
            for (size_t s = 0; s < systems.size(); ++s) {
                results.push_back(found[s].results(false));
                if (s == 1) results[s].outputs.expected_errors = nullptr;
                if (s == 2) results[s].outputs.novelties = nullptr;
                if (s == 3) results[s].outputs.expected_errors = results[s].outputs.novelties = nullptr;
            }
            session.evaluate(views, results);
            for (const size_t s : {0, 2}) CHECK(found[s].expected_errors == alone[s].expected_errors);
            for (const size_t s : {0, 1}) CHECK(found[s].novelties == alone[s].novelties);
            CHECK(std::isnan(found[1].expected_errors[0]));
            CHECK(std::isnan(found[2].novelties[0]));
            CHECK(std::isnan(found[3].novelties[0]));
            CHECK(measured_by(session, System()).novelties.empty());
        }
    }
}

TEST_CASE("elements that training has not seen") {
    const TemporaryDirectory folder;
    const std::string path = write_painn(folder, "one.safetensors");
    const TrustMeter meter = test::add_trust_file(path, test::random_trust_meter(32, {1}));
    Session session(load_model(path), trust_options("cpu", Precision::fp64, 1));
    const Measured found = measured_by(session, molecule_of({6, 8}));
    CHECK(found.novelties == std::vector<double>{1000, 1000});
    // Both have the highest score, and one neighbour at this distance.
    const System system = molecule_of({6, 8});
    const double x = system.positions[3] - system.positions[0], y = system.positions[4] - system.positions[1],
                 z = system.positions[5] - system.positions[2];
    const double weight = std::pow(1 - (x * x + y * y + z * z) / 16, 2);
    const double error = std::exp(meter.own_weight + meter.neighbor_weight + meter.count_weight * weight);
    for (const double each : found.expected_errors) CHECK(test::is_close(each, error, 1e-12));
}

TEST_CASE("a sum has the meter of its first part, a committee has none") {
    const TemporaryDirectory folder;
    Shape shape;
    shape.has_repulsion = false;
    const std::string path = write_painn(folder, "one.safetensors", shape);
    test::add_trust_file(path, test::random_trust_meter(32, {1, 6}));
    const System system = random_crystal(OneElement{{1, 6, 8}}, 6, 20, 7.5);
    for (const Precision precision : {Precision::fp64, Precision::mixed}) {
        Session alone(load_model(path), trust_options("cpu", precision, 2)),
            sum(load_model(path + "+zbl"), trust_options("cpu", precision, 2));
        const Measured expected = measured_by(alone, system), found = measured_by(sum, system);
        CHECK(found.expected_errors == expected.expected_errors);
        CHECK(found.novelties == expected.novelties);
    }
    CHECK(!load_model("zbl+" + path)->trust_meter());
    const auto committee = load_model(path + "," + path);
    CHECK(!committee->trust_meter());
    Session session(committee, trust_options("cpu", Precision::fp64, 1));
    CHECK_SAYS(trust_error(Status::unsupported, [&] { measured_by(session, system); }),
               "this model has no trust meter");
}

TEST_CASE("a meter knows the errors of one head") {
    const TemporaryDirectory folder;
    const std::string path = folder.file("three_heads.pth");
    std::filesystem::copy_file(MLFF_NEQUIP_GOLDEN_DIR "/p10_three_modals_all_flags.pth", path);
    const ModelSummary summary = load_model(path)->summary();
    REQUIRE(summary.heads.size() == 3);
    TrustMeter meter = test::random_trust_meter(summary.descriptor_count, summary.elements);
    meter.head = summary.heads[1];
    test::add_trust_file(path, meter);
    const auto model = load_model(path);
    const System system = molecule_of({summary.elements.front(), summary.elements.back(), summary.elements.front()});
    for (const std::string& head : summary.heads) {
        SessionOptions options = trust_options("cpu", Precision::fp64, 1);
        options.head = head;
        Session session(model, options);
        CHECK((session.trust_meter() != nullptr) == (head == meter.head));
        if (head == meter.head)
            CHECK(measured_by(session, system).novelties[0] > 0);
        else
            CHECK_SAYS(trust_error(Status::unsupported, [&] { measured_by(session, system); }),
                       "the trust meter of this model was fitted to head '" + meter.head + "', not to '" + head + "'");
    }
}

TEST_CASE("expected errors are refused where there are none") {
    const TemporaryDirectory folder;
    const std::string path = write_painn(folder, "one.safetensors");
    const System system = molecule_of({1, 6, 8});
    Session none(load_model(path), trust_options("cpu", Precision::fp64, 1));
    CHECK_SAYS(trust_error(Status::unsupported, [&] { measured_by(none, system); }),
               "expected errors were asked for, but this model has no trust meter; `mlff trust fit` makes one");
    struct Nobody : HaloExchange {
        void exchange(const void*, void*, size_t) override {}
    } nobody;
    const int64_t no_neighbors[] = {0, 0, 0, 0};
    mlff::Domain domain;
    domain.atoms = system.view();
    domain.owned_count = 3;
    domain.first = no_neighbors;
    domain.halo.exchange = &nobody;
    Measured found(3, 32);
    CHECK_SAYS(trust_error(Status::unsupported, [&] { none.evaluate_domain(domain, found.results().outputs); }),
               "expected errors were asked for, but this model has no trust meter; `mlff trust fit` makes one");
    test::add_trust_file(path, test::random_trust_meter(32, {1, 6}));
    Session session(load_model(path), trust_options("cpu", Precision::fp64, 1));
    session.evaluate_domain(domain, found.results().outputs);
    CHECK(found.novelties[0] > 0);
}
