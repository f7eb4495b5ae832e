// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "../sanitized.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "core/sha256.h"
#include "engine/load_model.h"
#include "engine/model_cache.h"
#include "model_files.h"

using namespace mlff;
using namespace mlff::test;

namespace {

const std::string kSmallModel = std::string(MLFF_GOLDEN_DIR) + "/p10_mace_1layer_c1_ell1.model";
const std::string kOtherModel = std::string(MLFF_GOLDEN_DIR) + "/p03_mace_plain_l1.model";

template <class Action>
void check_cache_refuses(Status status, const std::string& words, Action&& action) {
    std::string message = "no error";
    try {
        action();
    } catch (const Error& error) {
        CHECK(error.status() == status);
        message = error.what();
    }
    CHECK_MESSAGE(message.find(words) != std::string::npos, message, " should say ", words);
}

size_t file_count(const std::string& folder) {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
    return count;
}

}  // namespace

TEST_CASE("a model that was added to the cache is found, verified, replaced and removed") {
    const TemporaryDirectory directory;
    const ModelCache cache(directory.file("deep/models"));
    CHECK(cache.list().empty());  // no folder yet
    check_cache_refuses(Status::file, "mlff model add FILE --name small", [&] { cache.verified_path("small"); });
    check_cache_refuses(Status::file, "'small'", [&] { cache.remove("small"); });

    const CachedModel added = cache.add(kSmallModel, "small", {"MIT", "PBE+U"});
    CHECK(added.sha256 == sha256_hex(MappedFile::open(kSmallModel)->bytes()));
    const auto models = cache.list();
    REQUIRE(models.size() == 1);
    const CachedModel& small = models.at("small");
    CHECK(small.licence == "MIT");
    CHECK(small.theory == "PBE+U");
    CHECK(small.source == "p10_mace_1layer_c1_ell1.model");
    CHECK(small.size == static_cast<int64_t>(std::filesystem::file_size(kSmallModel)));
    CHECK(small.class_name == load_model(kSmallModel)->summary().class_name);
    CHECK(small.elements == load_model(kSmallModel)->summary().elements);
    CHECK(small.added.size() == 20);
    CHECK(small.why_not_runnable == "");
    CHECK(read_bytes(cache.verified_path("small")) == read_bytes(kSmallModel));

    check_cache_refuses(Status::argument, "--replace", [&] { cache.add(kOtherModel, "small", {}); });
    CHECK(cache.list().at("small").sha256 == added.sha256);
    const std::string old_path = cache.verified_path("small");
    cache.add(kOtherModel, "small", {"", "", true});
    CHECK(read_bytes(cache.verified_path("small")) == read_bytes(kOtherModel));
    CHECK_FALSE(std::filesystem::exists(old_path));
    cache.add(kOtherModel, "small", {"CC0", "", true});  // the same file again
    CHECK(cache.list().at("small").licence == "CC0");
    CHECK(read_bytes(cache.verified_path("small")) == read_bytes(kOtherModel));

    cache.add(kSmallModel, "tiny-0.1_b", {});
    CHECK(cache.list().size() == 2);
    cache.remove("small");
    CHECK_FALSE(cache.contains("small"));
    CHECK(cache.contains("tiny-0.1_b"));
    CHECK(file_count(cache.folder()) == 3);  // .lock, index.json and the file that is left
}

TEST_CASE("names of cached models are plain, and files that are no models are refused") {
    const TemporaryDirectory directory;
    const ModelCache cache(directory.file("models"));
    for (const char* name : {"", ".", "..", ".hidden", "-option", "a/b", "../x", "a b", "a\nb", "\xc3\xa9", "a:b"})
        check_cache_refuses(Status::argument, "--name", [&] { cache.add(kSmallModel, name, {}); });
    check_cache_refuses(Status::argument, "--name", [&] { cache.add(kSmallModel, std::string(65, 'a'), {}); });
    for (const char* name : {"builtin", "analytic", "python"})
        check_cache_refuses(Status::argument, "something else", [&] { cache.add(kSmallModel, name, {}); });
    CHECK_FALSE(std::filesystem::exists(cache.folder()));
    check_cache_refuses(Status::argument, "part of mlff", [&] { cache.add("builtin", "x", {}); });
    check_cache_refuses(Status::file, "/no/such.model", [&] { cache.add("/no/such.model", "x", {}); });
    write_bytes(directory.file("text.model"), "no model at all");
    check_cache_refuses(Status::format, "text.model", [&] { cache.add(directory.file("text.model"), "x", {}); });
    CHECK(cache.list().empty());
    CHECK(file_count(cache.folder()) == 1);  // the lock
    check_cache_refuses(Status::file, "MLFF_MODELS", [&] { ModelCache("").add(kSmallModel, "x", {}); });
    CHECK(ModelCache("").list().empty());
}

