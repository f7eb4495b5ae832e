// SPDX-License-Identifier: MIT
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <system_error>

#include "core/bytes_text.h"
#include "core/elements.h"
#include "core/error.h"
#include "formats/extxyz.h"
#include "formats/extxyz_layout.h"
#include "formats/extxyz_text.h"

namespace mlff {
namespace {

using extxyz::Layout;
using extxyz::NumberStatus;
using extxyz::Property;
using extxyz::Role;
using extxyz::shown;
using extxyz::SourceLine;

constexpr size_t kBlockBytes = size_t{1} << 16;
constexpr size_t kMaxLineBytes = size_t{1} << 26;  // so that an endless line does not exhaust memory

// Reads lines through a buffer of one block, which grows only for longer lines.
class LineReader {
public:
    LineReader(std::streambuf& input, std::string name) : input_(input), name_(std::move(name)), buffer_(kBlockBytes) {}

    // False at the end of the file. The text is valid until the next call.
    bool next(SourceLine& line) {
        size_t searched = 0;
        const char* newline = nullptr;
        for (;;) {
            const char* const begin = buffer_.data() + begin_;
            const size_t size = end_ - begin_;
            if (size > searched)
                newline = static_cast<const char*>(std::memchr(begin + searched, '\n', size - searched));
            searched = size;
            if (newline || !fill()) break;
        }
        if (begin_ == end_) return false;
        const char* const begin = buffer_.data() + begin_;
        const size_t length = newline ? static_cast<size_t>(newline - begin) : end_ - begin_;
        begin_ += length + (newline ? 1 : 0);
        line.file = name_;
        line.number = ++number_;
        line.text = std::string_view(begin, length);
        if (!line.text.empty() && line.text.back() == '\r') line.text.remove_suffix(1);
        constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors on Windows put it first
        if (number_ == 1 && line.text.substr(0, kByteOrderMark.size()) == kByteOrderMark)
            line.text.remove_prefix(kByteOrderMark.size());
        return true;
    }

    // The position after the last line, for errors about missing lines.
    SourceLine end() const { return {name_, number_ + 1, {}}; }

private:
    bool fill() {
        if (at_end_) return false;
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
        if (end_ == buffer_.size()) {
            if (end_ >= kMaxLineBytes) end().fail_at(0, "the line is longer than " + bytes_text(kMaxLineBytes));
            buffer_.resize(2 * end_);
        }
        std::streamsize count = 0;
        try {
            count = input_.sgetn(buffer_.data() + end_, static_cast<std::streamsize>(buffer_.size() - end_));
        } catch (const std::ios_base::failure&) {
            fail(Status::file, "cannot read ", name_);
        }
        at_end_ = count <= 0;
        if (!at_end_) end_ += static_cast<size_t>(count);
        return !at_end_;
    }

