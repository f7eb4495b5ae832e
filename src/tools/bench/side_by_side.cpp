// SPDX-License-Identifier: MIT
#include "tools/bench/side_by_side.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "python_models/model_name.h"
#include "tools/validate/report.h"
#include "tools/verify/evaluation.h"

namespace mlff::bench {
namespace {

// "cueq=1&dtype=float32" of "env=...&cueq=1&dtype=float32": without those that say where Python runs.
std::string options_of_model(const std::string& options) {
    std::string kept;
    for (size_t begin = 0; begin < options.size();) {
        const size_t end = std::min(options.find('&', begin), options.size());
        const std::string item = options.substr(begin, end - begin);
        begin = end + 1;
        if (item.starts_with("env=") || item.starts_with("host=") || item.starts_with("timeout=")) continue;
        kept += (kept.empty() ? "?" : "&") + item;
    }
    return kept;
}

// "X.model" for "/models/X.model", and "python:mace:X.model?cueq=1" for "python:mace:/models/X.model?env=...&cueq=1".
std::string short_name(const std::string& model) {
    const bool is_python = python::is_python_name(model);
    const size_t mark = is_python ? std::min(model.rfind('?'), model.size()) : model.size();
    const std::string name = model.substr(0, mark);
    const std::string options = mark < model.size() ? options_of_model(model.substr(mark + 1)) : "";
    const size_t folder = name.rfind('/');
    if (folder == std::string::npos) return name + options;
    const size_t prefix = is_python ? name.substr(0, folder).rfind(':') + 1 : 0;
    return name.substr(0, prefix) + name.substr(folder + 1) + options;
}

// As in --compare.
std::vector<std::string> switched_off(const Optimizations& optimizations) {
    std::vector<std::string> settings;
    if (!optimizations.graphs) settings.push_back("graph=off");
    if (!optimizations.neighbor_grid) settings.push_back("neighbors=brute");
    if (!optimizations.fused_messages) settings.push_back("fused=off");
    return settings;
}

// Makes labels that show what differs: full model names if the file names are the same, and numbers if everything is
// the same.
void add_labels(std::vector<Implementation>& implementations) {
    const auto settings = [](const Implementation& one) {
        std::string text = concat(", ", one.device, ", ", one.precision);
        if (one.threads > 0) text += ", " + threads_text(one.threads);
        for (const std::string& setting : switched_off(one.options.optimizations)) text += ", " + setting;
        return text;
    };
    const auto is_taken_by_other = [&](const Implementation& one, const std::string& label) {
        return std::any_of(implementations.begin(), implementations.end(), [&](const Implementation& other) {
            return other.model != one.model && short_name(other.model) + settings(other) == label;
        });
    };
    std::map<std::string, int> uses;
    for (Implementation& one : implementations) {
        one.label = short_name(one.model) + settings(one);
        if (is_taken_by_other(one, one.label)) one.label = one.model + settings(one);
        if (const int count = ++uses[one.label]; count > 1) one.label += concat(" (", count, ")");
    }
}

std::string interval_text(const Interval& interval) { return digits(interval.low) + " to " + digits(interval.high); }

// What Accuracy::add_to() has added; "" if there is no reference.
std::string energy_error_text(const Row& row) { return row.figures.empty() ? "" : digits(row.figures[0].second); }
std::string force_rmse_text(const Row& row) { return row.figures.empty() ? "" : digits(row.figures[1].second); }
std::string force_error_text(const Row& row) { return row.checks.empty() ? "" : digits(row.checks.front().value); }
std::string verdict_text(const Row& row) {
    return row.checks.empty() ? "" : row.checks.front().is_passed() ? "pass" : "FAIL";
}

// As wide as the longest label.
int label_width(const SideBySide& result) {
    size_t width = 14;
    for (const Implementation& one : result.implementations) width = std::max(width, one.label.size());
    return static_cast<int>(std::min<size_t>(width, 200));
}

nlohmann::json implementation_json(const Implementation& one) {
    return {{"label", one.label},         {"model", one.model},
            {"sha256", one.sha256},       {"device", one.device},
            {"precision", one.precision}, {"head", one.head},
            {"threads", one.threads},     {"switched_off", switched_off(one.options.optimizations)}};
}

}  // namespace

bool SideBySide::is_passed() const {
    for (const SideBySideSize& size : sizes)
        for (const SideBySideEntry& entry : size.entries)
            if (!std::all_of(entry.row.checks.begin(), entry.row.checks.end(),
                             [](const Check& check) { return check.is_passed(); }))
                return false;
    return true;
}

SideBySideRun::SideBySideRun(std::vector<Implementation> implementations, bool is_quick) {
    result.implementations = std::move(implementations);
    result.is_quick = is_quick;
    std::map<std::string, std::shared_ptr<const Model>> models;
    std::map<std::pair<std::string, std::string>, std::shared_ptr<Reference>> references;
    std::vector<int> known;
    for (Implementation& one : result.implementations) {
        try {
            std::shared_ptr<const Model>& model = models[one.model];
            if (!model) model = load_model(one.model);
            Contestant contestant{std::make_unique<Session>(model, one.options), nullptr};
            one.device = contestant.session->device_name();
            one.precision = precision_name(contestant.session->precision());
            one.head = contestant.session->head();
            one.threads = python::is_python_name(one.model) ? 0 : contestant.session->thread_count();
            const auto [place, is_new] = references.try_emplace({one.model, one.head});
            if (is_new) {
                place->second = std::make_shared<Reference>(one.model, model, one.options);
                if (const std::string& why = place->second->why_none(); !why.empty())
                    result.left_out.push_back(concat("errors of energies and forces of ", one.model, ": ", why));
            }
            contestant.reference = place->second;
            const std::vector<int>& elements = model->summary().elements;
            std::vector<int> common;
            std::set_intersection(known.begin(), known.end(), elements.begin(), elements.end(),
                                  std::back_inserter(common));
            known = contestants_.empty() ? elements : common;
            contestants_.push_back(std::move(contestant));
        } catch (const Error& error) {
            throw Error(error.status(), concat("--compare ", one.model, ": ", error.what()));
        }
    }
    if (known.empty()) fail(Status::argument, "--compare: the models have no element in common");
    add_labels(result.implementations);
    material_ = choose_material(known);
    result.material = material_.name;
}

SideBySideSize SideBySideRun::measure_size(Clock& clock, const Frame& frame) {
    RepeatedFrames frames({frame});
    std::vector<std::function<void()>> calls;
    for (const Contestant& contestant : contestants_)
        calls.push_back([&frames, session = contestant.session.get()] { verify::evaluate(*session, frames.next()); });
    const std::vector<std::vector<double>> times = sample_times_in_turns(clock, usual_rule(result.is_quick), calls);
    SideBySideSize size{atoms_text(frame), {}};
    for (size_t i = 0; i < contestants_.size(); ++i) {
        SideBySideEntry entry{Row("compare", size.name, frame.atom_count(), "s", times[i])};
        if (i > 0) {
            entry.speed_up = size.entries.front().row.summary.median / entry.row.summary.median;
            entry.speed_up_interval = median_ratio_interval(times.front(), times[i]);
        }
        contestants_[i].reference->compare(*contestants_[i].session, frame,
                                           result.implementations[i].label + ", " + size.name, entry.row,
                                           result.left_out);
        size.entries.push_back(std::move(entry));
    }
    return size;
}

void SideBySideRun::measure(Clock& clock, const std::vector<int64_t>& sizes,
                            const std::function<void(const std::string&)>& announce,
                            const std::function<void(const SideBySideSize&)>& on_size) {
    for (int64_t atoms : sizes.empty() ? usual_sizes(result.is_quick) : sizes) {
        const Frame frame = make_system(material_, atoms);
        if (announce) announce(concat("comparing ", contestants_.size(), " implementations, ", atoms_text(frame)));
        result.sizes.push_back(measure_size(clock, frame));
        if (on_size) on_size(result.sizes.back());
    }
}

nlohmann::json side_by_side_json(const SideBySide& result) {
    nlohmann::json json = facts_json(result), implementations = nlohmann::json::array(),
                   sizes = nlohmann::json::array();
    for (const Implementation& one : result.implementations) implementations.push_back(implementation_json(one));
    for (const SideBySideSize& size : result.sizes) {
        nlohmann::json entries = nlohmann::json::array();
        for (size_t i = 0; i < size.entries.size(); ++i) {
            const SideBySideEntry& entry = size.entries[i];
            entries.push_back(row_json(entry.row));
            entries.back().update({{"implementation", result.implementations[i].label},
                                   {"speed_up", entry.speed_up},
                                   {"speed_up_low", entry.speed_up_interval.low},
                                   {"speed_up_high", entry.speed_up_interval.high}});
        }
        sizes.push_back({{"name", size.name}, {"entries", entries}});
    }
    json.update({{"format", "mlff-bench-comparison"},
                 {"version", 1},
                 {"implementations", implementations},
                 {"sizes", sizes},
                 {"left_out", result.left_out},
                 {"passed", result.is_passed()}});
    return json;
}

std::string side_by_side_markdown(const SideBySide& result) {
    std::string text = "# Implementations side by side\n\n" + facts_text(result) + ".\n\n";
    for (const Implementation& one : result.implementations)
        text += "- " + validate::markdown_cell(one.label) + ": " + validate::markdown_cell(one.model) +
                (one.sha256.empty() ? "" : ", sha256 " + one.sha256) + "\n";
    text +=
        "\n| atoms | implementation | median | 95 % interval | P95 | speed-up | 95 % interval | energy, meV/atom | "
        "forces, RMSE, eV/A | largest, eV/A | |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n";
    for (const SideBySideSize& size : result.sizes)
        for (size_t i = 0; i < size.entries.size(); ++i) {
            const SideBySideEntry& entry = size.entries[i];
            const Summary& s = entry.row.summary;
            text += concat("| ", size.name, " | ", validate::markdown_cell(result.implementations[i].label), " | ",
                           quantity_text(s.median, "s"), " | ", quantity_text(s.median_interval.low, "s"), " to ",
                           quantity_text(s.median_interval.high, "s"), " | ", quantity_text(s.p95, "s"), " | ",
                           i == 0 ? "1" : digits(entry.speed_up), " | ",
                           i == 0 ? "" : interval_text(entry.speed_up_interval), " | ", energy_error_text(entry.row),
                           " | ", force_rmse_text(entry.row), " | ", force_error_text(entry.row), " | ",
                           verdict_text(entry.row), " |\n");
        }
    text += "\nEnergies and forces: the error beside the fp64 reference in the same run.\n";
    for (const std::string& why : result.left_out) text += "\nnot measured: " + validate::markdown_cell(why) + "\n";
    return text;
}

std::string side_by_side_header(const SideBySide& result) {
    char line[512];
    std::snprintf(line, sizeof line, "%-20s %-*s %10s %10s  %9s %-22s %10s %10s %10s\n", "atoms", label_width(result),
                  "implementation", "median", "P95", "speed-up", "(95 %)", "meV/atom", "RMSE eV/A", "max eV/A");
    return line;
}

std::string side_by_side_text(const SideBySide& result, const SideBySideSize& size) {
    std::string text;
    for (size_t i = 0; i < size.entries.size(); ++i) {
        const SideBySideEntry& entry = size.entries[i];
        const Summary& s = entry.row.summary;
        char line[512];
        std::snprintf(line, sizeof line, "%-20s %-*s %10s %10s  %9s %-22s %10s %10s %10s  %s\n",
                      i == 0 ? size.name.c_str() : "", label_width(result), result.implementations[i].label.c_str(),
                      quantity_text(s.median, "s").c_str(), quantity_text(s.p95, "s").c_str(),
                      digits(entry.speed_up).c_str(), i == 0 ? "" : interval_text(entry.speed_up_interval).c_str(),
                      energy_error_text(entry.row).c_str(), force_rmse_text(entry.row).c_str(),
                      force_error_text(entry.row).c_str(), verdict_text(entry.row).c_str());
        text += line;
    }
    return text;
}

}  // namespace mlff::bench
