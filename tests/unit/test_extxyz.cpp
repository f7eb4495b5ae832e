// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>
#include <streambuf>

#include "core/error.h"
#include "formats/extxyz.h"

using namespace mlff;

namespace {

using Flags = std::vector<bool>;
using Integers = std::vector<int64_t>;
using Reals = std::vector<double>;
using Texts = std::vector<std::string>;

std::string data_path(const std::string& name) { return std::string(MLFF_TEST_DATA_DIR) + "/extxyz/" + name; }

Frame only_frame(const std::string& name) {
    std::vector<Frame> frames = read_extxyz(data_path(name));
    REQUIRE(frames.size() == 1);
    return std::move(frames[0]);
}

std::vector<Frame> frames_of(const std::string& text) {
    std::istringstream input(text);
    ExtxyzReader reader(input, "text");
    std::vector<Frame> frames;
    for (Frame frame; reader.next(frame);) frames.push_back(frame);
    return frames;
}

std::string error_of(const std::string& text) {
    try {
        frames_of(text);
    } catch (const Error& error) {
        CHECK(error.status() == Status::format);
        return error.what();
    }
    return "no error";
}

std::string text_of(const Frame& frame) {
    std::ostringstream output;
    write_extxyz(output, frame);
    return output.str();
}

template <class Values>
void check_info(const Frame& frame, const std::string& key, const Values& values, const Integers& shape = {}) {
    CAPTURE(key);
    const InfoValue* found = frame.find_info(key);
    REQUIRE(found);
    REQUIRE(std::holds_alternative<Values>(found->values));
    CHECK(std::get<Values>(found->values) == values);
    CHECK(found->shape == shape);
}

template <class Values>
void check_column(const Frame& frame, size_t index, const std::string& name, int64_t width, const Values& values) {
    REQUIRE(index < frame.columns.size());
    const AtomColumn& column = frame.columns[index];
    CHECK(column.name == name);
    CHECK(column.width == width);
    REQUIRE(std::holds_alternative<Values>(column.values));
    CHECK(std::get<Values>(column.values) == values);
}

// Hands out the same frame again and again, and counts.
class EndlessFrames : public std::streambuf {
public:
    explicit EndlessFrames(std::string frame) : frame_(std::move(frame)) {}
    size_t bytes_read = 0;

protected:
    std::streamsize xsgetn(char* out, std::streamsize count) override {
        for (std::streamsize index = 0; index < count; ++index) out[index] = frame_[bytes_read++ % frame_.size()];
        return count;
    }
    int_type underflow() override { return traits_type::eof(); }

private:
    std::string frame_;
};

}  // namespace

TEST_CASE("extxyz: a molecule that ASE wrote") {
    const Frame frame = only_frame("ase_molecule.xyz");
    CHECK(frame.atomic_numbers == std::vector<int32_t>{8, 1, 1});
    CHECK(frame.positions == Reals{0, 0, 0.119262, 0, 0.763239, -0.477047, 0, -0.763239, -0.477047});
    CHECK(!frame.cell);
    CHECK(frame.periodic == std::array<bool, 3>{false, false, false});
    CHECK(frame.info.empty());
    CHECK(frame.columns.empty());
    const SystemView view = frame.view();
    CHECK(view.atom_count == 3);
    CHECK(view.positions == frame.positions.data());
    CHECK(view.cell == Mat3{});
    CHECK(view.total_charge == 0);
    CHECK(view.spin_multiplicity == 1);
}

TEST_CASE("extxyz: cells that ASE wrote") {
    const Frame triclinic = only_frame("ase_triclinic.xyz");
    CHECK(triclinic.cell == Mat3{{{4.9, 0, 0}, {-2.45, 4.243524478543749, 0}, {0.3, -0.2, 5.4}}});
    CHECK(triclinic.periodic == std::array<bool, 3>{true, true, true});
    CHECK(triclinic.positions == Reals{0, 0, 0, 0.0375, 2.09676224, 0.675, 3.455, 0.24435245, 4.86});

    const Frame slab = only_frame("ase_slab_mixed_pbc.xyz");
    CHECK(slab.periodic == std::array<bool, 3>{true, true, false});
    CHECK(slab.atomic_numbers == std::vector<int32_t>{78, 78, 78});
    check_column(slab, 0, "tags", 1, Integers{3, 2, 1});
    check_info(slab, "layers", Integers{3});
    CHECK(slab.view().cell == *slab.cell);
}

