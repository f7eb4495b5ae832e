// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <set>

#include "capture_binding.h"
#include "core/error.h"
#include "formats/torch_archive.h"
#include "model_files.h"
#include "pickle_writer.h"

using namespace mlff;
using namespace mlff::test;
using Json = nlohmann::json;
namespace pk = mlff::test::pickle;

namespace {

using Reals = std::vector<double>;
using Integers = std::vector<int64_t>;

// Keeps the bytes that the tensors are views of.
struct Archive {
    explicit Archive(std::string archive_bytes)
        : bytes(std::move(archive_bytes)), file(read_torch_archive(as_bytes(bytes), "m.model")) {}
    std::string bytes;
    ModuleFile file;
    const Module& root() const { return file.root; }
};

std::string error_of(const std::string& bytes, Status expected = Status::format) {
    try {
        read_torch_archive(as_bytes(bytes), "m.model");
    } catch (const Error& error) {
        CHECK(error.status() == expected);
        CHECK(std::string(error.what()).find("m.model") == 0);
        return error.what();
    }
    return "no error";
}

void check_refused(const std::string& what, const std::string& bytes, const std::string& words,
                   Status status = Status::format) {
    CAPTURE(what);
    const std::string message = error_of(bytes, status);
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
}

const std::string kSix = floats({0, 1, 2, 3, 4, 5});
const std::string kSixStorage = pk::storage("FloatStorage", "0", 6);

// A module with one buffer `t`.
std::string with_tensor(const std::string& tensor) { return pk::module("a.M", {.buffers = {{"t", tensor}}}); }
std::string with_attribute(const std::string& value) { return pk::module("a.M", {.attributes = {{"x", value}}}); }
Json attribute_of(const std::string& value) {
    return Archive(torch_archive(with_attribute(value))).root().attribute("x");
}

void for_each_module(const Module& module, const std::string& path,
                     const std::function<void(const Module&, const std::string&)>& visit) {
    visit(module, path);
    for (const auto& [name, child] : module.children)
        for_each_module(child, path.empty() ? name : path + "." + name, visit);
}

}  // namespace

TEST_CASE("torch archive: a module with parameters, buffers, children and attributes") {
    const Archive archive(torch_archive(
        pk::module(
            "package.models.Net",
            {.parameters = {{"weight", pk::parameter(pk::tensor(kSixStorage, {2, 3}, {3, 1}))}, {"bias", pk::none()}},
             .buffers = {{"scale", pk::tensor(pk::storage("DoubleStorage", "1", 1), {}, {})}},
             .children = {{"inner",
                           pk::module("package.Inner", {.buffers = {{"same", pk::tensor(kSixStorage, {3}, {2}, 1)}}})}},
             .attributes = {{"depth", pk::integer(3)}, {"_forward_hooks", pk::dict({})}}}),
        {{"0", kSix}, {"1", doubles({0.5})}}));
    CHECK(archive.file.container == "torch module");
    CHECK(archive.file.path == "m.model");
    const Module& root = archive.root();
    CHECK(root.class_path == "package.models.Net");
    CHECK(root.class_name() == "Net");
    CHECK(root.tensor("weight").shape == Integers{2, 3});
    CHECK(root.tensor("weight").is_parameter);
    CHECK(root.tensor("weight").to_doubles() == Reals{0, 1, 2, 3, 4, 5});
    CHECK(root.find_tensor("bias") == nullptr);
    CHECK(!root.tensor("scale").is_parameter);
    CHECK(root.tensor("scale").item() == 0.5);
    CHECK(root.at("inner").class_name() == "Inner");
    CHECK(root.tensor("inner.same").to_doubles() == Reals{1, 3, 5});
    CHECK(root.tensor("inner.same").storage.data() == root.tensor("weight").storage.data());  // a shared storage
    CHECK(Json(root.attributes) == Json{{"depth", 3}});
    CHECK_THROWS_WITH_AS(root.tensor("inner.other"), "module package.models.Net has no tensor 'inner.other'", Error);
    CHECK_THROWS_WITH_AS(root.at("inner.other"), "module package.models.Net has no module 'inner.other'", Error);
    CHECK_THROWS_WITH_AS(root.attribute("other"), "module package.models.Net has no attribute 'other'", Error);
}

