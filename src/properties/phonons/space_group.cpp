// SPDX-License-Identifier: MIT
#include "properties/phonons/space_group.h"

#include <cmath>

#include "core/error.h"

#ifdef MLFF_HAS_SPGLIB
#include <spglib.h>
#ifdef MLFF_STATIC_SPGLIB
#include "properties/phonons/serial_openmp.h"
#endif
#endif

namespace mlff::phonons {
namespace {

// A rotation in lattice vectors as one in angstrom, exactly orthogonal although the lattice is symmetric only within a
// tolerance.
Mat3 cartesian_rotation(const Mat3& lattice, const IntegerMatrix& rotation) {
    Mat3 fractional{};
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) fractional[i][j] = static_cast<double>(rotation[i][j]);
    const Mat3 columns = transposed(lattice);
    Mat3 result = product(product(columns, fractional), inverse(columns));
    for (int round = 0; round < 3; ++round) {  // Newton's method for the nearest orthogonal matrix
        const Mat3 other = transposed(inverse(result));
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j) result[i][j] = 0.5 * (result[i][j] + other[i][j]);
    }
    return result;
}

#ifdef MLFF_HAS_SPGLIB

// Of each atom the first one like it.
std::vector<int> types_of(const Crystal& crystal, Alike alike) {
    std::vector<int> types;
    std::vector<size_t> firsts;
    for (size_t atom = 0; atom < crystal.atom_count(); ++atom) {
        size_t type = 0;
        while (type < firsts.size() &&
               !(alike == Alike::elements ? crystal.atomic_numbers[atom] == crystal.atomic_numbers[firsts[type]]
                                          : crystal.has_same_kind(atom, crystal, firsts[type])))
            ++type;
        if (type == firsts.size()) firsts.push_back(atom);
        types.push_back(static_cast<int>(firsts[type]));
    }
    return types;
}

// Arrays as spglib takes them.
struct SpglibCell {
    SpglibCell(const Crystal& crystal, Alike alike) : types(types_of(crystal, alike)) {
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j) lattice[i][j] = crystal.lattice[j][i];  // vectors in columns
        for (size_t atom = 0; atom < crystal.atom_count(); ++atom)
            positions.push_back(to_fractional(crystal.lattice, crystal.position(atom)));
    }
    double (*places())[3] { return reinterpret_cast<double(*)[3]>(positions.data()); }
    int count() const { return static_cast<int>(types.size()); }

    double lattice[3][3];
    std::vector<Vec3> positions;
    std::vector<int> types;
};

[[noreturn]] void fail_with_words_of_spglib() {
    fail(Status::system, "spglib finds no symmetry of the crystal: ", spg_get_error_message(spg_get_error_code()));
}

// Primitive vectors in conventional ones, in columns, by the first letter of the symbol.
Mat3 centring_of(char letter) {
    constexpr double h = 0.5, t = 1.0 / 3;
    switch (letter) {
        case 'F': return {{{0, h, h}, {h, 0, h}, {h, h, 0}}};
        case 'I': return {{{-h, h, h}, {h, -h, h}, {h, h, -h}}};
        case 'A': return {{{1, 0, 0}, {0, h, -h}, {0, h, h}}};
        case 'C': return {{{h, h, 0}, {-h, h, 0}, {0, 0, 1}}};
        case 'R': return {{{2 * t, -t, -t}, {t, t, -2 * t}, {t, t, t}}};
        default: return kIdentity;
    }
}

#endif

}  // namespace

std::vector<FractionalOperation> only_identity() {
    return {FractionalOperation{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, {}}};
}

#ifdef MLFF_HAS_SPGLIB

bool has_spglib() { return true; }

std::optional<SpaceGroup> find_space_group(const Crystal& crystal, double tolerance) {
    SpglibCell cell(crystal, Alike::isotopes);
    SpglibDataset* dataset = spg_get_dataset(cell.lattice, cell.places(), cell.types.data(), cell.count(), tolerance);
    if (!dataset) fail_with_words_of_spglib();
    SpaceGroup group;
    group.number = dataset->spacegroup_number;
    group.symbol = dataset->international_symbol;
    Mat3 to_conventional{};
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) to_conventional[i][j] = dataset->transformation_matrix[i][j];
    spg_free_dataset(dataset);
    const Mat3 conventional = product(transposed(crystal.lattice), inverse(to_conventional));
    group.conventional_lattice = transposed(conventional);
    group.primitive_lattice = transposed(product(conventional, centring_of(group.symbol.front())));
    return group;
}