TEST_CASE("extxyz: results, columns and values that ASE wrote") {
    const Frame silicon = only_frame("ase_forces.xyz");
    check_column(silicon, 0, "forces", 3, Reals{0.125, -0.25, 0.5, -0.125, 0.25, -0.5});
    CHECK(silicon.info_number("energy") == -10.123456789012344);
    check_info(silicon, "stress", Reals{0.01, 0.006, 0.005, 0.006, 0.02, 0.004, 0.005, 0.004, 0.03}, {9});

    const Frame ion = only_frame("ase_info.xyz");
    REQUIRE(ion.columns.size() == 5);
    check_column(ion, 0, "initial_magmoms", 1, Reals{0.5, 0.5});
    check_column(ion, 1, "tags", 1, Integers{3, -4});
    check_column(ion, 2, "frozen", 1, Flags{true, false});
    check_column(ion, 3, "label", 1, Texts{"O_a", "H_b"});
    check_column(ion, 4, "charge", 1, Reals{-0.8, -0.2});
    CHECK(ion.info_text("head") == "omol");
    CHECK(ion.info_number("REF_energy") == -2.5e-7);
    check_info(ion, "is_ion", Flags{true});
    CHECK(ion.view().total_charge == -1);
    CHECK(ion.view().spin_multiplicity == 1);
}

TEST_CASE("extxyz: texts and arrays that ASE wrote") {
    const Frame frame = only_frame("ase_texts.xyz");
    check_info(frame, "name", Texts{"a text with spaces"});
    check_info(frame, "quoted", Texts{"he said \"no\""});
    check_info(frame, "single", Texts{"it's"});
    check_info(frame, "brackets", Texts{"[a] {b}"});
    check_info(frame, "uid", Texts{"12e4"});
    check_info(frame, "vector", Reals{1.5, 2, -3}, {3});
    check_info(frame, "counts", Integers{1, 2, 3}, {3});
    check_info(frame, "flags", Flags{true, false}, {2});
    check_info(frame, "matrix", Integers{1, 2, 3, 4, 5, 6}, {2, 3});
    check_info(frame, "reals", Reals{0.5, 1e-30, 2, 1e300}, {2, 2});
    check_info(frame, "nested", Texts{"_JSON {\"a\": [1, 2.5, null], \"b\": \"x y\"}"});
    check_info(frame, "words", Texts{"one", "two words"}, {2});
    check_info(frame, "nothing", Flags{true});
    check_info(frame, "my key", Integers{7});
    check_info(frame, "equation", Texts{"a=b"});
    check_info(frame, "umlaut",
               Texts{"Gr\xc3\xb6\xc3\x9f"
                     "e"});
    CHECK(frame.info.size() == 16);
}

TEST_CASE("extxyz: several frames, and frames without atoms") {
    const std::vector<Frame> frames = read_extxyz(data_path("ase_frames.xyz"));
    REQUIRE(frames.size() == 3);
    CHECK(frames[0].atom_count() == 2);
    CHECK(frames[1].atom_count() == 3);
    CHECK(frames[2].atomic_numbers == std::vector<int32_t>{6, 1, 1, 1, 1});
    for (int64_t index = 0; index < 3; ++index)
        check_info(frames[static_cast<size_t>(index)], "index", Integers{index});

    const std::vector<Frame> empty = read_extxyz(data_path("ase_empty.xyz"));
    REQUIRE(empty.size() == 2);
    CHECK(empty[0].atom_count() == 0);
    CHECK(empty[0].view().atom_count == 0);
    CHECK(empty[1].atom_count() == 1);
    CHECK(frames_of("").empty());
    CHECK(frames_of(" \n\r\n\t").empty());
    CHECK(frames_of("0\n\n").size() == 1);
    CHECK(frames_of("0\n\n0\n\n\n").size() == 2);
}