TEST_CASE("torch archive: every storage type") {
    using namespace std::string_literals;
    const std::tuple<const char*, DType, std::string, Reals> cases[] = {
        {"DoubleStorage", DType::float64, doubles({1.5, -2}), {1.5, -2}},
        {"FloatStorage", DType::float32, floats({1.5f, -2}), {1.5, -2}},
        {"HalfStorage", DType::float16, "\x00\x3e\x00\xc0"s, {1.5, -2}},
        {"BFloat16Storage", DType::bfloat16, "\xc0\x3f\x00\xc0"s, {1.5, -2}},
        {"LongStorage", DType::int64, little_endian(7, 8) + little_endian(~uint64_t{0}, 8), {7, -1}},
        {"IntStorage", DType::int32, little_endian(7, 4) + little_endian(~uint64_t{0}, 4), {7, -1}},
        {"ShortStorage", DType::int16, "\x07\x00\xff\xff"s, {7, -1}},
        {"CharStorage", DType::int8, "\x07\xff"s, {7, -1}},
        {"ByteStorage", DType::uint8, "\x07\xff"s, {7, 255}},
        {"BoolStorage", DType::boolean, "\x01\x00"s, {1, 0}},
    };
    for (const auto& [type, dtype, bytes, values] : cases) {
        CAPTURE_BINDING(type);
        const Archive archive(
            torch_archive(with_tensor(pk::tensor(pk::storage(type, "k", 2), {2}, {1})), {{"k", bytes}}));
        CHECK(archive.root().tensor("t").dtype == dtype);
        CHECK(archive.root().tensor("t").to_doubles() == values);
    }
    const Archive complex(torch_archive(with_tensor(pk::tensor(pk::storage("ComplexFloatStorage", "k", 1), {1}, {1})),
                                        {{"k", floats({1, 2})}}));
    CHECK(complex.root().tensor("t").dtype == DType::complex64);
}

TEST_CASE("torch archive: untyped storages carry their type in the call") {
    const auto rebuilt = [](const std::string& dtype, const std::string& storage) {
        return pk::call("torch._utils._rebuild_tensor_v3",
                        {storage, pk::integer(0), pk::integers({2}), pk::integers({1}), pk::boolean(false),
                         pk::call("collections.OrderedDict", {}), pk::global(dtype)});
    };
    for (const char* type : {"UntypedStorage", "storage.UntypedStorage"}) {
        const Archive archive(torch_archive(with_tensor(rebuilt("torch.uint16", pk::storage(type, "k", 4))),
                                            {{"k", "\x01\x02\x03\x04"}}));
        CHECK(archive.root().tensor("t").to_integers() == Integers{0x201, 0x403});
    }
    const Archive eight(torch_archive(
        with_tensor(rebuilt("torch.float8_e4m3fn", pk::storage("UntypedStorage", "k", 2))), {{"k", "\x38\xc0"}}));
    CHECK(eight.root().tensor("t").to_doubles() == Reals{1, -2});
    check_refused(
        "unknown dtype",
        torch_archive(with_tensor(rebuilt("torch.quint8", pk::storage("UntypedStorage", "k", 2))), {{"k", "ab"}}),
        "a type that mlff does not read");
    check_refused(
        "no dtype",
        torch_archive(with_tensor(pk::tensor(pk::storage("UntypedStorage", "k", 2), {2}, {1})), {{"k", "ab"}}),
        "a type that mlff does not read");
}