    std::streambuf& input_;
    std::string name_;
    std::vector<char> buffer_;
    size_t begin_ = 0;
    size_t end_ = 0;
    bool at_end_ = false;
    int64_t number_ = 0;
};

AtomColumn empty_column(const Property& property) {
    AtomColumn column{property.name, property.width, {}};
    if (property.type == 'R') column.values = std::vector<double>();
    if (property.type == 'L') column.values = std::vector<bool>();
    if (property.type == 'S') column.values = std::vector<std::string>();
    return column;
}

// The atomic number for an element symbol (any case) or a number; 0 if it is neither.
int32_t element_of(std::string_view word) {
    static const auto numbers_by_letters = [] {
        std::array<std::array<uint8_t, 27>, 26> table{};
        for (int number = 1; number <= kMaxAtomicNumber; ++number) {
            const std::string_view symbol = element_symbol(number);
            const int second = symbol.size() > 1 ? symbol[1] - 'a' + 1 : 0;
            table[static_cast<size_t>(symbol[0] - 'A')][static_cast<size_t>(second)] = static_cast<uint8_t>(number);
        }
        return table;
    }();
    const auto letter = [](char c) { return static_cast<size_t>((c | 0x20) - 'a'); };
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    if (word.size() <= 2 && is_letter(word[0]) && (word.size() == 1 || is_letter(word[1])))
        return numbers_by_letters[letter(word[0])][word.size() > 1 ? letter(word[1]) + 1 : 0];
    int64_t number = 0;
    if (extxyz::parse_integer(word, number) != NumberStatus::ok) return 0;
    return number >= 1 && number <= kMaxAtomicNumber ? static_cast<int32_t>(number) : 0;
}

void read_other(const SourceLine& line, size_t offset, std::string_view word, const Property& property,
                AtomColumn& column) {
    const auto refuse = [&](std::string_view expected) {
        line.fail_at(offset, concat("expected ", expected, " for ", shown(property.name), ", found ", shown(word)));
    };
    if (property.type == 'R') {
        double value = 0;
        const NumberStatus status = extxyz::parse_real(word, value);
        if (status == NumberStatus::too_large) refuse("a number that fits double precision");
        if (status != NumberStatus::ok) refuse("a number");
        std::get<std::vector<double>>(column.values).push_back(value);
    } else if (property.type == 'I') {
        int64_t value = 0;
        const NumberStatus status = extxyz::parse_integer(word, value);
        if (status == NumberStatus::too_large) refuse("a whole number that fits 64 bits");
        if (status != NumberStatus::ok) refuse("a whole number");
        std::get<std::vector<int64_t>>(column.values).push_back(value);
    } else if (property.type == 'L') {
        const std::optional<bool> value = extxyz::parse_logical(word);
        if (!value) refuse("T or F");
        std::get<std::vector<bool>>(column.values).push_back(*value);
    } else {
        std::get<std::vector<std::string>>(column.values).emplace_back(word);
    }
}

void read_atom(const SourceLine& line, const Layout& layout, Frame& frame) {
    size_t cursor = 0;
    int32_t atomic_number = 0;
    for (const Property& property : layout.properties) {
        for (int64_t component = 0; component < property.width; ++component) {
            const std::string_view word = extxyz::next_word(line.text, cursor);
            const size_t offset = cursor - word.size();
            if (word.empty())
                line.fail_at(offset, concat("expected ", shown(property.name), " of atom ",
                                            std::to_string(frame.atom_count() + 1), ", found the end of the line"));
            if (property.role == Role::position) {
                frame.positions.push_back(extxyz::parse_finite(line, offset, word, property.name));
            } else if (property.role == Role::other) {
                read_other(line, offset, word, property, frame.columns[property.column]);
            } else {
                const int32_t element = element_of(word);
                if (element == 0) line.fail_at(offset, "expected an element, found " + shown(word));
                if (atomic_number != 0 && atomic_number != element)
                    line.fail_at(offset, concat("species and Z disagree: ", element_symbol(atomic_number), " and ",
                                                element_symbol(element)));
                atomic_number = element;
            }
        }
    }
    if (!layout.ignores_extra_columns) {
        const std::string_view extra = extxyz::next_word(line.text, cursor);
        if (!extra.empty())
            line.fail_at(cursor - extra.size(), concat("expected the end of the line, found ", shown(extra),
                                                       ", which Properties does not name"));
    }
    frame.atomic_numbers.push_back(atomic_number);
}

int64_t read_atom_count(const SourceLine& line) {
    size_t cursor = 0;
    const std::string_view word = extxyz::next_word(line.text, cursor);
    const size_t offset = cursor - word.size();
    int64_t count = 0;
    const NumberStatus status = extxyz::parse_integer(word, count);
    if (status == NumberStatus::too_large) line.fail_at(offset, "the atom count " + shown(word) + " is too large");
    if (status != NumberStatus::ok || count < 0) line.fail_at(offset, "expected an atom count, found " + shown(word));
    const std::string_view extra = extxyz::next_word(line.text, cursor);
    if (!extra.empty())
        line.fail_at(cursor - extra.size(), "expected the end of the line after the atom count, found " + shown(extra));
    return count;
}

bool is_blank(std::string_view text) {
    size_t cursor = 0;
    return extxyz::next_word(text, cursor).empty();
}

}  // namespace

struct ExtxyzReader::State {
    State(std::streambuf& input, std::string name) : lines(input, std::move(name)) {}

    std::unique_ptr<std::filebuf> file;  // null if the caller owns the stream
    LineReader lines;
    int64_t frames_read = 0;
};

ExtxyzReader::ExtxyzReader(const std::string& path) {
    if (path == "-") {
        state_ = std::make_unique<State>(*std::cin.rdbuf(), "standard input");
        return;
    }
    auto file = std::make_unique<std::filebuf>();
    errno = 0;
    if (!file->open(path, std::ios::in | std::ios::binary))
        fail(Status::file, "cannot open ", path, ": ", std::generic_category().message(errno));
    state_ = std::make_unique<State>(*file, path);
    state_->file = std::move(file);
}

ExtxyzReader::ExtxyzReader(std::istream& input, std::string name_for_errors) {
    if (!input) fail(Status::file, "cannot read ", name_for_errors);
    state_ = std::make_unique<State>(*input.rdbuf(), std::move(name_for_errors));
}

ExtxyzReader::~ExtxyzReader() = default;

int64_t ExtxyzReader::frames_read() const { return state_->frames_read; }

bool ExtxyzReader::next(Frame& frame) {
    LineReader& lines = state_->lines;
    SourceLine line;
    do {
        if (!lines.next(line)) return false;
    } while (is_blank(line.text));
    const int64_t atom_count = read_atom_count(line);
    if (!lines.next(line)) lines.end().fail_at(0, "expected a comment line, found the end of the file");

    frame.atomic_numbers.clear();
    frame.positions.clear();
    frame.cell.reset();
    frame.periodic = {};
    frame.info.clear();
    frame.columns.clear();
    Layout layout = extxyz::read_comment(line, frame);
    for (Property& property : layout.properties) {
        if (property.role != Role::other) continue;
        property.column = frame.columns.size();
        frame.columns.push_back(empty_column(property));
    }
    // The atom count is not trusted, so no memory is reserved for it.
    for (int64_t atom = 0; atom < atom_count; ++atom) {
        if (!lines.next(line))
            lines.end().fail_at(0, concat("expected ", std::to_string(atom_count), " atom lines, found ",
                                          std::to_string(atom), " before the end of the file"));
        read_atom(line, layout, frame);
    }
    ++state_->frames_read;
    return true;
}

}  // namespace mlff
