// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "formats/pickle.h"
#include "model_files.h"
#include "pickle_writer.h"

using namespace mlff;
using namespace mlff::test;
namespace pk = mlff::test::pickle;

namespace {

using namespace std::string_literals;
using Kind = PickleKind;

// Keeps the bytes that the graph is a view of.
class Read {
public:
    explicit Read(std::string bytes) : bytes_(std::move(bytes)), graph_(as_bytes(bytes_), "p") {}
    PickleValue operator*() const { return graph_.root(); }
    PickleValue root() const { return graph_.root(); }

private:
    std::string bytes_;
    Pickle graph_;
};

std::string error_of(const std::string& bytes) {
    try {
        const Pickle graph(as_bytes(bytes), "p");
    } catch (const Error& error) {
        CHECK(error.status() == Status::format);
        return error.what();
    }
    return {};
}

void check_refused(const std::string& what, const std::string& bytes, const std::string& words) {
    CAPTURE(what);
    const std::string message = error_of(bytes);
    CAPTURE(message);
    CHECK(message.find("p: damaged pickle at byte ") == 0);
    CHECK(message.find(words) != std::string::npos);
}

int64_t integer_of(const std::string& instruction) {
    const Read read(instruction + ".");
    REQUIRE(read.root().is(Kind::integer));
    CHECK(read.root().real() == static_cast<double>(read.root().integer()));
    return read.root().integer();
}

std::string text_of(const std::string& instruction, Kind kind) {
    const Read read(instruction + ".");
    REQUIRE(read.root().is(kind));
    return std::string(read.root().text());
}

}  // namespace

TEST_CASE("pickle: constants") {
    CHECK(Read("N.").root().is_none());
    CHECK(Read("\x88.").root().is(Kind::boolean));
    CHECK(Read("\x88.").root().boolean());
    CHECK(Read("\x89.").root().is(Kind::boolean));
    CHECK(!Read("\x89.").root().boolean());
    CHECK(Read(").").root().is(Kind::tuple));
    CHECK(Read(").").root().size() == 0);
}