TEST_CASE("torch archive: the device a tensor was saved from does not matter") {
    for (const char* location : {"cpu", "cuda:0", "cuda:7", "mps", "meta", ""}) {
        const Archive archive(torch_archive(
            with_tensor(pk::tensor(pk::storage("FloatStorage", "0", 6, location), {6}, {1})), {{"0", kSix}}));
        CHECK(archive.root().tensor("t").to_doubles() == Reals{0, 1, 2, 3, 4, 5});
    }
}

TEST_CASE("torch archive: folder names, deflated storages and other members") {
    const std::string data = pk::document(with_tensor(pk::tensor(kSixStorage, {6}, {1})));
    for (const char* folder : {"archive", "my model.v2", "x", "a-b_c"}) {
        const std::string top = folder;
        const Archive archive(make_zip({{.name = top + "/data/0", .contents = kSix, .is_deflated = true},
                                        {.name = top + "/version", .contents = "3\n"},
                                        {.name = top + "/.data/serialization_id", .contents = "0123"},
                                        {.name = top + "/byteorder", .contents = "little"},
                                        {.name = top + "/data.pkl", .contents = data, .is_deflated = true}}));
        CHECK(archive.root().tensor("t").to_doubles() == Reals{0, 1, 2, 3, 4, 5});
    }
}

TEST_CASE("torch archive: big-endian") {
    std::string swapped;
    for (size_t i = 0; i < kSix.size(); i += 4)
        swapped += std::string(kSix.rend() - static_cast<ptrdiff_t>(i) - 4, kSix.rend() - static_cast<ptrdiff_t>(i));
    auto members = torch_members(pk::document(with_tensor(pk::tensor(kSixStorage, {6}, {1}))), {{"0", swapped}});
    members.push_back({.name = "archive/byteorder", .contents = "big"});
    CHECK(Archive(make_zip(members)).root().tensor("t").to_doubles() == Reals{0, 1, 2, 3, 4, 5});
    members.back().contents = "middle";
    check_refused("another byte order", make_zip(members), "neither 'little' nor 'big'");
}

TEST_CASE("torch archive: tensors that cannot be are refused") {
    const auto check = [](const char* what, const std::string& tensor, const std::string& words,
                          Status status = Status::format) {
        check_refused(what, torch_archive(with_tensor(tensor), {{"0", kSix}}), words, status);
    };
    const auto rebuild = [](const std::string& storage) { return pk::tensor(storage, {6}, {1}); };
    check("missing storage", rebuild(pk::storage("FloatStorage", "9", 6)), "storage '9', which is not in the file");
    check("storage of another size", rebuild(pk::storage("FloatStorage", "0", 7)), "expects 7 elements");
    check("storage of another type", rebuild(pk::storage("DoubleStorage", "0", 6)),
          "expects 6 elements of 8 bytes in storage '0', which has 24");
    check("quantised storage", rebuild(pk::storage("QInt8Storage", "0", 24)),
          "torch.QInt8Storage, which mlff does not read", Status::unsupported);
    check("beyond its storage", pk::tensor(kSixStorage, {7}, {1}), "reaches outside its storage");
    check("negative stride", pk::tensor(kSixStorage, {2}, {-1}, 5), "reaches outside its storage");
    check("overflowing shape", pk::tensor(kSixStorage, {INT64_MAX, INT64_MAX}, {0, 0}), "reaches outside its storage");
    check("shape of text",
          pk::call("torch._utils._rebuild_tensor_v2",
                   {kSixStorage, pk::integer(0), pk::tuple({pk::text("6")}), pk::integers({1})}),
          "malformed shape");
    check("shape that is none",
          pk::call("torch._utils._rebuild_tensor_v2", {kSixStorage, pk::integer(0), pk::none(), pk::integers({1})}),
          "malformed shape");
    check("too few arguments", pk::call("torch._utils._rebuild_tensor_v2", {kSixStorage}),
          "lacks some of its description");
    check("no storage",
          pk::call("torch._utils._rebuild_tensor_v2", {pk::none(), pk::integer(0), pk::integers({}), pk::integers({})}),
          "malformed storage");
    check("persistent id of another kind", rebuild(pk::tuple({pk::text("module"), pk::none()}) + "Q"),
          "malformed storage");
    check("parameter without a tensor", pk::parameter(pk::integer(1)), "a parameter without a tensor");
    check("parameter of nothing", pk::call("torch._utils._rebuild_parameter", {}), "a parameter without a tensor");
    check("parameter of a parameter", pk::parameter(pk::parameter(rebuild(kSixStorage))), "a parameter of a parameter");
    check("sparse tensor", pk::call("torch._utils._rebuild_sparse_tensor", {}), "of a kind mlff does not read",
          Status::unsupported);
    std::string chain = rebuild(kSixStorage);
    for (int i = 0; i < 1000; ++i)
        chain = "ctorch._utils\n_rebuild_parameter" + std::string(i % 2 ? "" : "_with_state") + "\n" + chain + "\x85R";
    check("a long chain of parameters", chain, "a parameter of a parameter");
}

