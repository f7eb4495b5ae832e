// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/bytes_text.h"
#include "core/error.h"
#include "engine/model_cache.h"
#include "engine/released_models.h"
#include "model_files.h"
#include "tools/fetch/address.h"
#include "tools/fetch/answer.h"
#include "tools/fetch/part_file.h"

using namespace mlff;
using namespace mlff::fetch;
using namespace mlff::test;

namespace {

std::string error_of_fetch(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

bool says(const std::string& message, const std::string& words) { return message.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("the table of released models") {
    std::set<std::string> names, addresses, sums;
    for (const ReleasedModel& model : released_models()) {
        CAPTURE(model.name);
        std::vector<std::string> all = model.aliases;
        all.push_back(model.name);
        for (const std::string& name : all) {
            CHECK(is_model_name(name));
            CHECK_FALSE(is_model_without_file(name));
            CHECK(names.insert(name).second);
            CHECK(find_released_model(name) == &model);
            const std::string advice = how_to_get(model, name);
            CHECK(says(advice, "mlff model fetch " + name));
            CHECK(says(advice, "mlff model add FILE --name " + name));
            CHECK(says(advice, model.address));
            CHECK(advice.size() < 400);  // with the folder of the cache within the 512 bytes of mace_wrapper.h
        }
        const Address address = parse_address(model.address);
        CHECK(address.scheme == "https");
        CHECK_FALSE(address.is_loopback);
        CHECK(address.text() == model.address);
        CHECK(address.file_name().ends_with(".model"));
        CHECK(addresses.insert(model.address).second);
        CHECK(model.size >= 0);
        CHECK(model.size < 4'000'000'000);
        if (!model.sha256.empty()) {
            CHECK(model.sha256.size() == 64);
            CHECK(model.sha256.find_first_not_of("0123456789abcdef") == std::string::npos);
            CHECK(sums.insert(model.sha256).second);
            CHECK(find_released_file(model.sha256) == &model);
        }
        CHECK(find_licence(model.licence).needs_consent == (model.licence == "ASL"));
        CHECK_FALSE(model.title.empty());
        CHECK_FALSE(model.theory.empty());
        CHECK_FALSE(model.citation.empty());
    }
    for (const char* name : {"small", "medium", "large", "off23-small", "off23-medium", "off23-large", "mpa-0-medium"})
        CHECK(find_released_model(name) != nullptr);
    CHECK(find_released_model("nonsense") == nullptr);
    CHECK(find_released_file("") == nullptr);
}

TEST_CASE("the table agrees with the known answers of mlff verify") {
    std::ifstream file(MLFF_KNOWN_ANSWERS);
    size_t found = 0;
    const nlohmann::json answers = nlohmann::json::parse(file);
    for (const nlohmann::json& entry : answers["models"]) {
        if (!entry["source"].get<std::string>().starts_with("https://")) continue;  // inside a package
        const ReleasedModel* model = find_released_file(entry["sha256"].get<std::string>());
        REQUIRE(model != nullptr);
        CHECK(model->address == entry["source"].get<std::string>());
        CHECK(model->licence == entry["licence"].get<std::string>());
        ++found;
    }
    CHECK(found == 4);
}

TEST_CASE("names near a wrong one, and sizes") {
    const std::vector<std::string> names = {"small", "medium", "large", "off23-small"};
    CHECK(near_names("smal", names) == std::vector<std::string>{"small"});
    CHECK(near_names("Medium", names) == std::vector<std::string>{"medium"});
    CHECK(near_names("meduim", names) == std::vector<std::string>{"medium"});
    CHECK(near_names("off-small", names) == std::vector<std::string>{"off23-small"});
    CHECK(near_names("x", names).empty());
    CHECK(near_names("", names).empty());
    CHECK(near_names("X.model", names).empty());
    CHECK(bytes_text(32'581'838) == "32.6 MB");
    CHECK(bytes_text(999'949) == "999.9 kB");
    CHECK(bytes_text(999'950) == "1.0 MB");
}

TEST_CASE("addresses that are followed") {
    const Address address = parse_address("https://github.com/a/b.model?raw=true#top");
    CHECK(address.text() == "https://github.com/a/b.model?raw=true");
    CHECK(address.file_name() == "b.model");
    CHECK(parse_address("https://h").text() == "https://h/");
    CHECK(parse_address("https://h?x").text() == "https://h/?x");
    for (const char* text : {"http://127.0.0.1/x", "http://127.0.0.1:80/x", "http://[::1]:8000/x", "http://localhost/x",
                             "https://localhost:1/x"})
        CHECK(parse_address(text).is_loopback);
    for (const char* text : {"",
                             "x",
                             "/x",
                             "https:/h",
                             "https://",
                             "https:///x",
                             "http://h/x",
                             "http://127.0.0.2/x",
                             "http://localhost.h/x",
                             "http://127.0.0.1.h/",
                             "http://[::2]/",
                             "ftp://h/x",
                             "file:///x",
                             "HTTPS://h/x",
                             "https://u@h/x",
                             "https://u:p@h/x",
                             "https://h:/x",
                             "https://h:123456/x",
                             "https://h:8a/x",
                             "https://h b/x",
                             "https://h/\n",
                             "https://h\\@x/",
                             "https://[::1/x",
                             "https://h%00/x",
                             "http://127.0.0.1@h/",
                             "http://h#@127.0.0.1/",
                             "https://h/\xc3\xa9"})
        CHECK_MESSAGE(says(error_of_fetch([&] { parse_address(text); }), "address '"), text);
    CHECK(says(error_of_fetch([&] { parse_address("https://h/" + std::string(5000, 'x')); }), "too long"));
}

TEST_CASE("redirects that are followed") {
    const Address far = parse_address("https://h/a/b?c/d"), near = parse_address("http://127.0.0.1:8000/a/b");
    CHECK(redirected(far, "https://other/x").text() == "https://other/x");
    CHECK(redirected(far, "//other/x").text() == "https://other/x");
    CHECK(redirected(far, "/x").text() == "https://h/x");
    CHECK(redirected(far, "x?y=a:b").text() == "https://h/a/x?y=a:b");
    CHECK(redirected(near, "/x").text() == "http://127.0.0.1:8000/x");
    CHECK(redirected(near, "http://localhost:1/x").text() == "http://localhost:1/x");
    CHECK(redirected(near, "https://h/x").text() == "https://h/x");
    for (const char* location : {"http://h/x", "http://127.0.0.1/x", "https://127.0.0.1/x", "file:///x", "ftp://h/x"})
        CHECK_MESSAGE(says(error_of_fetch([&] { redirected(far, location); }), "does not follow"), location);
    for (const char* location : {"http://h/x", "//h/x", "file:///x", "https://u@h/x", "javascript:x", "\n"})
        CHECK_MESSAGE(says(error_of_fetch([&] { redirected(near, location); }), "does not follow"), location);
}

TEST_CASE("what a server answers") {
    const std::string text = "HTTP/1.1 200 OK\r\nContent-LENGTH:  12 \r\nServer: x\r\n\r\nbody\r\n\r\n";
    REQUIRE(header_size(text) == text.size() - 8);
    CHECK(header_size("HTTP/1.1 200 OK\r\n") == 0);
    CHECK(header_size("HTTP/1.1 200 OK\n\n") == 17);
    CHECK(header_size("") == 0);
    const Answer whole = parse_answer(text.substr(0, header_size(text)));
    CHECK(whole.status == 200);
    CHECK(whole.length == 12);
    CHECK(whole.total == 12);
    const Answer part = parse_answer("HTTP/2 206 \r\ncontent-range: bytes 5-9/10\r\ncontent-length: 5\r\n\r\n");
    CHECK(part.status == 206);
    CHECK(part.range_begin == 5);
    CHECK(part.total == 10);
    CHECK(parse_answer("HTTP/1.1 206 x\nContent-Range: bytes 5-9/*\n\n").total == -1);
    CHECK(parse_answer("HTTP/1.1 416 x\nContent-Range: bytes */7\n\n").total == 7);
    CHECK(parse_answer("HTTP/1.1 302 x\nLocation: https://h/x\n\n").location == "https://h/x");
    for (const char* header :
         {"", "\r\n", "HTTP/1.1", "HTTP/1.1 x", "HTTP/1.1 99", "FTP 200", "HTTP/1.1 200\nContent-Length: x\n",
          "HTTP/1.1 200\nContent-Length: -1\n", "HTTP/1.1 200\nContent-Length: 99999999999999999999\n",
          "HTTP/1.1 200\nContent-Length: 1\nContent-Length: 2\n", "HTTP/1.1 206\nContent-Range: 5-9/10\n",
          "HTTP/1.1 206\nContent-Range: bytes 5-9\n", "HTTP/1.1 206\nContent-Range: bytes -1-9/10\n",
          "HTTP/1.1 200\nContent-Length: 5\nContent-Range: bytes 0-4/10\n"})
        CHECK_MESSAGE(says(error_of_fetch([&] { parse_answer(header); }), "the server's answer"), header);
}

TEST_CASE("a part of a download has one owner") {
    const TemporaryDirectory directory;
    const std::string path = directory.file(".x.part");
    auto first = PartFile::open(path, [] { return true; });
    REQUIRE(first.has_value());
    first->write("12345", 5);
    int waits = 0;
    CHECK_FALSE(PartFile::open(path, [&] { return ++waits < 2; }).has_value());
    CHECK(waits == 2);
    // The owner renames it while another waits: that one gets a file of its own.
    bool is_renamed = false;
    auto second = PartFile::open(path, [&] {
        std::filesystem::rename(path, directory.file("done"));
        first.reset();
        return is_renamed = true;
    });
    REQUIRE(second.has_value());
    CHECK(is_renamed);
    CHECK(second->size() == 0);
    second->write("678", 3);
    CHECK(read_bytes(directory.file("done")) == "12345");
    CHECK(read_bytes(path) == "678");
    second.reset();
    auto third = PartFile::open(path, [] { return true; });
    REQUIRE(third.has_value());
    CHECK(third->size() == 3);
    third->clear();
    CHECK(third->size() == 0);
    third->remove();
    CHECK_FALSE(std::filesystem::exists(path));
    std::filesystem::create_symlink(directory.file("done"), path);
    CHECK(says(error_of_fetch([&] { PartFile::open(path, [] { return true; }); }), "cannot be opened"));
}
