// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "byte_writer.h"
#include "capture_binding.h"
#include "core/error.h"
#include "formats/module_container.h"
#include "model_files.h"

using namespace mlff;
using namespace mlff::test;
using Json = nlohmann::json;

namespace {

std::string row_major_bytes(const Tensor& tensor) {
    std::string bytes(static_cast<size_t>(tensor.element_count()) * dtype_size(tensor.dtype), '?');
    tensor.copy_bytes_to(reinterpret_cast<std::byte*>(bytes.data()));
    return bytes;
}

// "" if both are the same, else where they differ first.
std::string difference(const Module& a, const Module& b, const std::string& path) {
    if (a.class_path != b.class_path) return path + " class";
    if (a.attributes != b.attributes || a.attributes.dump() != b.attributes.dump()) return path + " attributes";
    if (a.tensors.size() != b.tensors.size()) return path + " number of tensors";
    if (a.children.size() != b.children.size()) return path + " number of children";
    for (size_t i = 0; i < a.tensors.size(); ++i) {
        const auto& [name, tensor] = a.tensors[i];
        const auto& [other_name, other] = b.tensors[i];
        if (name != other_name || tensor.dtype != other.dtype || tensor.shape != other.shape ||
            tensor.is_parameter != other.is_parameter || row_major_bytes(tensor) != row_major_bytes(other))
            return path + "." + name;
    }
    for (size_t i = 0; i < a.children.size(); ++i) {
        if (a.children[i].first != b.children[i].first) return path + "." + a.children[i].first + " name";
        const std::string below =
            difference(a.children[i].second, b.children[i].second, path + "." + a.children[i].first);
        if (!below.empty()) return below;
    }
    return {};
}

const std::string kStorage(32, '\1');

// Two modules, with everything that a container has to keep.
Module sample() {
    Module root;
    root.class_path = "a.Root";
    root.attributes = JsonValue::Object{{"number", 0.1},
                                        {"whole", 5.0},
                                        {"text", "\"\n"},
                                        {"nothing", nullptr},
                                        {"list", JsonValue::Array{1, JsonValue::Array{2, "x"}}}};
    root.tensors.emplace_back("z", make_tensor(DType::float32, {2, 2}, {1, 2}, 0, as_bytes(kStorage), "z"));
    root.tensors.emplace_back("a", make_tensor(DType::int64, {}, {}, 1, as_bytes(kStorage), "a"));
    root.tensors[0].second.is_parameter = true;
    Module child;
    child.class_path = "a.Child";
    child.tensors.emplace_back("a", make_tensor(DType::boolean, {0}, {1}, 0, as_bytes(kStorage), "a"));
    root.children.emplace_back("10", child);
    root.children.emplace_back("2", child);
    return root;
}

std::string error_of(const Safetensors& contents, Status expected) {
    try {
        unpack_module(contents, "x.mlff");
    } catch (const Error& error) {
        CHECK(error.status() == expected);
        CHECK(std::string(error.what()).find("x.mlff") == 0);
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("module container: a tree comes back as it was") {
    const Module root = sample();
    const Module again = unpack_module(pack_module(root), "x");
    CHECK(difference(root, again, "root") == "");
    CHECK((again.attributes["whole"].is_number() && !again.attributes["whole"].is_number_integer()));
    CHECK(again.tensors[0].first == "z");  // order is kept
    CHECK(again.children[0].first == "10");
    Module changed = root;
    changed.children[1].second.tensors[0].second.is_parameter = true;
    CHECK(difference(root, changed, "root") == "root.2.a");
}

TEST_CASE("module container: deep trees") {
    Module root;
    root.class_path = "leaf";
    for (int level = 0; level < 99; ++level) {
        Module outer;
        outer.class_path = "a.M";
        outer.children.emplace_back("inner", std::move(root));
        root = std::move(outer);
    }
    CHECK(difference(root, unpack_module(pack_module(root), "x"), "root") == "");
}

TEST_CASE("module container: every golden survives, to the bit") {
    REQUIRE(!goldens().empty());
    MESSAGE("goldens: " << names_of_goldens());
    const TemporaryDirectory directory;
    for (const auto& [name, golden] : goldens()) {
        if (golden.container() == "state_dict") continue;
        CAPTURE_BINDING(name);
        const ModuleFile original = open_module_file(golden.model_path);
        const std::string path = directory.file(name + ".safetensors");
        write_safetensors(path, pack_module(original.root));
        const ModuleFile again = open_module_file(path);
        CHECK(again.container == "mlff safetensors");
        CHECK(again.path == path);
        CHECK(difference(original.root, again.root, "root") == "");
        std::filesystem::remove(path);
    }
}

TEST_CASE("module container: other files are refused") {
    const Safetensors good = pack_module(sample());
    const auto changed = [&](auto change) {
        Safetensors contents = good;
        change(contents);
        return contents;
    };
    const auto with_tree = [&](auto change) {
        return changed([&](Safetensors& contents) {
            Json tree = Json::parse(contents.metadata["mlff_module"]);
            change(tree);
            contents.metadata["mlff_module"] = tree.dump();
        });
    };
    const auto check = [](const char* what, const Safetensors& contents, const std::string& words,
                          Status status = Status::format) {
        CAPTURE(what);
        const std::string message = error_of(contents, status);
        CAPTURE(message);
        CHECK(message.find(words) != std::string::npos);
    };
    CHECK(error_of(changed([](auto&) {}), Status::ok) == "no error");
    check("no metadata", changed([](auto& c) { c.metadata.clear(); }), "that mlff did not write", Status::unsupported);
    check("metadata of others", changed([](auto& c) { c.metadata["format"] = "pt"; }), "that mlff did not write",
          Status::unsupported);
    check("a later layout", changed([](auto& c) { c.metadata["mlff_layout"] = "2"; }),
          "layout 2 of a later mlff, expected 1", Status::unsupported);
    check("no layout", changed([](auto& c) { c.metadata.erase("mlff_layout"); }), "layout", Status::unsupported);
    check("no tree", changed([](auto& c) { c.metadata.erase("mlff_module"); }), "malformed JSON");
    check("tree that is no JSON", changed([](auto& c) { c.metadata["mlff_module"] = "{"; }),
          "x.mlff (mlff_module): malformed JSON");
    check("deep tree", changed([](auto& c) { c.metadata["mlff_module"] = std::string(100'000, '['); }), "levels deep");
    check("key twice", changed([](auto& c) { c.metadata["mlff_module"] = "{\"class\":1,\"class\":2}"; }),
          "occurs twice");
    check("tensor too few", changed([](auto& c) { c.tensors.pop_back(); }), "'2.a' is not among the tensors");
    check("tensor too many", changed([](auto& c) { c.tensors.emplace_back("extra", c.tensors[0].second); }),
          "'extra' is a tensor that no module refers to");
    check("tree that is a list", with_tree([](Json& t) { t = Json::array(); }), "is not a valid module description");
    for (const char* key : {"class", "attributes", "tensors", "children"}) {
        check(key, with_tree([&](Json& t) { t.erase(key); }), "is not a valid module description");
        check(key, with_tree([&](Json& t) { t[key] = 5; }), "is not a valid module description");
        check(key, with_tree([&](Json& t) { t["children"][1][1].erase(key); }),
              "'2' is not a valid module description");
    }
    check("child that is no pair", with_tree([](Json& t) { t["children"][0] = Json::array({"10"}); }),
          "malformed child");
    check("child without a name", with_tree([](Json& t) { t["children"][0][0] = 10; }), "malformed child");
    check("tensor twice", with_tree([](Json& t) { t["tensors"].push_back(t["tensors"][0]); }),
          "'z' is not among the tensors");
    check("tensor of another role", with_tree([](Json& t) { t["tensors"][0][1] = "other"; }), "malformed tensor");
    check("tensor without a name", with_tree([](Json& t) { t["tensors"][0][0] = nullptr; }), "malformed tensor");
    check("tensor that is text", with_tree([](Json& t) { t["tensors"][0] = "z"; }), "malformed tensor");
}