TEST_CASE("extxyz: plain XYZ with free text, tabs, Windows line ends and Fortran numbers") {
    const Frame plain = only_frame("ase_plain.xyz");
    CHECK(plain.positions == Reals{0, 0, 0.119262, 0, 0.763239, -0.477047, 0, -0.763239, -0.477047});
    CHECK(!plain.cell);

    const Frame tabs = only_frame("plain_windows_tabs.xyz");
    CHECK(tabs.atomic_numbers == std::vector<int32_t>{8, 1});
    CHECK(tabs.positions == Reals{0.5, -1.25, 0.3, 0.001, 2.5, 0.5});
    CHECK(tabs.columns.empty());
    check_info(tabs, "water", Flags{true});

    CHECK(only_frame("byte_order_mark.xyz").atom_count() == 1);
    for (const char* comment :
         {"", "it's", "a \"b", "= 5", "x == y", "[", "the the", "\\", "Properties of the Lattice, with pbc", "]}"}) {
        CAPTURE(comment);
        const std::vector<Frame> frames = frames_of(std::string("1\n") + comment + "\nH 0 0 0\n");
        REQUIRE(frames.size() == 1);
        CHECK(!frames[0].cell);
        CHECK(frames_of(text_of(frames[0])).size() == 1);
    }
}

TEST_CASE("extxyz: forms of the cell and of pbc") {
    const Mat3 cell{{{3, 0, 0}, {0.5, 4, 0}, {0, 0, 5}}};
    const Frame braces = only_frame("lattice_braces.xyz");
    CHECK(braces.cell == cell);
    CHECK(braces.periodic == std::array<bool, 3>{true, false, true});

    const Frame nested = only_frame("lattice_nested.xyz");
    CHECK(nested.cell == cell);
    CHECK(nested.periodic == std::array<bool, 3>{true, true, true});
    check_info(nested, "matrix", Reals{1, 2, 3, 4.5}, {2, 2});
    check_info(nested, "cube", Integers{1, 2, 3, 4}, {2, 2, 1});
    check_info(nested, "names", Texts{"a b", "c"}, {2});
    check_info(nested, "one", Integers{5}, {1});
    check_info(nested, "ragged", Texts{"[1],[2,3]"});

    const Frame diagonal = only_frame("lattice_diagonal.xyz");
    CHECK(diagonal.cell == Mat3{{{3, 0, 0}, {0, 4, 0}, {0, 0, 5}}});
    CHECK(diagonal.periodic == std::array<bool, 3>{true, true, true});

    const auto periodic = [](const std::string& pbc) {
        return frames_of("0\nLattice=\"1 0 0 0 1 0 0 0 1\" " + pbc + "\n").at(0).periodic;
    };
    CHECK(periodic("") == std::array<bool, 3>{true, true, true});
    CHECK(periodic("pbc=F") == std::array<bool, 3>{false, false, false});
    CHECK(periodic("pbc='F True false'") == std::array<bool, 3>{false, true, false});
    CHECK(periodic("pbc=\"1 0 1\"") == std::array<bool, 3>{true, false, true});
    CHECK(periodic("pbc={T F F}") == std::array<bool, 3>{true, false, false});
    CHECK(periodic("pbc = \"F F T\"") == std::array<bool, 3>{false, false, true});
    CHECK(frames_of("0\nLattice={{1 0 0} {0 2 0} {0 0 3}}\n").at(0).cell == Mat3{{{1, 0, 0}, {0, 2, 0}, {0, 0, 3}}});
}

TEST_CASE("extxyz: keys, quotes and escapes written by hand") {
    const Frame frame = only_frame("spaces_and_quotes.xyz");
    CHECK(frame.info_number("energy") == -1.5);
    check_info(frame, "title", Texts{"it is \"so\""});
    check_info(frame, "path", Texts{"C:\\a\nb"});
    check_info(frame, "empty", Texts{""});
    check_info(frame, "next", Integers{2});
    check_info(frame, "last", Texts{""});

    const Frame bytes = only_frame("not_utf8.xyz");
    check_info(bytes, "name",
               Texts{"Gr\xf6\xdf"
                     "e"});
    check_info(bytes, "nul", Texts{std::string("a\0b", 3)});

    const Frame values =
        frames_of(
            "0\na=1 b=+2.5 c=1.5d2 d=1d3 e=9223372036854775808 f=1e999 g={1 2.5} h=[T,F] i=\"1,x\" j=nan k=[x] l='5'"
            " m=\"_JSON \\\"\\\\u00e9\\\\ud83d\\\\ude00\\\"\" n=\"_JSON {}\" o=[] p=\"_JSON [1, \\\"x\\\"]\"\n")
            .at(0);
    check_info(values, "a", Integers{1});
    check_info(values, "b", Reals{2.5});
    check_info(values, "c", Reals{150});
    check_info(values, "d", Texts{"1d3"});
    check_info(values, "e", Reals{9223372036854775808.0});
    check_info(values, "f", Texts{"1e999"});
    check_info(values, "g", Reals{1, 2.5}, {2});
    check_info(values, "h", Flags{true, false}, {2});
    check_info(values, "i", Texts{"1,x"});
    CHECK(std::isnan(values.info_number("j").value()));
    check_info(values, "k", Texts{"x"});
    check_info(values, "l", Integers{5});
    check_info(values, "m", Texts{"\xc3\xa9\xf0\x9f\x98\x80"});
    check_info(values, "n", Texts{"_JSON {}"});
    check_info(values, "o", Reals{}, {0});
    check_info(values, "p", Texts{"_JSON [1, \"x\"]"});
}