TEST_CASE("torch archive: plain attributes") {
    CHECK(attribute_of(pk::integer(-5)) == -5);
    CHECK(attribute_of(pk::real(0.1)) == 0.1);
    CHECK(attribute_of(pk::boolean(true)) == true);
    CHECK(attribute_of(pk::text("Gr\xc3\xb6\xc3\x9f"
                                "e")) ==
          "Gr\xc3\xb6\xc3\x9f"
          "e");
    CHECK(attribute_of(pk::list({pk::integer(1), pk::tuple({pk::text("a")})})) == Json::parse(R"([1, ["a"]])"));
    CHECK(attribute_of(pk::dict({{"k", pk::none()}})) == Json{{"k", nullptr}});
    CHECK(attribute_of("}(" + pk::integer(1) + pk::text("one") + "u") == Json::parse(R"({"entries": [1, "one"]})"));
    CHECK(attribute_of(pk::real(std::bit_cast<double>(uint64_t{0x7ff8} << 48))) == Json{{"real", "nan"}});
    CHECK(attribute_of(pk::real(HUGE_VAL)) == Json{{"real", "inf"}});
    CHECK(attribute_of(pk::real(-HUGE_VAL)) == Json{{"real", "-inf"}});
    CHECK(attribute_of(pk::global("torch.nn.functional.silu")) == Json{{"function", "torch.nn.functional.silu"}});
    CHECK(attribute_of(pk::call("__builtin__.getattr", {pk::global("torch._C._VariableFunctionsClass"),
                                                        pk::text("tanh")})) == Json{{"function", "torch.tanh"}});
    CHECK(attribute_of(pk::bytes("\x80\x81")) == Json{{"bytes", 2}});
    CHECK(attribute_of(pk::object("a.C", {pk::integer(1)})) == Json::parse(R"({"class": "a.C", "arguments": [1]})"));
    CHECK(attribute_of(pk::build(pk::object("a.C"), pk::dict({{"k", pk::integer(2)}}))) ==
          Json::parse(R"({"class": "a.C", "state": {"k": 2}})"));
    const auto irrep = [](int64_t mul, int64_t l, int64_t p) {
        return pk::object("e3nn.o3._irreps._MulIr",
                          {pk::tuple({pk::integer(mul), pk::object("e3nn.o3._irreps.Irrep",
                                                                   {pk::tuple({pk::integer(l), pk::integer(p)})})})});
    };
    CHECK(attribute_of(pk::object("e3nn.o3._irreps.Irreps", {pk::tuple({irrep(8, 0, 1), irrep(16, 1, -1)})})) ==
          "8x0e+16x1o");
    CHECK(attribute_of(pk::object("e3nn.o3._irreps.Irreps", {pk::tuple({})})) == "");
    check_refused("broken irreps",
                  torch_archive(with_attribute(pk::object("e3nn.o3._irreps.Irreps", {pk::tuple({pk::integer(1)})}))),
                  "malformed irreps");
    // What is shared is the same each time.
    const std::string shared_irreps =
        pk::object("e3nn.o3._irreps.Irreps", {pk::tuple({irrep(8, 0, 1), irrep(16, 1, -1)})});
    CHECK(attribute_of("](" + shared_irreps + pk::put(1) + pk::get(1) + "e") ==
          Json::parse(R"(["8x0e+16x1o", "8x0e+16x1o"])"));
    CHECK(attribute_of("](" + pk::list({pk::integer(1)}) + pk::put(1) + pk::get(1) + "e") == Json::parse("[[1], [1]]"));
    const auto dtype = pk::call("numpy.dtype", {pk::text("i8"), pk::boolean(false), pk::boolean(true)});
    CHECK(attribute_of(pk::call("numpy.core.multiarray.scalar", {dtype, pk::bytes(little_endian(42, 8))})) == 42);
    CHECK(attribute_of(pk::call("numpy._core.multiarray.scalar", {dtype, pk::bytes(little_endian(42, 8))})) == 42);
    check_refused("short numpy number",
                  torch_archive(with_attribute(pk::call("numpy.core.multiarray.scalar", {dtype, pk::bytes("1234")}))),
                  "reaches outside");
    const auto array = [&](bool fortran) {
        return pk::build(pk::call("numpy.core.multiarray._reconstruct", {}),
                         pk::tuple({pk::integer(1), pk::integers({2, 2}), dtype, pk::boolean(fortran),
                                    pk::bytes(little_endian(1, 8) + little_endian(2, 8) + little_endian(3, 8) +
                                              little_endian(4, 8))}));
    };
    CHECK(attribute_of(array(false)) == Json::parse(R"({"array": [1, 2, 3, 4], "shape": [2, 2]})"));
    CHECK(attribute_of(array(true)) == Json::parse(R"({"array": [1, 3, 2, 4], "shape": [2, 2]})"));
}

