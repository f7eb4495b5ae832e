// SPDX-License-Identifier: MIT
// mlff model fetch: released models by name, from the network into the model cache.
#include <unistd.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "cached_model.h"
#include "command.h"
#include "core/bytes_text.h"
#include "core/error.h"
#include "engine/model_cache.h"
#include "engine/released_models.h"
#include "stop_signal.h"
#include "tools/fetch/fetch_model.h"

namespace mlff::app {
namespace {

constexpr int64_t kLargestModel = 4'000'000'000;  // bytes

struct FetchOptions {
    std::string name, from, sha256, json;
    bool accepts_licence = false, replace = false;
    double patience_seconds = 60;
    int retries = 3;
};

// With --json - the JSON alone goes to standard output.
std::ostream& notes(const FetchOptions& options) { return options.json == "-" ? std::cerr : std::cout; }

void write_json(const FetchOptions& options, const nlohmann::json& document) {
    if (!options.json.empty())
        write_text(options.json, document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

int list_released(const FetchOptions& options) {
    const ModelIndex cached = ModelCache().list();
    nlohmann::json models = nlohmann::json::array();
    for (const ReleasedModel& model : released_models()) {
        const bool is_here = cached.count(model.name) > 0;
        models.push_back({{"name", model.name},
                          {"aliases", model.aliases},
                          {"title", model.title},
                          {"address", model.address},
                          {"size", model.size > 0 ? nlohmann::json(model.size) : nlohmann::json()},
                          {"sha256", model.sha256.empty() ? nlohmann::json() : nlohmann::json(model.sha256)},
                          {"licence", model.licence},
                          {"theory", model.theory},
                          {"citation", model.citation},
                          {"here", is_here}});
        if (options.json != "-")
            std::cout << std::left << std::setw(16) << model.name << std::right << std::setw(9)
                      << (model.size > 0 ? bytes_text(model.size) : "") << "  " << model.licence << "  " << model.title
                      << ", " << model.theory << (is_here ? ", in the model cache" : "") << "\n";
    }
    write_json(options, {{"models", models}});
    return kGood;
}

std::string lower_case_sha256(std::string sha256) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; };
    std::transform(sha256.begin(), sha256.end(), sha256.begin(), lower);
    const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (sha256.size() != 64 || !std::all_of(sha256.begin(), sha256.end(), is_digit))
        fail(Status::argument, "--sha256 '", sha256, "': expected 64 hexadecimal digits");
    return sha256;
}

// What to download and what it must be: from the table, and for other names from the command line.
fetch::ModelRequest make_request(const ReleasedModel* model, const FetchOptions& options) {
    fetch::ModelRequest request;
    request.name = options.name;
    request.replace = options.replace;
    if (!options.sha256.empty()) request.sha256 = lower_case_sha256(options.sha256);
    if (!model) {
        if (!is_model_name(options.name) || is_model_without_file(options.name) || options.name == "python")
            fail(Status::argument, "'", options.name, "' is no name for a model in the model cache");
        if (options.from.empty() || options.sha256.empty()) {
            std::vector<std::string> names;
            for (const ReleasedModel& released : released_models()) names.push_back(released.name);
            const auto near = near_names(options.name, names);
            fail(Status::argument, "'", options.name,
                 "' is no released model; 'mlff model fetch' lists them, and others need --from and --sha256",
                 near.empty() ? "" : concat("; did you mean '", near[0], "'?"));
        }
        request.address = fetch::parse_address(options.from);
        return request;
    }
    if (!model->sha256.empty() && !request.sha256.empty() && model->sha256 != request.sha256)
        fail(Status::argument, "--sha256 ", request.sha256, ": that of '", options.name, "' is ", model->sha256);
    request.address = fetch::parse_address(model->address);
    if (options.from.ends_with('/'))
        request.address = fetch::parse_address(options.from + request.address.file_name());
    else if (!options.from.empty())
        request.address = fetch::parse_address(options.from);
    request.size = model->size;
    if (!model->sha256.empty()) request.sha256 = model->sha256;
    request.licence = model->licence;
    request.theory = model->theory;
    return request;
}

// Shows the licence; one that restricts the use must be accepted.
void show_licence(const ReleasedModel* model, const fetch::ModelRequest& request, const FetchOptions& options) {
    std::ostream& out = notes(options);
    const auto line = [&](const char* label, const std::string& text) {
        out << std::left << std::setw(9) << label << std::right << text << "\n";
    };
    if (model) {
        const Licence& licence = find_licence(model->licence);
        line("model", concat(model->title, ", ", model->theory, model->size > 0 ? ", " + bytes_text(model->size) : ""));
        line("cite", model->citation);
        line("licence", concat(licence.name, ", ", licence.text, ", ", licence.address));
    }
    line("from", request.address.text());
    out << std::flush;
    if (!model || !find_licence(model->licence).needs_consent || options.accepts_licence) return;
    const std::string refusal = concat("the licence ", model->licence, " of '", options.name, "' (",
                                       find_licence(model->licence).address, ") restricts its use");
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        fail(Status::argument, refusal, "; if you agree to it, add --accept-license");
    std::cerr << "Do you agree to this licence? (yes/no) " << std::flush;
    std::string answer;
    std::getline(std::cin, answer);
    if (answer != "yes" && answer != "y") fail(Status::argument, refusal, ", and it was not agreed to");
}

// What is in the cache under this name already, if it is the wanted file. Throws Error if it is another one.
bool is_here_already(const ModelCache& cache, const fetch::ModelRequest& request) {
    const ModelIndex cached = cache.list();
    const auto found = cached.find(request.name);
    if (found == cached.end() || request.replace) return false;
    cache.verify(request.name, found->second);
    if (!request.sha256.empty() && found->second.sha256 != request.sha256)
        fail(Status::argument, "there is a model '", request.name, "' already, from ", found->second.source,
             ", which is not this file; --replace puts this one in its place");
    return true;
}

fetch::DownloadOptions download_options(const fetch::ModelRequest& request, const FetchOptions& options,
                                        const StopSignal& stop) {
    fetch::DownloadOptions download;
    download.size = request.size;
    download.limit = request.size > 0 ? request.size : kLargestModel;
    download.patience_seconds = options.patience_seconds;
    download.retries = options.retries;
    download.is_stopped = [&stop] { return stop.number() != 0; };
    download.tell = [&options](const std::string& sentence) {
        notes(options) << as_message(sentence) << "\n" << std::flush;
    };
    if (isatty(STDERR_FILENO))
        download.show_progress = [shown = std::string()](int64_t done, int64_t total) mutable {
            const std::string text = bytes_text(done) + (total > 0 ? " of " + bytes_text(total) : "");
            if (text == shown) return;
            shown = text;
            std::cerr << "\r\x1b[K" << text << std::flush;
        };
    return download;
}

// Before anything else is printed.
struct ProgressCleared {
    ~ProgressCleared() {
        if (isatty(STDERR_FILENO)) std::cerr << "\r\x1b[K" << std::flush;
    }
};

int run_fetch(const FetchOptions& options) {
    if (options.name.empty()) {
        if (!options.from.empty() || !options.sha256.empty())
            fail(Status::argument, "--from needs the NAME of a model");
        return list_released(options);
    }
    const ReleasedModel* model = find_released_model(options.name);
    const fetch::ModelRequest request = make_request(model, options);
    const ModelCache cache;
    const ModelIndex before = cache.list();
    if (is_here_already(cache, request)) {
        notes(options) << options.name << " is in the model cache already\n";
        write_json(options, cached_json(cache, options.name, before.at(options.name)));
        return kGood;
    }
    show_licence(model, request, options);
    const StopSignal stop;
    CachedModel fetched;
    try {
        const ProgressCleared progress;
        fetched = fetch::fetch_model(cache, request, download_options(request, options, stop));
    } catch (const fetch::Stopped&) {
        std::cerr << "mlff: stopped; the same command continues the download\n";
        return kStoppedBySignal + stop.number();
    } catch (const fetch::NotReached& failure) {
        fail(Status::file, failure.why, "; run the same command again, or download ", request.address.text(),
             request.sha256.empty() ? "" : " (SHA-256 " + request.sha256 + ")",
             " on another machine and run: mlff model add FILE --name ", options.name);
    }
    if (options.json != "-") print_cached(options.name, fetched);
    const auto old = before.find(options.name);
    if (old != before.end() && old->second.sha256 != fetched.sha256)
        notes(options) << "note: it is not the file that had this name, whose SHA-256 was " << old->second.sha256
                       << "\n";
    if (request.sha256.empty())
        notes(options)
            << "note: the SHA-256 of this model is not known to mlff, so it could not be checked; it is\n      "
            << fetched.sha256 << " and is checked from now on\n";
    write_json(options, cached_json(cache, options.name, fetched));
    return kGood;
}

}  // namespace

void add_model_fetch(CLI::App& model_command, Work& work) {
    auto options = std::make_shared<FetchOptions>();
    CLI::App* command = model_command.add_subcommand(
        "fetch", "download a released model into the model cache; without NAME, list the released models");
    command->add_option("NAME", options->name, "small, medium, large, mpa-0-medium, off23-small, ...");
    command
        ->add_option("--from", options->from,
                     "download from this address instead: of the file, or of its folder if it ends with '/'")
        ->option_text("URL");
    command->add_option("--sha256", options->sha256, "SHA-256 that the file must have, for models that are not listed")
        ->option_text("HEX");
    command->add_flag("--accept-license,--accept-licence", options->accepts_licence,
                      "agree to a licence that restricts the use of the model, without being asked");
    command->add_flag("--replace", options->replace, "replace the model that has this name");
    command
        ->add_option("--timeout", options->patience_seconds,
                     "give up on a server that sends nothing for this long, in s")
        ->check(CLI::Range(0.1, 86400.0))
        ->capture_default_str()
        ->option_text("SECONDS");
    command->add_option("--retries", options->retries, "how often to try again after a broken connection")
        ->check(CLI::Range(0, 1000))
        ->capture_default_str()
        ->option_text("N");
    add_json_option(*command, options->json);
    command->callback([options, &work] { work = [options] { return run_fetch(*options); }; });
}

}  // namespace mlff::app