TEST_CASE("extxyz: atomic numbers, symbols in any case, numbers at the edge of double") {
    const std::vector<Frame> frames = read_extxyz(data_path("atomic_numbers.xyz"));
    REQUIRE(frames.size() == 2);
    CHECK(frames[0].atomic_numbers == std::vector<int32_t>{1, 17, 92});
    CHECK(frames[1].atomic_numbers == std::vector<int32_t>{8});
    const auto& velocities = std::get<Reals>(frames[0].columns.at(0).values);
    REQUIRE(velocities.size() == 6);
    CHECK(std::isnan(velocities[1]));
    CHECK(velocities[2] == -std::numeric_limits<double>::infinity());
    CHECK(velocities[5] == 0);

    const std::string tiny = "0." + std::string(400, '0') + "1";
    const std::string huge = "1" + std::string(400, '0') + "e-400";
    const Frame edge = frames_of("1\n\nH -4.9406564584124654e-324 " + tiny + " " + huge + "\n").at(0);
    CHECK(edge.positions == Reals{-std::numeric_limits<double>::denorm_min(), 0, 1});
    CHECK(error_of("1\n\nH 0 0 1" + std::string(400, '0') + "e-5\n").find("text:3:7: the number") == 0);
    CHECK(error_of("1\n\nH 0 0 1e99999999999999999999\n").find("too large") != std::string::npos);
    CHECK(frames_of("1\n\nH 0 0 1e-99999999999999999999\n").at(0).positions[2] == 0);
    for (const char* word : {"+-1", "1e", ".", "-", "+", "0x10", "nan(1)", "1,0", "--1", "1_0", "1.0d", "e5"}) {
        CAPTURE(word);
        CHECK(error_of(std::string("1\n\nH 0 0 ") + word + "\n") ==
              std::string("text:3:7: expected a number for pos, found '") + word + "'");
    }
}