TEST_CASE("torch archive: trees that cannot be are refused") {
    const auto check = [](const char* what, const std::string& value, const std::string& words) {
        check_refused(what, torch_archive(value, {{"0", kSix}}), words);
    };
    const std::string tensor = pk::tensor(kSixStorage, {6}, {1});
    check("two tensors of one name", pk::module("a.M", {.parameters = {{"t", tensor}}, .buffers = {{"t", tensor}}}),
          "two members called 't'");
    check("a dot in a name", pk::module("a.M", {.buffers = {{"a.b", tensor}}}), "a member called 'a.b'");
    check("no name", pk::module("a.M", {.children = {{"", pk::module("a.N", {})}}}), "a member called ''");
    check("name that is not UTF-8", pk::module("a.M", {.buffers = {{"\xff", tensor}}}), "name is not UTF-8 text");
    check("a very long name", pk::module("a.M", {.buffers = {{std::string(5000, 'x'), tensor}}}), "too long");
    check("text that is not UTF-8", with_attribute(pk::text("\xc0\x80")), "not UTF-8 text");
    check("class that is not UTF-8", with_attribute(pk::object("a.\xff")), "not UTF-8 text");
    check("function that is not UTF-8", with_attribute(pk::global("a.\xff")), "not UTF-8 text");
    check("key that is a number",
          pk::build(pk::object("a.M"), "}(" + pk::text("_modules") + "}" + pk::text("_parameters") + "}K\1K\2u"),
          "not UTF-8 text");
    check("list in itself", with_attribute("]q\1h\1a"), "nested more than 100 levels");
    check("module in itself",
          pk::object("a.M") + "q\1" + pk::dict({{"_parameters", "}"}, {"_modules", pk::dict({{"me", pk::get(1)}})}}) +
              "b",
          "nested more than 100 levels");
    std::string deep = pk::integer(1);
    for (int i = 0; i < 200; ++i) deep = pk::list({deep});
    check("deep list", with_attribute(deep), "nested more than 100 levels");
    std::string doubling = "]";  // 2^40 values in 40 steps
    for (int i = 1; i <= 40; ++i) doubling = "](" + doubling + pk::put(i) + pk::get(i) + "e";
    check("a list that doubles", with_attribute(doubling), "unfolds to more than");
}