TEST_CASE("a damaged file of the model cache is refused by name") {
    const TemporaryDirectory directory;
    const ModelCache cache(directory.file("models"));
    cache.add(kSmallModel, "small", {});
    const std::string path = cache.verified_path("small"), bytes = read_bytes(path);
    std::string changed = bytes;
    changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
    write_bytes(path, changed);
    check_cache_refuses(Status::format, "model 'small'", [&] { cache.verified_path("small"); });
    check_cache_refuses(Status::format, "SHA-256", [&] { cache.verified_path("small"); });
    write_bytes(path, bytes + "x");
    check_cache_refuses(Status::format, "bytes, expected", [&] { cache.verified_path("small"); });
    std::filesystem::remove(path);
    check_cache_refuses(Status::file, "model 'small'", [&] { cache.verified_path("small"); });
    write_bytes(path, bytes);
    CHECK(cache.verified_path("small") == path);
}

TEST_CASE("an index of many models takes a time that grows with their number") {
    ModelIndex models;
    CachedModel model;
    model.file = "a.model";
    model.sha256 = std::string(64, '0');
    model.elements = {1, 8};
    for (int i = 0; i < 30'000; ++i) models["m" + std::to_string(i)] = model;
    const std::string text = model_index_text(models);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(parse_model_index(text, "index.json") == models);
    CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() <
          (test::kIsSanitized ? 60 : 10));  // minutes where it grows with the square
}

TEST_CASE("a hostile index of the model cache is an error that names it") {
    const TemporaryDirectory directory;
    const ModelCache cache(directory.file("models"));
    cache.add(kSmallModel, "small", {});
    const std::string path = cache.folder() + "/index.json", good = read_bytes(path);
    const auto refuse_text = [&](const std::string& text, const std::string& words) {
        CAPTURE(words);
        write_bytes(path, text);
        check_cache_refuses(Status::format, "index.json", [&] { cache.list(); });
        check_cache_refuses(Status::format, words, [&] { cache.verified_path("small"); });
        check_cache_refuses(Status::format, words, [&] { cache.add(kOtherModel, "other", {}); });
    };
    const auto refuse_change = [&](const char* pointer, const nlohmann::json& value, const std::string& words) {
        nlohmann::json index = nlohmann::json::parse(good);
        index[nlohmann::json::json_pointer(pointer)] = value;
        refuse_text(index.dump(), words);
    };
    refuse_text("", "malformed");
    refuse_text(good.substr(0, good.size() / 2), "malformed");
    refuse_text("[]", "no index");
    refuse_text("{}", "no index");
    refuse_text(std::string(100'000, '['), "nested");
    refuse_text("{\"format\": \"mlff model cache\", \"format\": 1}", "twice");
    refuse_text(std::string((16 << 20) + 1, ' '), "larger");
    refuse_change("/format", 7, "no index");
    refuse_change("/version", 2, "version 2");
    refuse_change("/models", 7, "'models'");
    refuse_change("/models/small", "text", "not an object");
    refuse_change("/models/..", nlohmann::json::object(), "no name of a model");
    for (const char* file : {"../../etc/passwd", "/etc/passwd", "", ".lock", "a b"})
        refuse_change("/models/small/file", file, "no name of a file");
    refuse_change("/models/small/file", nullptr, "'file'");
    refuse_change("/models/small/sha256", "abc", "sha256");
    refuse_change("/models/small/sha256", std::string(64, 'X'), "sha256");
    refuse_change("/models/small/size", -1, "size");
    refuse_change("/models/small/size", 1e300, "size");
    refuse_change("/models/small/elements", "H", "elements");
    refuse_change("/models/small/elements", {0}, "elements");
    refuse_change("/models/small/elements", {1, 4000000000u}, "elements");
    refuse_change("/models/small/licence", {1, 2}, "licence");
    write_bytes(path, good);
    CHECK(cache.contains("small"));
}

TEST_CASE("models are added to the cache by several threads at a time") {
    const TemporaryDirectory directory;
    const std::string folder = directory.file("models");
    std::atomic<int> added{0}, refused{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number)
        threads.emplace_back([&, number] {
            const ModelCache cache(folder);
            for (int round = 0; round < 3; ++round)
                cache.add(kSmallModel, "model-" + std::to_string(number) + "-" + std::to_string(round), {});
            try {
                cache.add(number % 2 ? kSmallModel : kOtherModel, "wanted-by-all", {});
                ++added;
            } catch (const Error&) {
                ++refused;
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(added == 1);
    CHECK(refused == 3);
    const ModelCache cache(folder);
    CHECK(cache.list().size() == 13);
    for (const auto& [name, model] : cache.list()) CHECK_NOTHROW(cache.verify(name, model));
    CHECK(file_count(folder) == 15);
}