TEST_CASE("extxyz: broken files are refused with line, column and reason") {
    struct Broken {
        std::string name, place, words;
    };
    const std::vector<Broken> cases = {
        {"atom_line_blank", "4:1", "'species' of atom 2, found the end of the line"},
        {"backslash_at_end", "2:40", "backslash"},
        {"column_missing", "3:12", "'forces' of atom 1"},
        {"comment_missing", "2:1", "expected a comment line"},
        {"count_absurd", "6:1", "expected 1000000000000000000 atom lines, found 3"},
        {"count_negative", "1:1", "expected an atom count, found '-1'"},
        {"count_not_a_number", "1:1", "found 'three'"},
        {"count_real", "1:1", "found '1.0'"},
        {"count_too_large", "1:1", "'99999999999999999999' is too large"},
        {"count_too_small", "4:1", "expected an atom count, found 'H'"},
        {"count_with_extra_word", "1:3", "found 'atom'"},
        {"element_label", "3:1", "expected an element, found 'H1'"},
        {"element_not_ascii", "3:1", "'\\xc3\\xa9'"},
        {"element_unknown", "3:1", "found 'Xx'"},
        {"element_zero", "3:1", "found '0'"},
        {"extra_column", "3:9", "found '7', which Properties does not name"},
        {"key_empty", "2:32", "expected a key, found '='"},
        {"key_twice", "2:41", "the key 'energy' occurs twice"},
        {"lattice_bracket_open", "2:9", "bracket is never closed"},
        {"lattice_eight_numbers", "2:10", "expected 9 or 3 numbers for Lattice, found 8"},
        {"lattice_nan", "2:18", "expected a finite number for Lattice, found 'nan'"},
        {"lattice_not_a_number", "2:18", "found 'four'"},
        {"lattice_one_number", "2:9", "found 1"},
        {"lattice_overflow", "2:26", "'1e309' for Lattice is too large"},
        {"lattice_twice", "2:29", "the key 'Lattice' occurs twice"},
        {"lattice_wrong_rows", "2:10", "three rows of three"},
        {"logical_not_t_or_f", "3:9", "expected T or F for 'fixed', found 'yes'"},
        {"pbc_not_flags", "2:34", "'a b c'"},
        {"pbc_number_two", "2:34", "'1 1 2'"},
        {"pbc_two_flags", "2:34", "expected three flags"},
        {"pbc_without_lattice", "2:32", "no Lattice"},
        {"position_infinite", "3:3", "finite number for pos, found '-inf'"},
        {"position_missing", "3:8", "expected 'pos' of atom 1"},
        {"position_nan", "3:5", "finite number for pos, found 'nan'"},
        {"position_not_a_number", "4:9", "expected a number for pos, found 'abc'"},
        {"position_nul_byte", "3:5", "'0\\x00'"},
        {"position_overflow", "3:7", "'1e999' for pos is too large"},
        {"position_two_exponents", "3:7", "'1d2d3'"},
        {"properties_alias_twice", "2:32", "'positions' occurs twice"},
        {"properties_empty", "2:13", "Properties ends"},
        {"properties_incomplete", "2:33", "Properties ends"},
        {"properties_name_empty", "2:32", "expected a name"},
        {"properties_name_twice", "2:38", "the property 'q' occurs twice"},
        {"properties_pos_width_two", "2:28", "expected pos:R:3"},
        {"properties_unknown_type", "2:34", "found 'X'"},
        {"properties_width_text", "2:36", "found 'x'"},
        {"properties_width_zero", "2:36", "found '0'"},
        {"properties_without_pos", "2:12", "no pos"},
        {"properties_without_species", "2:12", "neither species nor Z"},
        {"properties_z_real", "2:14", "expected Z:I:1"},
        {"quote_before_lattice", "2:3", "quote is never closed"},
        {"quote_open", "2:37", "quote is never closed"},
        {"real_column_overflow", "3:9", "'q', found '-1e400'"},
        {"second_frame", "6:7", "found 'zero'"},
        {"species_and_z_disagree", "3:3", "species and Z disagree: H and He"},
        {"truncated_frame", "8:1", "expected 4 atom lines, found 2"},
        {"whole_number_overflow", "3:9", "64 bits for 'tags'"},
        {"whole_number_with_point", "3:9", "expected a whole number for 'tags', found '1.0'"},
    };
    std::set<std::string> files_not_seen;
    for (const auto& file : std::filesystem::directory_iterator(data_path("broken")))
        files_not_seen.insert(file.path().stem().string());
    for (const Broken& broken : cases) {
        CAPTURE(broken.name);
        CHECK(files_not_seen.erase(broken.name) == 1);
        const std::string path = data_path("broken/" + broken.name + ".xyz");
        std::string message = "no error";
        try {
            read_extxyz(path);
        } catch (const Error& error) {
            CHECK(error.status() == Status::format);
            message = error.what();
        }
        CAPTURE(message);
        CHECK(message.find(path + ":" + broken.place + ": ") == 0);
        CHECK(message.find(broken.words) != std::string::npos);
        CHECK(message.find('\n') == std::string::npos);
    }
    CHECK(files_not_seen.empty());
}

TEST_CASE("extxyz: files that cannot be read") {
    const auto status_of = [](const std::string& path) {
        try {
            read_extxyz(path);
        } catch (const Error& error) {
            CHECK(std::string(error.what()).find(path) != std::string::npos);
            return error.status();
        }
        return Status::ok;
    };
    CHECK(status_of(data_path("there is no such file")) == Status::file);
    CHECK(status_of(data_path("broken")) == Status::file);  // a directory
    std::ifstream missing(data_path("there is no such file"));
    CHECK_THROWS_WITH_AS(ExtxyzReader(missing, "name"), "cannot read name", Error);
    std::istream without_buffer(nullptr);
    CHECK_THROWS_WITH_AS(ExtxyzReader(without_buffer, "name"), "cannot read name", Error);
}