TEST_CASE("torch archive: what holds no module says what to save instead") {
    const std::string weights = pk::dict({{"linear.weight", pk::tensor(kSixStorage, {6}, {1})}});
    const std::string message = error_of(torch_archive(weights, {{"0", kSix}}), Status::unsupported);
    CHECK(message.find("bare state dict") != std::string::npos);
    CHECK(message.find("torch.save(model, 'X.model')") != std::string::npos);
    check_refused("checkpoint", torch_archive(pk::dict({{"model", weights}, {"optimizer", pk::dict({})}})),
                  "training checkpoint", Status::unsupported);
    check_refused("tensor", torch_archive(pk::tensor(kSixStorage, {6}, {1}), {{"0", kSix}}),
                  "object of class torch._utils._rebuild_tensor_v2", Status::unsupported);
    check_refused("number", torch_archive(pk::integer(1)), "holds plain data", Status::unsupported);
    check_refused("program", torch_archive(pk::call("os.system", {pk::text("true")})), "object of class os.system",
                  Status::unsupported);
    check_refused("no data.pkl", make_zip({{.name = "archive/version", .contents = "3"}}), "without data.pkl");
    check_refused("data.pkl deeper down", make_zip({{.name = "a/b/data.pkl", .contents = "N."}}), "without data.pkl");
    check_refused("broken pickle", make_zip(torch_members("\x80\x02}")), "m.model (archive/data.pkl): damaged pickle");
}

TEST_CASE("torch archive: TorchScript tells parameters and activations in its source") {
    const std::string type = "__torch__.e3nn.math._normalize_activation.___torch_mangle_7.normalize2mom";
    const std::string tensor = pk::tensor(kSixStorage, {6}, {1});
    const std::string irreps = pk::tuple(
        {pk::tuple({pk::integer(8), pk::integers({0, 1})}), pk::tuple({pk::integer(4), pk::integers({1, -1})})});
    auto members = torch_members(
        pk::document(pk::build(pk::object(type), pk::dict({{"cst", pk::real(1.5)},
                                                           {"w", tensor},
                                                           {"b", tensor},
                                                           {"none", pk::none()},
                                                           {"irreps_in", irreps},
                                                           {"sizes", pk::call("torch.jit._pickle.build_intlist",
                                                                              {pk::list({pk::integer(3)})})}}))),
        {{"0", kSix}});
    members.push_back({.name = "archive/code/__torch__/e3nn/math/_normalize_activation/___torch_mangle_7.py",
                       .contents =
                           "class other(Module):\n  __parameters__ = [\"b\", ]\n  torch.tanh(x)\n"
                           "class normalize2mom(Module):\n  __parameters__ = [\"w\", ]\n  __buffers__ = [\"b\", ]\n"
                           "  def forward(self):\n    return torch.silu(x)\n"
                           "class last(Module):\n  __parameters__ = [\"b\", ]\n",
                       .is_deflated = true});
    const Archive archive(make_zip(members));
    CHECK(archive.file.container == "TorchScript archive");
    CHECK(archive.root().class_path == "e3nn.math._normalize_activation.normalize2mom");
    CHECK(archive.root().tensor("w").is_parameter);
    CHECK(!archive.root().tensor("b").is_parameter);
    CHECK(archive.root().attribute("cst") == 1.5);
    CHECK(Json(archive.root().attribute("f")) == Json{{"function", "torch.nn.functional.silu"}});
    CHECK(archive.root().attribute("irreps_in") == "8x0e+4x1o");
    CHECK(Json(archive.root().attribute("sizes")) == Json{3});
    CHECK(archive.root().find_attribute("none") == nullptr);
}

