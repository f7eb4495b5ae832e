// SPDX-License-Identifier: MIT
#include "properties/phonons/phonopy_files.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/elements.h"
#include "core/error.h"
#include "formats/yaml.h"

namespace mlff::phonons {
namespace {

// Reads members of the tree, and says which one is not as expected.
class TaskReader {
public:
    explicit TaskReader(const std::string& where) : where_(where) {}

    [[noreturn]] void refuse(const std::string& name, const std::string& expected) const {
        fail(Status::format, where_, ": ", name, ": expected ", expected);
    }
    const JsonValue& member(const JsonValue& parent, const char* key, const std::string& name) const {
        const JsonValue* value = parent.find(key);
        if (!value) refuse(name, concat("an entry '", key, "'"));
        return *value;
    }
    double number(const JsonValue& value, const std::string& name) const {
        if (!value.is_number() || !(std::abs(value.number()) < 1e6)) refuse(name, "a number");
        return value.number();
    }
    Vec3 vector(const JsonValue& value, const std::string& name) const {
        if (!value.is_array() || value.size() != 3) refuse(name, "three numbers");
        return {number(value[0], name), number(value[1], name), number(value[2], name)};
    }
    Mat3 matrix(const JsonValue& value, const std::string& name) const {
        if (!value.is_array() || value.size() != 3) refuse(name, "three rows of three numbers");
        return {vector(value[0], name), vector(value[1], name), vector(value[2], name)};
    }
    Crystal crystal(const JsonValue& root, const char* name) const {
        const JsonValue& cell = member(root, name, "phonopy");
        Crystal result;
        result.lattice = matrix(member(cell, "lattice", name), concat(name, ": lattice"));
        if (!(result.volume() > 1e-3)) refuse(concat(name, ": lattice"), "three vectors that span a volume");
        const JsonValue& points = member(cell, "points", name);
        if (!points.is_array() || points.empty()) refuse(concat(name, ": points"), "a list of atoms");
        for (const JsonValue& point : points) {
            const std::string which = concat(name, ": atom ", result.atom_count());
            const JsonValue& symbol = member(point, "symbol", which);
            const int atomic_number = symbol.is_string() ? atomic_number_of(symbol.text()) : 0;
            if (atomic_number == 0) refuse(which, "the symbol of an element");
            const Vec3 place = vector(member(point, "coordinates", which), which + ": coordinates");
            const JsonValue* mass = point.find("mass");
            const double value = mass ? number(*mass, which + ": mass") : atomic_mass(atomic_number);
            if (!(value > 0)) refuse(which + ": mass", "more than 0");
            result.add_atom(atomic_number, to_cartesian(result.lattice, place), value);
        }
        return result;
    }

private:
    const std::string& where_;
};

class NumberStream {
public:
    NumberStream(std::string_view text, const std::string& where) : text_(text), where_(where) {}

    bool is_at_end() {
        while (!text_.empty() && std::string_view(" \t\r\n").find(text_.front()) != std::string_view::npos) {
            line_ += text_.front() == '\n';
            text_.remove_prefix(1);
        }
        return text_.empty();
    }
    double number() {
        const std::string_view word = next_word();
        double value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) refuse("a number");
        return value;
    }
    int64_t whole() {
        const std::string_view word = next_word();
        int64_t value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc() || end != word.data() + word.size()) refuse("a whole number");
        return value;
    }
    size_t characters_left() const { return text_.size(); }
    [[noreturn]] void refuse(const std::string& expected) const {
        fail(Status::format, where_, ": line ", line_, ": expected ", expected);
    }

private:
    std::string_view next_word() {
        if (is_at_end()) refuse("a number, not the end of the file");
        const std::string_view word = text_.substr(0, text_.find_first_of(" \t\r\n"));
        text_.remove_prefix(word.size());
        return word;
    }

    std::string_view text_;
    const std::string& where_;
    size_t line_ = 1;
};

template <class... Values>
std::string formatted(const char* format, Values... values) {
    char text[256];
    std::snprintf(text, sizeof text, format, values...);
    return text;
}

std::string crystal_text(const char* name, const Crystal& crystal) {
    std::string text = concat("\n", name, ":\n  lattice:\n");
    for (size_t k = 0; k < 3; ++k)
        text += formatted("  - [ %21.15f, %21.15f, %21.15f ] # %c\n", crystal.lattice[k][0], crystal.lattice[k][1],
                          crystal.lattice[k][2], static_cast<char>('a' + k));
    text += "  points:\n";
    for (size_t atom = 0; atom < crystal.atom_count(); ++atom) {
        const Vec3 place = to_fractional(crystal.lattice, crystal.position(atom));
        text += concat("  - symbol: ", element_symbol(crystal.atomic_numbers[atom]), " # ", atom + 1, "\n");
        text += formatted("    coordinates: [ %18.15f, %18.15f, %18.15f ]\n    mass: %.10f\n", place[0], place[1],
                          place[2], crystal.masses[atom]);
    }
    return text;
}

}  // namespace