TEST_CASE("extxyz: frames before a broken one can be read") {
    std::ifstream input(data_path("broken/second_frame.xyz"));
    ExtxyzReader reader(input, "movie");
    Frame frame;
    CHECK(reader.next(frame));
    CHECK(reader.frames_read() == 1);
    CHECK_THROWS_WITH_AS(reader.next(frame), "movie:6:7: expected a number for pos, found 'zero'", Error);
    CHECK(reader.frames_read() == 1);
}

TEST_CASE("extxyz: a frame is read without reading far beyond it") {
    std::string text = "1000\nProperties=species:S:1:pos:R:3:name:S:1\n";
    for (int atom = 0; atom < 1000; ++atom) text += "H 0 0 " + std::to_string(atom) + " a\n";
    EndlessFrames buffer(text);
    std::istream input(&buffer);
    ExtxyzReader reader(input, "endless");
    Frame frame;
    const size_t block = size_t{1} << 19;
    for (int64_t index = 1; index <= 200; ++index) {
        REQUIRE(reader.next(frame));
        REQUIRE(reader.frames_read() == index);
        REQUIRE(frame.atom_count() == 1000);
        REQUIRE(frame.positions.size() == 3000);
        REQUIRE(frame.columns.size() == 1);
        REQUIRE(buffer.bytes_read < static_cast<size_t>(index) * text.size() + block);
    }
    CHECK(frame.positions[2999] == 999);
}

TEST_CASE("extxyz: long lines") {
    const std::string long_text(size_t{3} << 20, 'x');
    const Frame frame =
        frames_of("1\nProperties=species:S:1:pos:R:3 name=" + long_text + "\nH 0 0 " + std::string(300000, ' ') + "7\n")
            .at(0);
    CHECK(frame.info_text("name") == long_text);
    CHECK(frame.positions == Reals{0, 0, 7});
    EndlessFrames buffer("x");
    std::istream input(&buffer);
    ExtxyzReader reader(input, "endless");
    Frame none;
    CHECK_THROWS_WITH_AS(reader.next(none), "endless:1:1: the line is longer than 67.1 MB", Error);
    // What is quoted in a message stays short.
    CHECK(error_of(long_text).size() < 120);
}

TEST_CASE("extxyz: hostile nesting and many keys") {
    const std::string open(100000, '[');
    CHECK(error_of("0\nLattice=" + open).find("text:2:9: this bracket is never closed") == 0);
    const Frame deep = frames_of("0\nx=" + open + std::string(100000, ']') + "\n").at(0);
    CHECK(deep.info_text("x").value().size() == 199998);
    std::string keys = "0\nLattice=\"1 1 1\"";
    for (int key = 0; key < 50000; ++key) keys += " k" + std::to_string(key) + "=" + std::to_string(key);
    CHECK(frames_of(keys).at(0).info.size() == 50000);
}

TEST_CASE("extxyz: every sample survives writing and reading") {
    int samples = 0;
    for (const auto& file : std::filesystem::directory_iterator(data_path(""))) {
        if (file.path().extension() != ".xyz") continue;
        CAPTURE(file.path().string());
        ++samples;
        for (const Frame& frame : read_extxyz(file.path().string())) {
            const std::string text = text_of(frame);
            const Frame again = frames_of(text).at(0);
            CHECK(again.atomic_numbers == frame.atomic_numbers);
            CHECK(again.positions == frame.positions);
            CHECK(again.cell == frame.cell);
            CHECK(again.periodic == frame.periodic);
            CHECK(text_of(again) == text);
        }
    }
    CHECK(samples >= 15);
}