TEST_CASE("torch archive: archives inside the archive give their buffers") {
    const std::string inner = make_zip(torch_members(
        pk::document(pk::build(pk::object("__torch__.Generated"),
                               pk::dict({{"_w3j_1_1_0", pk::tensor(pk::storage("FloatStorage", "0", 2), {2}, {1})}}))),
        {{"0", floats({3, 4})}}));
    const auto outer = [](const std::string& blob) {
        return torch_archive(
            pk::module("e3nn.TensorProduct",
                       {.attributes = {{"__codegen__", pk::dict({{"_compiled_main_left_right", pk::bytes(blob)}})}}}));
    };
    const Archive archive(outer(inner));
    CHECK(archive.root().tensor("_compiled_main_left_right._w3j_1_1_0").to_doubles() == Reals{3, 4});
    CHECK(archive.root().attributes.empty());
    check_refused("no archive inside", outer("hello"), "m.model (generated code): damaged zip archive");
    // Nested again and again: only the first levels are opened.
    std::string nested = inner;
    for (int i = 0; i < 5; ++i) nested = outer(nested);
    CHECK(Archive(nested).root().children.empty());
}

TEST_CASE("torch archive: every golden") {
    REQUIRE(!goldens().empty());
    MESSAGE("goldens: " << names_of_goldens());
    for (const auto& [name, golden] : goldens()) {
        CAPTURE_BINDING(name);
        if (golden.container() == "state_dict") {
            check_refused(name, read_bytes(golden.model_path), "bare state dict", Status::unsupported);
            continue;
        }
        const ModuleFile file = open_module_file(golden.model_path);
        const bool is_script = golden.container() == "compiled" || golden.container().substr(0, 6) == "lammps";
        CHECK(file.container == (is_script ? "TorchScript archive" : "torch module"));
        int64_t parameters = 0;
        std::set<std::string> activations;
        bool has_w3j = false, all_finite = true, all_irreps_are_text = true;
        for_each_module(file.root, "", [&](const Module& module, const std::string& path) {
            CHECK((!module.class_path.empty() || path.empty()));
            CHECK(module.class_path.find("___torch_mangle_") == std::string::npos);
            for (const auto& [tensor_name, tensor] : module.tensors) {
                parameters += tensor.is_parameter ? tensor.element_count() : 0;
                for (double value : tensor.to_doubles()) all_finite &= std::abs(value) < 1e30;
                has_w3j |=
                    tensor_name.substr(0, 5) == "_w3j_" && path.find("_compiled_main_left_right") != std::string::npos;
            }
            for (const auto& [key, value] : module.attributes.object())
                if (key == "irreps_in" || key == "irreps_out") all_irreps_are_text &= value.is_string();
            if (module.class_name() == "normalize2mom") activations.insert(module.attribute("f")["function"].text());
        });
        CHECK(parameters > 100);
        CHECK(all_finite);
        CHECK(all_irreps_are_text);
        CHECK(activations.count("torch.nn.functional.silu") == 1);
        const bool needs_w3j =
            golden.facts["architecture"]["hidden"].get<std::string>().find("x1") != std::string::npos;
        if (golden.container() == "module" && needs_w3j && golden.facts["architecture"]["num_interactions"] > 1)
            CHECK(has_w3j);
    }
}

TEST_CASE("torch archive: a model saved on a GPU") {
    const Golden* golden = find_golden("p04_density_agnesi_zbl");
    if (!golden) return;
    CHECK(golden->facts["storage_location_tag"] == "cuda:0");
    CHECK(open_module_file(golden->model_path).root.class_name() == "ScaleShiftMACE");
}