std::vector<FractionalOperation> find_operations(const Crystal& primitive, double tolerance, Alike alike) {
    SpglibCell cell(primitive, alike);
    SpglibDataset* dataset = spg_get_dataset(cell.lattice, cell.places(), cell.types.data(), cell.count(), tolerance);
    if (!dataset) fail_with_words_of_spglib();
    std::vector<FractionalOperation> operations(static_cast<size_t>(dataset->n_operations));
    for (size_t k = 0; k < operations.size(); ++k)
        for (size_t i = 0; i < 3; ++i) {
            operations[k].translation[i] = dataset->translations[k][i];
            for (size_t j = 0; j < 3; ++j) operations[k].rotation[i][j] = dataset->rotations[k][i][j];
        }
    spg_free_dataset(dataset);
    return operations;
}

#else

bool has_spglib() { return false; }

std::optional<SpaceGroup> find_space_group(const Crystal&, double) { return {}; }

std::vector<FractionalOperation> find_operations(const Crystal&, double, Alike) { return only_identity(); }

#endif

std::vector<SymmetryOperation> operations_of_supercell(const Crystal& primitive, const CellMap& map,
                                                       const std::vector<FractionalOperation>& operations,
                                                       double tolerance) {
    const size_t count = primitive.atom_count();
    constexpr size_t kMostNumbers = size_t{1} << 29;
    if (operations.size() > kMostNumbers / (map.atom_count() * map.cell_count()))
        fail(Status::argument, "the supercell of ", map.atom_count(), " atoms is too large for ", operations.size(),
             " symmetry operations");
    std::vector<SymmetryOperation> result;
    for (const FractionalOperation& operation : operations) {
        if (!map.is_kept_by(operation.rotation)) continue;
        std::vector<size_t> image(count);
        std::vector<Integer3> image_cell(count);
        for (size_t atom = 0; atom < count; ++atom) {
            const Vec3 place = to_fractional(primitive.lattice, primitive.position(atom));
            Vec3 moved = operation.translation;
            for (size_t i = 0; i < 3; ++i)
                for (size_t j = 0; j < 3; ++j) moved[i] += static_cast<double>(operation.rotation[i][j]) * place[j];
            double nearest = INFINITY;
            for (size_t other = 0; other < count; ++other) {
                if (primitive.atomic_numbers[other] != primitive.atomic_numbers[atom]) continue;
                const Vec3 target = to_fractional(primitive.lattice, primitive.position(other));
                Vec3 rest{};
                Integer3 cell{};
                for (size_t i = 0; i < 3; ++i) {
                    cell[i] = std::llround(moved[i] - target[i]);
                    rest[i] = moved[i] - target[i] - static_cast<double>(cell[i]);
                }
                rest = to_cartesian(primitive.lattice, rest);
                const double distance = std::hypot(rest[0], rest[1], rest[2]);
                if (distance < nearest) nearest = distance, image[atom] = other, image_cell[atom] = cell;
            }
            if (!(nearest <= 10 * tolerance))  // spglib moves the origin within the tolerance
                fail(Status::system, "a symmetry operation takes atom ", atom, " of the primitive cell ", nearest,
                     " A from the nearest atom like it");
        }
        const Mat3 rotation = cartesian_rotation(primitive.lattice, operation.rotation);
        for (const Integer3& translation : map.cells()) {
            SymmetryOperation moved{rotation, std::vector<int32_t>(map.atom_count())};
            for (size_t atom = 0; atom < map.atom_count(); ++atom) {
                const size_t from = map.primitive_atom(atom);
                Integer3 cell{};
                for (size_t i = 0; i < 3; ++i) {
                    cell[i] = image_cell[from][i] + translation[i];
                    for (size_t j = 0; j < 3; ++j) cell[i] += operation.rotation[i][j] * map.cell(atom)[j];
                }
                moved.moved_to[atom] = static_cast<int32_t>(map.atom_at(image[from], cell));
            }
            result.push_back(std::move(moved));
        }
    }
    return result;
}

}  // namespace mlff::phonons
