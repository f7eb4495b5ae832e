// SPDX-License-Identifier: MIT
// Model files made to break a reader, each through a real file and the one function that opens model files.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <ctime>
#include <functional>
#include <random>

#include "core/error.h"
#include "formats/module_tree.h"
#include "formats/zip.h"
#include "mace/weights/description.h"
#include "model_files.h"
#include "pickle_writer.h"

using namespace mlff;
using namespace mlff::test;
using Json = nlohmann::json;
using namespace std::string_literals;
namespace pk = mlff::test::pickle;

namespace {

struct HostileFile {
    std::string name;
    std::string bytes;
    Status status;
    std::string words;  // expected in the message
};

const std::string kFloats = floats({1, 2, 3, 4});
const std::string kTensor = pk::tensor(pk::storage("FloatStorage", "0", 4), {4}, {1});

std::string repeated(const std::string& text, int count) {
    std::string all;
    all.reserve(text.size() * static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) all += text;
    return all;
}

std::string archive_with(const std::string& attribute) {
    return torch_archive(pk::module("a.M", {.buffers = {{"t", kTensor}}, .attributes = {{"x", attribute}}}),
                         {{"0", kFloats}});
}
std::string archive_with_tensor(const std::string& tensor) {
    return torch_archive(pk::module("a.M", {.buffers = {{"t", tensor}}}), {{"0", kFloats}});
}
std::string archive_of_pickle(const std::string& data_pkl, bool is_deflated = false) {
    auto members = torch_members(data_pkl);
    members[0].is_deflated = is_deflated;
    return make_zip(members);
}
std::string changed_archive(const std::function<void(ZipMember&)>& change, const ZipEnd& end = {}) {
    auto members = torch_members(pk::document(pk::module("a.M", {.buffers = {{"t", kTensor}}})), {{"0", kFloats}});
    change(members[1]);
    return make_zip(members, end);
}
std::string safetensors(const std::string& header, const std::string& data = {}) {
    return little_endian(header.size(), 8) + header + data;
}
std::string container(const std::string& tree) {
    return safetensors(
        Json{{"__metadata__", {{"format", "mlff"}, {"mlff_layout", "1"}, {"mlff_module", tree}}}}.dump());
}

std::vector<HostileFile> not_models() {
    return {
        {"empty", "", Status::format, "the file is empty"},
        {"one byte", "P", Status::format, "neither a torch archive"},
        {"text", "hello, this is no model\n", Status::format, "neither a torch archive"},
        {"zeros", std::string(4096, '\0'), Status::format, "neither a torch archive"},
        {"HDF5", "\x89HDF\r\n\x1a\n" + std::string(100, '\0'), Status::format, "neither a torch archive"},
        {"LFS pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12\n", Status::format,
         "git lfs pull"},
        {"torch before 1.6", "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", Status::unsupported,
         "before version 1.6"},
        {"bare pickle", pk::document(pk::module("a.M", {})), Status::unsupported, "a bare pickle"},
        {"safetensors of others", safetensors("{\"__metadata__\":{\"format\":\"pt\"}}"), Status::unsupported,
         "mlff did not write"},
        {"zip of something else", make_zip({{.name = "word/document.xml", .contents = "<xml/>"}}), Status::format,
         "without data.pkl"},
        {"zip of nothing", make_zip({}), Status::format, "without data.pkl"},
        {"state dict", torch_archive(pk::dict({{"w", kTensor}}), {{"0", kFloats}}), Status::unsupported,
         "save the whole model"},
        {"checkpoint", torch_archive(pk::dict({{"optimizer", pk::dict({})}})), Status::unsupported,
         "training checkpoint"},
        {"a call of os.system", torch_archive(pk::call("os.system", {pk::text("touch hostile")})), Status::unsupported,
         "object of class os.system"},
        {"escape sequences for a terminal", torch_archive(pk::object("\x1b[2J\x1b]0;title\x07.C")), Status::unsupported,
         "object of class ?[2J?]0;title?.C"},
        {"a class name of a megabyte", torch_archive(pk::object("a." + std::string(1 << 20, 'x'))), Status::unsupported,
         "expected a saved torch.nn.Module"},
    };
}

std::vector<HostileFile> broken_archives() {
    const std::string good = changed_archive([](ZipMember&) {});
    return {
        {"zip cut in half", good.substr(0, good.size() / 2), Status::format, "no end-of-directory record"},
        {"zip with bytes after it", good + "x", Status::format, "no end-of-directory record"},
        {"zip that is a header only", "PK\3\4", Status::format, "no end-of-directory record"},
        {"wrong CRC", changed_archive([](ZipMember& m) { m.crc = 7; }), Status::format, "do not match their CRC"},
        {"encrypted", changed_archive([](ZipMember& m) { m.flags = 1; }), Status::format, "is encrypted"},
        {"unknown compression", changed_archive([](ZipMember& m) { m.method = 93; }), Status::format,
         "compression method 93"},
        {"member outside the file", changed_archive([](ZipMember& m) { m.size = m.stored_size = 1 << 30; }),
         Status::format, "the file ends earlier"},
        {"header outside the file", changed_archive([](ZipMember& m) { m.header_offset = 1 << 30; }), Status::format,
         "no local header"},
        {"overlapping members", changed_archive([](ZipMember& m) { m.size = m.stored_size = 60; }), Status::format,
         "overlaps"},
        {"two members of one name", changed_archive([](ZipMember& m) { m.name = "archive/data.pkl"; }), Status::format,
         "two entries"},
        {"two names of one member", changed_archive([](ZipMember& m) { m.local_name = "archive/data/1"; }),
         Status::format, "a different name"},
        {"a directory of a million", changed_archive([](ZipMember&) {}, {.is_zip64 = true, .count = 1'000'000}),
         Status::format, "claims 1000000 entries"},
        {"a directory elsewhere", changed_archive([](ZipMember&) {}, {.directory_offset = 1}), Status::format,
         "damaged zip archive"},
        {"zip64 record elsewhere", changed_archive([](ZipMember&) {}, {.is_zip64 = true, .zip64_offset = 5}),
         Status::format, "no zip64 record"},
        {"second part of an archive", changed_archive([](ZipMember&) {}, {.disk = 1}), Status::format, "multi-part"},
        {"broken deflate stream", changed_archive([](ZipMember& m) { m.is_deflated = true, m.data = "\xff\xff"; }),
         Status::format, "does not inflate"},
        {"inflating to gigabytes", changed_archive([](ZipMember& m) { m.is_deflated = true, m.size = 3u << 30; }),
         Status::format, "would inflate"},
        {"another byte order", make_zip([] {
             auto members = torch_members(pk::document(pk::module("a.M", {})));
             members.push_back({.name = "archive/byteorder", .contents = "pdp"});
             return members;
         }()),
         Status::format, "byte order"},
    };
}

std::vector<HostileFile> broken_pickles() {
    return {
        {"empty pickle", archive_of_pickle(""), Status::format, "damaged pickle at byte 0"},
        {"pickle cut off", archive_of_pickle("\x80\x02}q"), Status::format, "damaged pickle at byte 3"},
        {"pickle without a value", archive_of_pickle("\x80\x02."), Status::format, "ends with 0 values"},
        {"protocol 0", archive_of_pickle("(dp0\n."), Status::format, "instruction 0x64"},
        {"protocol 9", archive_of_pickle("\x80\x09N."), Status::format, "pickle protocol 9"},
        {"unknown instruction", archive_of_pickle("\x80\x02\xfe."), Status::format, "at byte 2: instruction 0xfe"},
        {"empty memo", archive_of_pickle("\x80\x02h\x05."), Status::format, "memo slot 5 is empty"},
        {"text of 4 gigabytes", archive_of_pickle("\x80\x02X\xff\xff\xff\xff."), Status::format,
         "runs past the end of the pickle"},
        {"a million marks", archive_of_pickle(std::string(1'000'000, '(') + "."), Status::format, "ends with 0 values"},
        {"a million tuples around nothing", archive_of_pickle("N" + std::string(1'000'000, '\x85') + "."),
         Status::unsupported, "plain data"},
        {"one text encoded again and again",
         archive_of_pickle(pk::text(std::string(50'000, 'x')) +
                           "q\0"
                           "0"s +
                           repeated(pk::global("_codecs.encode") + "h\0Nq\1"
                                                                   "0h\0\x86R0"s,
                                    5000) +
                           "N."),
         Status::format, "copies the same data"},
        {"fifteen megabytes of lists from a few kilobytes", archive_of_pickle(std::string(15 << 20, ']') + ".", true),
         Status::format, "values"},
        {"fifteen megabytes of nothing from a few kilobytes", archive_of_pickle(repeated("N0", 7 << 20) + "N.", true),
         Status::unsupported, "plain data"},
    };
}

std::vector<HostileFile> broken_trees() {
    const std::string two_calls = "ctorch._utils\n_rebuild_parameter\nctorch._utils\n_rebuild_parameter_with_state\n";
    const std::string parameters = repeated(two_calls, 10'000) + kTensor + repeated("\x85R", 20'000);
    std::string deep_modules = pk::module("a.M", {});
    for (int i = 0; i < 300; ++i) deep_modules = pk::module("a.M", {.children = {{"m", deep_modules}}});
    return {
        {"missing storage", archive_with_tensor(pk::tensor(pk::storage("FloatStorage", "7", 4), {4}, {1})),
         Status::format, "not in the file"},
        {"storage that climbs out",
         archive_with_tensor(pk::tensor(pk::storage("FloatStorage", "../../etc/passwd", 4), {4}, {1})), Status::format,
         "not in the file"},
        {"storage of another size", archive_with_tensor(pk::tensor(pk::storage("FloatStorage", "0", 5), {4}, {1})),
         Status::format, "expects 5 elements"},
        {"storage of a negative size", archive_with_tensor(pk::tensor(pk::storage("FloatStorage", "0", -1), {4}, {1})),
         Status::format, "expects -1 elements"},
        {"unknown storage", archive_with_tensor(pk::tensor(pk::storage("EvilStorage", "0", 4), {4}, {1})),
         Status::unsupported, "torch.EvilStorage"},
        {"tensor beyond its storage", archive_with_tensor(pk::tensor(pk::storage("FloatStorage", "0", 4), {5}, {1})),
         Status::format, "reaches outside"},
        {"tensor before its storage",
         archive_with_tensor(pk::tensor(pk::storage("FloatStorage", "0", 4), {2}, {1}, -1)), Status::format,
         "reaches outside"},
        {"tensor with negative strides",
         archive_with_tensor(pk::tensor(pk::storage("FloatStorage", "0", 4), {2}, {-1}, 2)), Status::format,
         "reaches outside"},
        {"tensor of 2^126 elements",
         archive_with_tensor(pk::tensor(pk::storage("FloatStorage", "0", 4), {INT64_MAX, INT64_MAX}, {0, 0})),
         Status::format, "reaches outside"},
        {"one number repeated 2^40 times",
         archive_with_tensor(pk::tensor(pk::storage("FloatStorage", "0", 4), {int64_t{1} << 40}, {0})), Status::format,
         "reaches outside"},
        {"tensor of a thousand dimensions",
         archive_with_tensor(pk::tensor(pk::storage("FloatStorage", "0", 4), std::vector<int64_t>(1000, 1),
                                        std::vector<int64_t>(1000, 1))),
         Status::format, "1000 dimensions"},
        {"tensor without arguments", archive_with_tensor(pk::call("torch._utils._rebuild_tensor_v2", {})),
         Status::format, "lacks some of its description"},
        {"parameter of twenty thousand parameters", archive_with_tensor(parameters), Status::format,
         "parameter of a parameter"},
        {"two tensors of one name",
         torch_archive(pk::module("a.M", {.parameters = {{"t", kTensor}}, .buffers = {{"t", kTensor}}}),
                       {{"0", kFloats}}),
         Status::format, "two members called 't'"},
        {"tensor with a dotted name",
         torch_archive(pk::module("a.M", {.buffers = {{"a.b", kTensor}}}), {{"0", kFloats}}), Status::format,
         "member called 'a.b'"},
        {"name that is not UTF-8", torch_archive(pk::module("a.M", {.buffers = {{"\xfe", kTensor}}}), {{"0", kFloats}}),
         Status::format, "not UTF-8 text"},
        {"name of a megabyte",
         torch_archive(pk::module("a.M", {.buffers = {{std::string(1 << 20, 'x'), kTensor}}}), {{"0", kFloats}}),
         Status::format, "too long"},
        {"text that is not UTF-8", archive_with(pk::text("\xed\xa0\x80")), Status::format, "not UTF-8 text"},
        {"list in itself", archive_with("]q\1h\1a"), Status::format, "levels deep"},
        {"module in itself",
         torch_archive(pk::object("a.M") + "q\1" +
                       pk::dict({{"_parameters", "}"}, {"_modules", pk::dict({{"m", pk::get(1)}})}}) + "b"),
         Status::format, "levels deep"},
        {"three hundred modules in each other", torch_archive(deep_modules), Status::format, "levels deep"},
        {"malformed irreps", archive_with(pk::object("e3nn.o3._irreps.Irreps", {pk::tuple({pk::text("8x0e")})})),
         Status::format, "malformed irreps"},
        {"malformed numpy array", archive_with(pk::call("numpy.core.multiarray._reconstruct", {})), Status::format,
         "malformed numpy"},
        {"generated code that is none",
         torch_archive(pk::module("a.M", {.attributes = {{"__codegen__", pk::dict({{"f", pk::bytes("\x80")}})}}})),
         Status::format, "(generated code): damaged zip"},
    };
}

// Small files that would keep a careless reader busy for hours or fill its memory.
std::vector<HostileFile> bombs() {
    std::string doubling = "]";
    for (int i = 1; i <= 60; ++i) doubling = "](" + doubling + pk::put(i) + pk::get(i) + "e";
    const std::string junk = "}(" + repeated(pk::text("k") + "N", 200'000) + "u";
    const std::string hooks = pk::text("_forward_hooks") + "q\2"s + "0}("s + repeated("h\2N", 200'000) +
                              pk::text("_modules") + "}" + pk::text("_parameters") + "}" + "uq\3"s;
    // A tiny archive that unfolds to a million values, opened again and again.
    std::string unfolding = "]";
    for (int i = 1; i <= 19; ++i) unfolding = "](" + unfolding + pk::put(i) + pk::get(i) + "e";
    const std::string blob =
        pk::bytes(torch_archive(pk::build(pk::object("__torch__.G"), pk::dict({{"x", unfolding}}))));
    const std::string term =
        pk::object("a._MulIr", {pk::tuple({pk::integer(1), pk::object("a.Irrep", {pk::integers({0, 1})})})});
    std::string classes;
    for (int i = 0; i < 20'000; ++i)
        classes += pk::text("m" + std::to_string(i)) + pk::object("__torch__.a.C" + std::to_string(i)) + "}b";
    const std::string texts = "](" + pk::text(std::string(1 << 20, 'x')) + "q\1" + repeated("h\1", 100'000) + "e";
    std::vector<ZipMember> script =
        torch_members(pk::document(pk::build(pk::object("__torch__.a.C"), "}(" + classes + "u")));
    script.push_back({.name = "archive/code/__torch__/a.py",
                      .contents = repeated("class X(Module):\n  pass\n", 600'000),
                      .is_deflated = true});
    script.push_back({.name = "archive/code/pad", .contents = std::string(1 << 20, 'x')});
    return {
        {"list that doubles sixty times", archive_with(doubling), Status::format, "unfolds to more than"},
        {"a megabyte of text a hundred thousand times", archive_with(texts), Status::format, "unfolds to more than"},
        {"objects that share a large state",
         archive_with("](" + pk::build(pk::object("a.Irreps", {}), junk) + "q\1" + repeated("h\1", 200'000) + "e"),
         Status::format, "unfolds to more than"},
        {"modules that share their hooks",
         torch_archive(pk::text("_forward_hooks") + "0" + hooks + "0" +
                       pk::module("a.M", {.children =
                                              [] {
                                                  pk::Entries children;
                                                  for (int i = 0; i < 20'000; ++i)
                                                      children.emplace_back("m" + std::to_string(i),
                                                                            pk::object("a.N") + "h\3b");
                                                  return children;
                                              }()})),
         Status::format, "unfolds to more than"},
        {"irreps of a hundred thousand terms, again and again",
         archive_with("](" +
                      pk::object("e3nn.o3._irreps.Irreps", {"(" + term + "q\2" + repeated("h\2", 100'000) + "t"}) +
                      "q\1" + repeated("h\1", 100'000) + "e"),
         Status::format, "unfolds to more than"},
        {"generated code opened again and again",
         torch_archive(blob +
                       "q\x63"
                       "0" +
                       pk::module("a.M", {.attributes = {{"__codegen__",
                                                          "}(" + repeated(pk::text("f") + "h\x63", 10'000) + "u"}}})),
         Status::format, "unfolds to more than"},
        {"deflated source for twenty thousand classes", make_zip(script), Status::ok, ""},
    };
}

std::vector<HostileFile> broken_safetensors() {
    return {
        {"safetensors header that is no JSON", safetensors("{nonsense}"), Status::format, "malformed JSON"},
        {"safetensors header with a zero byte", safetensors("{}\0{}"s), Status::format, "malformed JSON"},
        {"safetensors nested deeply", safetensors("{\"a\":" + std::string(1'000'000, '[')), Status::format,
         "levels deep"},
        {"safetensors with a key twice", safetensors("{\"a\":1,\"a\":1}"), Status::format, "occurs twice"},
        {"safetensors with a long bad token", safetensors("{\"" + std::string(1 << 20, 'x')), Status::format,
         "malformed JSON"},
        {"safetensors with a gap", safetensors("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", "ab"),
         Status::format, "gap"},
        {"safetensors with huge offsets",
         safetensors("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,4611686018427387904]}}", "a"),
         Status::format, "malformed"},
        {"container of a later layout", safetensors("{\"__metadata__\":{\"format\":\"mlff\",\"mlff_layout\":\"9\"}}"),
         Status::unsupported, "later mlff"},
        {"container without a tree", safetensors("{\"__metadata__\":{\"format\":\"mlff\",\"mlff_layout\":\"1\"}}"),
         Status::format, "malformed JSON"},
        {"container with a deep tree", container(std::string(1'000'000, '[')), Status::format, "levels deep"},
        {"container with a malformed module", container("{\"class\":\"a\"}"), Status::format,
         "is not a valid module description"},
        {"container without its tensor",
         container(R"({"class":"a","attributes":{},"tensors":[["t","buffer"]],"children":[]})"), Status::format,
         "'t' is not among the tensors"},
    };
}

// Opens and describes; true if that succeeds, false after an Error. Anything else ends the test.
bool opens(const std::string& path) {
    try {
        mace::describe(open_module_file(path).root);
        return true;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

TEST_CASE("hostile files: every kind is refused quickly, with the path and the reason") {
    const TemporaryDirectory directory;
    size_t kinds = 0;
    for (const auto& family :
         {not_models(), broken_archives(), broken_pickles(), broken_trees(), bombs(), broken_safetensors()})
        for (const HostileFile& hostile : family) {
            CAPTURE(hostile.name);
            ++kinds;
            const std::string path = directory.file(std::to_string(kinds) + ".model");
            write_bytes(path, hostile.bytes);
            std::string message;
            Status status = Status::ok;
            const std::clock_t start = std::clock();
            try {
                open_module_file(path);
            } catch (const Error& error) {
                status = error.status();
                message = error.what();
            }
            const double seconds = static_cast<double>(std::clock() - start) /
                                   CLOCKS_PER_SEC;  // of this process, however busy the machine
            CAPTURE(message);
            CHECK(status == hostile.status);
            CHECK(seconds < (kIsSanitized ? 10.0 : 1.0));
            if (hostile.status != Status::ok) CHECK(message.find(path) == 0);
            CHECK(message.find(hostile.words) != std::string::npos);
            CHECK(message.size() < 1600);
            CHECK(message.find_first_of("\n\r\x1b\x07") == std::string::npos);
            std::filesystem::remove(path);
        }
    CHECK(kinds >= 80);
    CHECK(!std::filesystem::exists("hostile"));  // what one of them would have made
}

TEST_CASE("hostile files: paths that are no files") {
    const TemporaryDirectory directory;
    const std::string pipe = directory.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const std::string link = directory.file("link");
    std::filesystem::create_symlink(link, link);
    for (const std::string& path : {directory.file("missing"), directory.file(""), pipe, link, "/dev/zero"s, ""s,
                                    directory.file(std::string(300, 'x'))}) {
        CAPTURE(path);
        std::string message = "no error";
        try {
            open_module_file(path);
        } catch (const Error& error) {
            CHECK(error.status() == Status::file);
            message = error.what();
        }
        CHECK(message.find(path + ": ") == 0);
    }
}

TEST_CASE("hostile files: flipped bytes of a genuine model") {
    const Golden* smallest = nullptr;
    for (const auto& [name, golden] : goldens())
        if (golden.container() == "module" &&
            (!smallest || golden.facts["model_bytes"] < smallest->facts["model_bytes"]))
            smallest = &golden;
    REQUIRE(smallest);
    const std::string whole = read_bytes(smallest->model_path);
    const TemporaryDirectory directory;
    const std::string path = directory.file("flipped.model");
    std::mt19937_64 random(20240607);

    // In the file as it is: checksums catch what matters.
    int opened = 0;
    const int flipped_count = kIsSanitized ? 200 : 800;
    for (int i = 0; i < flipped_count; ++i) {
        std::string bytes = whole;
        const int flips = 1 + static_cast<int>(random() % 3);
        // Half of them at the end, where the directory is.
        const size_t tail = std::min<size_t>(bytes.size(), 12000);
        for (int k = 0; k < flips; ++k) {
            const size_t at = i % 2 ? random() % bytes.size() : bytes.size() - 1 - random() % tail;
            bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1 + random() % 255));
        }
        write_bytes(path, bytes);
        opened += opens(path);
    }
    MESSAGE(smallest->name << ": " << opened << " of " << flipped_count << " files with flipped bytes could be read");

    // In the pickle, with checksums that fit.
    const ZipArchive archive(as_bytes(whole), "golden");
    std::vector<ZipMember> members;
    for (const ZipEntry& entry : archive.entries()) {
        const auto contents = archive.read(entry);
        members.push_back(
            {.name = entry.name, .contents = {reinterpret_cast<const char*>(contents.data()), contents.size()}});
    }
    const auto data = std::find_if(members.begin(), members.end(),
                                   [](const ZipMember& m) { return m.name.find("/data.pkl") != std::string::npos; });
    REQUIRE(data != members.end());
    const std::string pickle = data->contents;
    opened = 0;
    const int changed_count = kIsSanitized ? 400 : 1500;
    for (int i = 0; i < changed_count; ++i) {
        data->contents = pickle;
        const size_t at = random() % pickle.size();
        data->contents[at] = static_cast<char>(random());
        if (i % 5 == 0) data->contents.erase(random() % pickle.size(), 1 + random() % 8);
        if (i % 5 == 1)
            data->contents.insert(random() % pickle.size(), pickle, random() % pickle.size(), 1 + random() % 40);
        write_bytes(path, make_zip(members));
        opened += opens(path);
    }
    MESSAGE(smallest->name << ": " << opened << " of " << changed_count
                           << " files with a changed pickle could be read");
}