PhonopyTask parse_phonopy_task(std::string_view text, const std::string& where) {
    const JsonValue root = parse_yaml(text, where);
    const TaskReader reader(where);
    if (!root.is_object() || !root.contains("phonopy"))
        reader.refuse("the file", "one that phonopy wrote, with an entry 'phonopy'");
    PhonopyTask task;
    task.unit_cell = reader.crystal(root, "unit_cell");
    task.supercell = reader.crystal(root, "supercell");
    const Mat3 matrix = reader.matrix(reader.member(root, "supercell_matrix", "phonopy"), "supercell_matrix");
    for (size_t k = 0; k < 9; ++k) task.supercell_matrix[k / 3][k % 3] = std::llround(matrix[k / 3][k % 3]);
    if (const JsonValue* primitive = root.find("primitive_matrix"); primitive && primitive->is_array()) {
        // Columns of the matrix are primitive vectors in vectors of the unit cell.
        task.primitive_lattice =
            product(transposed(reader.matrix(*primitive, "primitive_matrix")), task.unit_cell.lattice);
        if (!(std::abs(determinant(*task.primitive_lattice)) > 1e-3))
            reader.refuse("primitive_matrix", "three vectors that span a volume");
    }
    if (const JsonValue* tolerance = root["phonopy"].find("symmetry_tolerance"); tolerance && tolerance->is_number())
        task.tolerance = tolerance->number();
    const JsonValue& displacements = reader.member(root, "displacements", "phonopy");
    if (!displacements.is_array() || displacements.empty()) reader.refuse("displacements", "a list");
    for (const JsonValue& entry : displacements) {
        const std::string which = concat("displacement ", task.displacements.size() + 1);
        if (!entry.find("atom"))
            reader.refuse(which, "'atom' and 'displacement': one displaced atom, not random displacements of all");
        const JsonValue& atom = entry["atom"];
        if (!atom.is_number_integer() || atom.integer() < 1 ||
            atom.integer() > static_cast<int64_t>(task.supercell.atom_count()))
            reader.refuse(which + ": atom", concat("a number from 1 to ", task.supercell.atom_count()));
        const Vec3 vector = reader.vector(reader.member(entry, "displacement", which), which);
        if (!(std::hypot(vector[0], vector[1], vector[2]) > 0)) reader.refuse(which, "a vector that is not zero");
        task.displacements.push_back({static_cast<int32_t>(atom.integer() - 1), vector});
    }
    return task;
}

std::string phonopy_task_text(const PhonopyTask& task) {
    std::string text = "phonopy:\n  version: \"2.20.0\"\n";
    if (task.tolerance) text += formatted("  symmetry_tolerance: %.5e\n", *task.tolerance);
    text += "\nphysical_unit:\n  atomic_mass: \"AMU\"\n  length: \"angstrom\"\n";
    if (task.primitive_lattice) {
        text += "\nprimitive_matrix:\n";
        const Mat3 columns = transposed(product(*task.primitive_lattice, inverse(task.unit_cell.lattice)));
        for (const Vec3& row : columns) text += formatted("- [ %18.15f, %18.15f, %18.15f ]\n", row[0], row[1], row[2]);
    }
    text += "\nsupercell_matrix:\n";
    for (const Integer3& row : task.supercell_matrix)
        text += concat("- [ ", row[0], ", ", row[1], ", ", row[2], " ]\n");
    text +=
        crystal_text("unit_cell", task.unit_cell) + crystal_text("supercell", task.supercell) + "\ndisplacements:\n";
    for (const Displacement& displacement : task.displacements)
        text += concat("- atom: ", displacement.atom + 1, "\n  displacement:\n") +
                formatted("    [ %20.16f, %20.16f, %20.16f ]\n", displacement.vector[0], displacement.vector[1],
                          displacement.vector[2]);
    return text;
}

std::vector<DisplacedForces> parse_force_sets(std::string_view text, size_t atom_count, const std::string& where) {
    NumberStream stream(text, where);
    if (stream.whole() != static_cast<int64_t>(atom_count))
        stream.refuse(concat(atom_count, " atoms, as the supercell has"));
    const int64_t count = stream.whole();
    // Each has at least two characters for every number.
    if (count < 1 || static_cast<size_t>(count) > stream.characters_left() / (6 * atom_count))
        stream.refuse("as many displacements as the file has forces for");
    std::vector<DisplacedForces> displaced;
    for (int64_t index = 0; index < count; ++index) {
        DisplacedForces entry;
        const int64_t atom = stream.whole();
        if (atom < 1 || atom > static_cast<int64_t>(atom_count))
            stream.refuse(concat("an atom from 1 to ", atom_count));
        entry.displacement.atom = static_cast<int32_t>(atom - 1);
        for (double& part : entry.displacement.vector) part = stream.number();
        const Vec3& vector = entry.displacement.vector;
        if (!(std::hypot(vector[0], vector[1], vector[2]) > 0)) stream.refuse("a displacement that is not zero");
        entry.forces.resize(3 * atom_count);
        for (double& force : entry.forces) force = stream.number();
        displaced.push_back(std::move(entry));
    }
    if (!stream.is_at_end()) stream.refuse(concat("nothing behind ", count, " displacements"));
    return displaced;
}

std::string force_sets_text(const std::vector<DisplacedForces>& displaced, size_t atom_count) {
    std::string text = concat(atom_count, "\n", displaced.size(), "\n");
    for (const DisplacedForces& entry : displaced) {
        const Vec3& vector = entry.displacement.vector;
        text += concat("\n", entry.displacement.atom + 1, "\n") +
                formatted("%20.16f %20.16f %20.16f\n", vector[0], vector[1], vector[2]);
        for (size_t i = 0; i < entry.forces.size(); i += 3)
            text += formatted("%20.14f %20.14f %20.14f\n", entry.forces[i], entry.forces[i + 1], entry.forces[i + 2]);
    }
    return text;
}

}  // namespace mlff::phonons