// ASE 3.29.0 reads writer_output.xyz as exactly these values, texts such as "123" included.
TEST_CASE("extxyz: what is written") {
    Frame frame;
    frame.atomic_numbers = {1, 8};
    frame.positions = {0, 1.0 / 3, -1e-300, 4, 5, 1e22};
    frame.cell = Mat3{{{4, 0, 0}, {1.0 / 7, 5, 0}, {0.1, 0.2, 6}}};
    frame.periodic = {true, false, true};
    frame.set_info("energy", -1.0);
    frame.set_info("vec", Reals{1, 2, 3});
    frame.set_info("one", Reals{1});
    frame.set_info("none", Reals{});
    const std::vector<std::pair<std::string, std::string>> texts = {{"t_num", "123"},
                                                                    {"t_nums", "1 2,3"},
                                                                    {"t_bool", "T"},
                                                                    {"t_bools", "T F"},
                                                                    {"t_empty", ""},
                                                                    {"t_quote", "a\"b'c\\d"},
                                                                    {"t_nl", "a\nb\tc\rd"},
                                                                    {"t_br", "[1, 2]"},
                                                                    {"t_brace", "{x}"},
                                                                    {"t_eq", "a=b"},
                                                                    {"t_under", "1_000"},
                                                                    {"t_big", "1e999"},
                                                                    {"t_space", " lead trail "},
                                                                    {"t_uni",
                                                                     "Gr\xc3\xb6\xc3\x9f"
                                                                     "e \xf0\x9f\x98\x80"},
                                                                    {"t_bs", "\\"},
                                                                    {"t_json", "_JSON \"x\""},
                                                                    {"t_nan", "nan"},
                                                                    {"t_d", "1.5d3"},
                                                                    {"uid", "12e4"},
                                                                    {"t_hash", "#x,y;z"},
                                                                    {"odd key \"[", "v"}};
    for (const auto& [key, text] : texts) frame.set_info(key, text);
    frame.info.emplace_back("m23", InfoValue{Reals{1, 2, 3, 4, 5, 6.5}, {2, 3}});
    frame.info.emplace_back("ints", InfoValue{Integers{1, 2}, {2}});
    frame.info.emplace_back("bools2", InfoValue{Flags{true, false}, {2, 1}});
    frame.info.emplace_back("strs", InfoValue{Texts{"a b", "c\"\\\n"}, {2}});
    frame.info.emplace_back("virial", InfoValue{Reals{1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3}});
    frame.set_column("forces", 3, {1, 2, 3, 4, 5, 1.0 / 3});
    frame.set_column("q", 1, {0.1, -0.2});
    frame.columns.push_back({"tags", 1, Integers{1, -2}});
    frame.columns.push_back({"fix", 3, Flags{true, false, true, false, false, false}});
    frame.columns.push_back({"lab", 2, Texts{"a", "b", "c", "d\""}});

    std::ifstream file(data_path("writer_output.xyz"), std::ios::binary);
    const std::string expected(std::istreambuf_iterator<char>(file), {});
    CHECK(text_of(frame) == expected);

    const Frame again = only_frame("writer_output.xyz");
    for (const auto& [key, text] : texts) check_info(again, key, Texts{text});
    check_info(again, "energy", Reals{-1});
    check_info(again, "vec", Reals{1, 2, 3}, {3});
    check_info(again, "one", Reals{1}, {1});
    check_info(again, "none", Reals{}, {0});
    check_info(again, "m23", Reals{1, 2, 3, 4, 5, 6.5}, {2, 3});
    check_info(again, "ints", Integers{1, 2}, {2});
    check_info(again, "bools2", Flags{true, false}, {2, 1});
    check_info(again, "strs", Texts{"a b", "c\"\\\n"}, {2});
    check_info(again, "virial", Reals{1, 4, 7, 2, 5, 8, 3, 6, 9}, {9});
    check_column(again, 0, "forces", 3, Reals{1, 2, 3, 4, 5, 1.0 / 3});
    check_column(again, 1, "q", 1, Reals{0.1, -0.2});
    check_column(again, 2, "tags", 1, Integers{1, -2});
    check_column(again, 3, "fix", 3, Flags{true, false, true, false, false, false});
    check_column(again, 4, "lab", 2, Texts{"a", "b", "c", "d\""});
    CHECK(again.positions == frame.positions);
    CHECK(again.cell == frame.cell);
    CHECK(again.periodic == frame.periodic);
}

TEST_CASE("extxyz: arrays of nothing can be written, whatever their shape") {
    for (const char* value : {"[]", "[[]]", "[[], []]", "[[[]], [[]]]"}) {
        CAPTURE(value);
        const Frame frame = frames_of("0\nx=" + std::string(value) + "\n").at(0);
        const Frame again = frames_of(text_of(frame)).at(0);
        check_info(again, "x", Reals{}, {0});
        CHECK(text_of(again) == text_of(frame));
    }
}