TEST_CASE("pickle: whole numbers and their signs") {
    CHECK(integer_of("K\x00"s) == 0);
    CHECK(integer_of("K\xff") == 255);
    CHECK(integer_of("M\x34\x12") == 0x1234);
    CHECK(integer_of("M\xff\xff") == 65535);
    CHECK(integer_of("J\xff\xff\xff\xff") == -1);
    CHECK(integer_of("J\x00\x00\x00\x80"s) == INT32_MIN);
    CHECK(integer_of("J\xff\xff\xff\x7f") == INT32_MAX);
    CHECK(integer_of("\x8a\x00"s) == 0);
    CHECK(integer_of("\x8a\x01\x7f") == 127);
    CHECK(integer_of("\x8a\x01\x80") == -128);
    CHECK(integer_of("\x8a\x02\xff\x00"s) == 255);
    CHECK(integer_of("\x8a\x02\x00\xff"s) == -256);
    CHECK(integer_of("\x8a\x05\x00\x00\x00\x00\x01"s) == int64_t{1} << 32);
    CHECK(integer_of("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f") == INT64_MAX);
    CHECK(integer_of("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"s) == INT64_MIN);
    CHECK(integer_of("\x8b\x01\x00\x00\x00\xfe"s) == -2);
    CHECK(Read("\x8a\x09" + std::string(9, 'x') + ".").root().is(Kind::bytes));  // wider than any number we use
    for (const int64_t value :
         {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{-1}, int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
        CAPTURE(value);
        CHECK(integer_of(pk::integer(value)) == value);
    }
}

TEST_CASE("pickle: real numbers are big-endian") {
    CHECK(Read("G\x3f\xf8\x00\x00\x00\x00\x00\x00."s).root().real() == 1.5);
    CHECK(Read("G\xc0\x00\x00\x00\x00\x00\x00\x00."s).root().real() == -2.0);
    CHECK(Read("G\x7f\xf0\x00\x00\x00\x00\x00\x00."s).root().real() == HUGE_VAL);
    CHECK(Read("G\xff\xf0\x00\x00\x00\x00\x00\x00."s).root().real() == -HUGE_VAL);
    CHECK(std::isnan(Read("G\x7f\xf8\x00\x00\x00\x00\x00\x00."s).root().real()));
    CHECK(Read("G\x00\x00\x00\x00\x00\x00\x00\x01."s).root().real() == std::numeric_limits<double>::denorm_min());
    CHECK(std::signbit(Read("G\x80\x00\x00\x00\x00\x00\x00\x00."s).root().real()));
    CHECK(Read(pk::real(0.1) + ".").root().is(Kind::real));
    CHECK(Read(pk::real(0.1) + ".").root().real() == 0.1);
}

TEST_CASE("pickle: texts and bytes of every length field") {
    const std::string words = "na\xc3\xafve\0text"s;
    const std::string length = little_endian(words.size(), 8);
    CHECK(text_of("X" + length.substr(0, 4) + words, Kind::text) == words);
    CHECK(text_of("T" + length.substr(0, 4) + words, Kind::text) == words);
    CHECK(text_of("U" + length.substr(0, 1) + words, Kind::text) == words);
    CHECK(text_of("\x8c" + length.substr(0, 1) + words, Kind::text) == words);
    CHECK(text_of("\x8d" + length + words, Kind::text) == words);
    CHECK(text_of("B" + length.substr(0, 4) + words, Kind::bytes) == words);
    CHECK(text_of("C" + length.substr(0, 1) + words, Kind::bytes) == words);
    CHECK(text_of("\x8e" + length + words, Kind::bytes) == words);
    CHECK(text_of("\x96" + length + words, Kind::bytes) == words);
    CHECK(text_of("X" + std::string(4, '\0'), Kind::text) == "");
}

TEST_CASE("pickle: bytes written as latin1 text") {
    std::string every;
    for (int i = 0; i < 256; ++i) every.push_back(static_cast<char>(i));
    CHECK(text_of(pk::bytes(every), Kind::bytes) == every);
    CHECK(text_of(pk::bytes(""), Kind::bytes) == "");
    const auto encoded = [](const std::string& utf8) {
        return pk::call("_codecs.encode", {pk::text(utf8), pk::text("latin1")}) + ".";
    };
    check_refused("a letter beyond latin1", encoded("\xc4\x80"), "not encoded as latin1");
    check_refused("a lone continuation", encoded("\x80"), "not encoded as latin1");
    check_refused("a cut letter", encoded("\xc3"), "not encoded as latin1");
    check_refused("no continuation", encoded("\xc3x"), "not encoded as latin1");
}

TEST_CASE("pickle: containers") {
    const Read tuple(pk::document(pk::tuple({pk::integer(1), pk::text("two"), pk::none(), pk::boolean(true)})));
    REQUIRE((*tuple).is(Kind::tuple));
    REQUIRE((*tuple).size() == 4);
    CHECK((*tuple)[0].integer() == 1);
    CHECK((*tuple)[1].text() == "two");
    CHECK((*tuple)[2].is_none());
    CHECK((*tuple)[3].boolean());
    for (const auto& [instruction, size] : {std::pair("\x85", 1u), {"\x86", 2u}, {"\x87", 3u}}) {
        std::string bytes;
        for (unsigned i = 0; i < size; ++i) bytes += pk::integer(i);
        const Read read(bytes + instruction + ".");
        REQUIRE((*read).is(Kind::tuple));
        REQUIRE((*read).size() == size);
        for (unsigned i = 0; i < size; ++i) CHECK((*read)[i].integer() == i);
    }
    CHECK(Read("(t.").root().size() == 0);

    const Read list(
        "](K\x01K\x02"
        "eK\x03"
        "a.");
    REQUIRE((*list).is(Kind::list));
    REQUIRE((*list).size() == 3);
    CHECK((*list)[2].integer() == 3);

    const Read dict(
        pk::document(pk::dict({{"a", pk::integer(1)}, {"b", pk::integer(2)}}) + pk::text("c") + pk::integer(3) + "s"));
    REQUIRE((*dict).is(Kind::dict));
    CHECK((*dict).size() == 6);
    CHECK((*dict).get("a").integer() == 1);
    CHECK((*dict).get("c").integer() == 3);
    CHECK((*dict).has("b"));
    CHECK(!(*dict).has("d"));
    CHECK((*dict).get("d").is_none());
    CHECK((*list).get("a").is_none());

    CHECK(Read("\x8f(K\x01K\x02\x90.").root().is(Kind::set));
    CHECK(Read("\x8f(K\x01K\x02\x90.").root().size() == 2);
    CHECK(Read("(K\x01K\x02\x91.").root().is(Kind::set));
    CHECK(Read(pk::call("__builtin__.set", {pk::list({pk::integer(1)})}) + ".").root().is(Kind::set));
    CHECK(Read(pk::call("builtins.set", {pk::list({pk::integer(1)})}) + ".").root().size() == 1);
    CHECK(Read(pk::call("__builtin__.set", {}) + ".").root().size() == 0);
    const Read ordered(pk::call("collections.OrderedDict", {}) + pk::text("k") + pk::integer(7) + "s.");
    CHECK((*ordered).is(Kind::dict));
    CHECK((*ordered).get("k").integer() == 7);
}

TEST_CASE("pickle: stack and memo") {
    CHECK(Read("K\x01K\x02"
               "0.")
              .root()
              .integer() == 1);
    CHECK(Read("K\x01(K\x02K\x03"
               "1.")
              .root()
              .integer() == 1);
    const Read twice(
        "K\x07"
        "2\x86.");
    CHECK((*twice)[0].integer() == 7);
    CHECK((*twice)[0].id() == (*twice)[1].id());
    for (const std::string& bytes : {"]q\x05h\x05\x86."s, "]r\x05\0\0\0j\x05\0\0\0\x86."s, "]\x94h\0\x86."s,
                                     "Nq\0"
                                     "0]\x94h\x01\x86."s}) {
        const Read read(bytes);
        REQUIRE((*read).size() == 2);
        CHECK((*read)[0].is(Kind::list));
        CHECK((*read)[0].id() == (*read)[1].id());
    }
    CHECK(Read("\x95" + std::string(8, '\0') + "N.").root().is_none());  // FRAME
}

TEST_CASE("pickle: protocols 2 to 5") {
    for (int protocol = 2; protocol <= 5; ++protocol) CHECK(error_of(pk::document("N", protocol)) == "");
    for (const int protocol : {0, 1, 6, 255}) check_refused("protocol", pk::document("N", protocol), "expected 2 to 5");
}

TEST_CASE("pickle: globals, objects and persistent ids are records") {
    const Read object(
        pk::document(pk::build(pk::object("a.b.C", {pk::integer(1)}), pk::dict({{"k", pk::integer(2)}}))));
    REQUIRE((*object).is(Kind::object));
    CHECK((*object).class_name() == "a.b.C");
    CHECK((*object).callable().is_global("a.b.C"));
    CHECK((*object).arguments()[0].integer() == 1);
    CHECK((*object).state().get("k").integer() == 2);
    const Read keywords(pk::document(pk::global("a.C") + ")" + pk::dict({{"k", pk::integer(2)}}) + "\x92"));
    CHECK((*keywords).class_name() == "a.C");
    CHECK((*keywords).state().get("k").integer() == 2);
    const Read grown(pk::document(pk::object("a.List") + "(K\x01K\x02"
                                                         "e"));
    CHECK((*grown).size() == 2);
    const Read persistent(pk::document(pk::text("id") + "Q"));
    CHECK((*persistent).is(Kind::persistent));
    CHECK((*persistent).arguments().text() == "id");
    const Read nested_call(pk::document(pk::call("a.make", {}) + ")R"));
    CHECK((*nested_call).is(Kind::object));
    CHECK((*nested_call).class_name() == "");
    const Read same(pk::tuple({pk::global("a.C"), pk::global("a.C"), pk::text("a") + pk::text("C") + "\x93"}) + ".");
    CHECK((*same)[0].id() == (*same)[1].id());
    CHECK((*same)[0].id() == (*same)[2].id());
}

TEST_CASE("pickle: nothing that a pickle calls is run") {
    const TemporaryDirectory directory;
    const std::string victim = directory.file("victim");
    const std::string command = "touch " + victim;
    const std::string stack_global =
        pk::text("posix") + pk::text("system") + "\x93" + pk::tuple({pk::text(command)}) + "R";
    for (const std::string& bytes :
         {pk::call("os.system", {pk::text(command)}), stack_global, pk::call("builtins.eval", {pk::text(command)}),
          pk::build(pk::object("os.system", {pk::text(command)}), pk::text(command))}) {
        const Read read(pk::document(bytes, 4));
        CHECK((*read).is(Kind::object));
        CHECK((*read).arguments()[0].text() == command);
        CHECK(!std::filesystem::exists(victim));
    }
    CHECK(Read(pk::document(stack_global)).root().class_name() == "posix.system");
}

TEST_CASE("pickle: cycles") {
    const Read list("]q\0h\0a."s);
    REQUIRE((*list).size() == 1);
    CHECK((*list)[0].id() == (*list).id());
    const Read dict("}q\0"s + pk::text("me") + "h\0s."s);
    CHECK((*dict).get("me").id() == (*dict).id());
    const Read object(pk::object("a.C") + "q\0h\0b."s);
    CHECK((*object).state().id() == (*object).id());
}

TEST_CASE("pickle: a million levels") {
    const int levels = 1'000'000;
    std::string tuples = "N", lists;
    for (int i = 0; i < levels; ++i) tuples += '\x85', lists += ']';
    const Read deep(tuples + ".");
    PickleValue value = *deep;
    int depth = 0;
    for (; value.is(Kind::tuple); value = value[0]) ++depth;
    CHECK(depth == levels);
    CHECK(error_of(lists + std::string(levels - 1, 'a') + ".") == "");
    CHECK(error_of(std::string(levels, '(') + "N.") != "");
    CHECK(error_of(std::string(levels, '(') + std::string(levels, 't') + ".") == "");
}

TEST_CASE("pickle: bombs are refused at once") {
    const std::clock_t start = std::clock();
    const std::string long_text = pk::text(std::string(100'000, 'x'));
    std::string bytes = long_text +
                        "q\0"
                        "0"s +
                        pk::text("latin1") +
                        "q\1"
                        "0"s;
    for (int i = 0; i < 10'000; ++i) bytes += pk::global("_codecs.encode") + "h\0h\1\x86R0"s;
    check_refused("one text encoded again and again", bytes + "N.", "copies the same data too often");

    bytes = long_text +
            "q\0"
            "0"s;
    for (int i = 0; i < 10'000; ++i)
        bytes +=
            "h\0h\0\x93"
            "0"s;
    check_refused("a long name used again and again", bytes + "N.", "copies the same data too often");

    bytes = "](" + std::string(100'000, 'N') +
            "e\x85q\0"
            "0"s;
    for (int i = 0; i < 10'000; ++i) bytes += pk::global("builtins.set") + "h\0R0"s;
    check_refused("a list made a set again and again", bytes + "N.", "copies the same data too often");

    check_refused("more values than memory", std::string(5'000'000, ']') + ".", "more than 4000000 values");
    check_refused("a text longer than the file", "X\xff\xff\xff\x7fN.", "runs past the end of the pickle");
    check_refused("a text longer than anything", "\x8d" + std::string(8, '\xff') + "N.",
                  "runs past the end of the pickle");
    check_refused("a memo slot far away", "Nr\xff\xff\xff\xff.", "memo slot 4294967295");
    CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < (kIsSanitized ? 20 : 2));
}

TEST_CASE("pickle: programs that make no sense are refused") {
    check_refused("nothing", "", "ends in the middle");
    check_refused("no end", "N", "ends in the middle");
    check_refused("no value", ".", "ends with 0 values");
    check_refused("two values", "NN.", "ends with 2 values");
    check_refused("an open mark", "(N.", "expected one");
    check_refused("pop from nothing", "0.", "empty stack");
    check_refused("pop below a mark", "N(0.", "empty stack");
    check_refused("duplicate nothing", "2.", "empty stack");
    check_refused("tuple of nothing", "\x85.", "empty stack");
    check_refused("tuple without a mark", "Nt.", "a mark is missing");
    check_refused("append to a number", "K\1Na.", "not a list");
    check_refused("append to a tuple", ")Na.", "not a list");
    check_refused("items of a list", "](NNu.", "not a list");
    check_refused("a key without a value", "}(Nu.", "a key has no value");
    check_refused("call without a tuple", pk::global("a.f") + "NR.", "arguments of a call are not a tuple");
    check_refused("state of a number", "K\1Nb.", "state of something that has none");
    check_refused("state of the empty tuple", ")Nb.", "state of something that has none");
    check_refused("a set of a number", pk::call("builtins.set", {pk::integer(1)}) + ".", "not made from a list");
    check_refused("global of numbers", "K\1K\2\x93.", "name of a global is not text");
    check_refused("global without an end", "cos", "a name has no end");
    check_refused("empty memo", "h\7.", "memo slot 7 is empty");
    check_refused("empty long memo", "j\7\0\0\0."s, "memo slot 7 is empty");
    check_refused("memo of nothing", "q\7.", "empty stack");
}

TEST_CASE("pickle: instructions that torch does not write are named, with their place") {
    const std::string known =
        "\x80\x95.(012N\x88\x89JKM\x8a\x8bGX\x8c\x8dTUBC\x8e\x96)t\x85\x86\x87]}\x8f"
        "ae\x90su\x91"
        "c\x93R\x81\x92"
        "bQqr\x94hj";
    for (int opcode = 0; opcode < 256; ++opcode) {
        if (known.find(static_cast<char>(opcode)) != std::string::npos) continue;
        char hex[8];
        std::snprintf(hex, sizeof hex, "0x%x", static_cast<unsigned>(opcode));
        check_refused(hex, "NNN" + std::string(1, static_cast<char>(opcode)),
                      "at byte 3: instruction " + std::string(hex) + " is not supported");
    }
}

TEST_CASE("pickle: cut off at any byte") {
    const std::string module = pk::module(
        "a.M",
        {.parameters = {{"w", pk::parameter(pk::tensor(pk::storage("FloatStorage", "0", 6), {2, 3}, {3, 1}))}},
         .attributes = {{"blob", pk::bytes("\x80\xff")}, {"x", pk::real(1.5)}, {"l", pk::integer(int64_t{1} << 40)}}});
    const std::string whole = pk::document(module);
    REQUIRE(error_of(whole) == "");
    for (size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        CHECK(error_of(whole.substr(0, size)) != "");
    }
}