TEST_CASE("extxyz: setting values and columns again replaces them") {
    Frame frame;
    frame.atomic_numbers = {2};
    frame.positions = {0, 0, 0};
    frame.set_info("energy", 1.0);
    frame.set_info("energy", std::string("low"));
    CHECK(frame.info.size() == 1);
    CHECK(frame.info_text("energy") == "low");
    CHECK_THROWS_AS(frame.info_number("energy"), Error);
    CHECK(!frame.info_number("other"));
    CHECK(!frame.info_text("other"));
    frame.set_column("forces", 3, {1, 2, 3});
    frame.set_column("forces", 1, {4});
    CHECK(frame.columns.size() == 1);
    check_column(frame, 0, "forces", 1, Reals{4});
    CHECK_THROWS_AS(frame.set_column("forces", 3, {1, 2}), Error);
    CHECK_THROWS_AS(frame.set_column("forces", 0, {}), Error);
    CHECK_THROWS_AS(frame.set_column("forces", 2, {1, 2, 3, 4}), Error);
}

TEST_CASE("extxyz: charge and spin") {
    const auto view = [](const std::string& comment) { return frames_of("0\n" + comment + "\n").at(0).view(); };
    CHECK(view("charge=2 spin=3").total_charge == 2);
    CHECK(view("charge=2 spin=3").spin_multiplicity == 3);
    CHECK(view("total_charge=-1.5 total_spin=2").total_charge == -1.5);
    CHECK(view("total_charge=-1.5 total_spin=2").spin_multiplicity == 2);
    CHECK(view("charge=1 total_charge=1.0").total_charge == 1);
    CHECK(view("free text about charge and spin").total_charge == 0);
    for (const char* comment :
         {"charge=1 total_charge=2", "charge=high", "spin=\"1 2\"", "charge=T", "total_spin=nan"}) {
        CAPTURE(comment);
        CHECK_THROWS_AS(view(comment), Error);
    }
}

TEST_CASE("extxyz: frames that cannot be written") {
    Frame good;
    good.atomic_numbers = {1};
    good.positions = {0, 0, 0};
    CHECK(text_of(good) == "1\nProperties=species:S:1:pos:R:3 pbc=\"F F F\"\nH 0.0 0.0 0.0\n");
    const auto refuses = [&](auto change) {
        Frame frame = good;
        change(frame);
        try {
            text_of(frame);
        } catch (const Error&) {
            return true;
        }
        return false;
    };
    CHECK(!refuses([](Frame&) {}));
    CHECK(refuses([](Frame& frame) { frame.positions[1] = std::nan(""); }));
    CHECK(refuses([](Frame& frame) { frame.positions.pop_back(); }));
    CHECK(refuses([](Frame& frame) { frame.atomic_numbers[0] = 119; }));
    CHECK(refuses([](Frame& frame) { frame.periodic[2] = true; }));
    CHECK(refuses([](Frame& frame) { frame.cell = Mat3{{{std::nan(""), 0, 0}, {}, {}}}; }));
    CHECK(refuses([](Frame& frame) { frame.set_info("pbc", 1.0); }));
    CHECK(refuses([](Frame& frame) { frame.set_info("", 1.0); }));
    CHECK(refuses([](Frame& frame) { frame.info.assign(2, {"a", InfoValue{Reals{1}, {}}}); }));
    CHECK(refuses([](Frame& frame) { frame.info.push_back({"a", InfoValue{Reals{1, 2}, {}}}); }));
    CHECK(refuses([](Frame& frame) { frame.info.push_back({"a", InfoValue{Reals{1, 2}, {-2, -1}}}); }));
    CHECK(refuses([](Frame& frame) { frame.info.push_back({"a", InfoValue{Reals{}, {}}}); }));
    CHECK(refuses([](Frame& frame) { frame.set_column("pos", 3, {1, 2, 3}); }));
    CHECK(refuses([](Frame& frame) { frame.set_column("a:b", 1, {1}); }));
    CHECK(refuses([](Frame& frame) { frame.columns.assign(2, {"a", 1, Reals{1}}); }));
    CHECK(refuses([](Frame& frame) { frame.columns.push_back({"a", 2, Reals{1}}); }));
    CHECK(refuses([](Frame& frame) { frame.columns.push_back({"a", 1, Texts{"two words"}}); }));
    CHECK(refuses([](Frame& frame) { frame.columns.push_back({"a", 1, Texts{""}}); }));
    std::ostringstream closed;
    closed.setstate(std::ios::badbit);
    CHECK_THROWS_AS(write_extxyz(closed, good), Error);
}
