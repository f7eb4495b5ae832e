// SPDX-License-Identifier: MIT
// Products of rows and a matrix on the emulated GPU's tensor cores, against sums in double precision.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "gpu/engine/product_lane.h"
#include "gpu/engine/row_product.h"
#include "gpu/runtime/cuda_check.h"
#include "random_painn.h"

using namespace mlff;
using namespace mlff::gpu;

namespace {

// product [16 Tiles][columns] = rows [16 Tiles][16 Blocks] times matrix. A warp has 16 columns.
template <class Stored, int Blocks, int Tiles, int Ahead, class Real = RealOf<Stored>>
void multiply_kernel(const RowMatrix<Stored> matrix, const Real* rows, Real* product, int blocks) {
    const ProductLane place;
    auto* const shared = reinterpret_cast<RowBlock<Stored>*>(launched_shared_memory());  // [Blocks][Tiles]
    const int warps = static_cast<int>(blockDim.x) / 32, columns = 16 * warps;
    for (int block = place.warp; block < Blocks; block += warps)
        for (int t = 0; t < Tiles; ++t) {
            Real cells[2][4];
            for (int h = 0; h < 2; ++h)
                for (int i = 0; i < 4; ++i)
                    cells[h][i] = rows[(16 * t + 8 * h + place.g) * (16 * Blocks) + 16 * block + 4 * place.q + i];
            store_rows(shared[block * Tiles + t], place.lane, cells);
        }
    RowProduct<Stored, Blocks, Ahead> own(matrix, 16 * place.warp, place.lane);
    __syncthreads();
    Real cells[Tiles][2][4];
    own.multiply(shared, cells, blocks);
    for (int t = 0; t < Tiles; ++t)
        for (int h = 0; h < 2; ++h)
            for (int i = 0; i < 4; ++i)
                product[(16 * t + 8 * h + place.g) * columns + 16 * place.warp + 4 * place.q + i] = cells[t][h][i];
}

template <class Real>
struct Result {
    std::vector<Real> product;
    double error = 0;  // the largest of all, relative to the lengths of the row and of the column; or NaN

    void compare(const std::vector<Real>& rows, const std::vector<double>& matrix, size_t depth, size_t columns,
                 size_t used) {
        for (size_t r = 0; r < rows.size() / depth; ++r)
            for (size_t c = 0; c < columns; ++c) {
                double expected = 0, row_square = 0, column_square = 0;
                for (size_t k = 0; k < used; ++k) {
                    const double a = static_cast<double>(rows[r * depth + k]), b = matrix[k * columns + c];
                    expected += a * b;
                    row_square += a * a;
                    column_square += b * b;
                }
                const double off = std::abs(static_cast<double>(product[r * columns + c]) - expected),
                             size = std::sqrt(row_square) * std::sqrt(column_square);
                const double relative = off == 0 ? 0 : off / size;
                if (!std::isnan(error) && !(relative <= error)) error = relative;
            }
    }
};

template <class Stored, int Blocks, int Tiles, int Ahead, class Real = RealOf<Stored>>
Result<Real> multiply(const std::vector<Real>& rows, const std::vector<double>& matrix, int columns,
                      int blocks = Blocks) {
    const PackedRowMatrix<Stored> packed = pack_row_matrix<Stored>(matrix, 16 * Blocks, columns);
    Result<Real> result;
    result.product.assign(static_cast<size_t>(16 * Tiles * columns), static_cast<Real>(NAN));
    const RowMatrix<Stored> view = {packed.units.data(), packed.depth_blocks, packed.unscale};
    const LaunchShape shape = {dim3(1), 2 * columns, sizeof(RowBlock<Stored>) * Blocks * Tiles};
    launch("multiplying", multiply_kernel<Stored, Blocks, Tiles, Ahead>, shape, nullptr, view, rows.data(),
           result.product.data(), blocks);
    result.compare(rows, matrix, 16 * Blocks, static_cast<size_t>(columns), static_cast<size_t>(16 * blocks));
    return result;
}

std::vector<double> random_matrix(test::Random& random, int depth, int columns, double scale) {
    std::vector<double> matrix(static_cast<size_t>(depth * columns));
    for (double& x : matrix) x = scale * random(-1, 1);
    return matrix;
}
// Rows between 1e-30 and 1e30, some of them zero, and in some a few numbers that are much larger than the others.
template <class Real>
std::vector<Real> random_rows(test::Random& random, int rows, int depth) {
    std::vector<Real> all;
    for (int r = 0; r < rows; ++r) {
        const double scale = r % 5 == 2 ? 0 : std::pow(10, r % 3 == 0 ? 0 : random(-30, 30));
        for (int k = 0; k < depth; ++k)
            all.push_back(static_cast<Real>(scale * random(-1, 1) *
                                            (r % 4 == 3 && random.below(5) > 0 ? std::pow(10, -random(0, 8)) : 1)));
    }
    return all;
}

// Of the lengths of the row and of the column: an error of 2^-22 for each of the two numbers and as much for low times
// low, which do not add up.
template <class Real>
constexpr double kTolerance = sizeof(Real) == 4 ? 3e-7 : 1e-15;

template <class Real, int Blocks, int Tiles, int Ahead>
void check(int columns, double matrix_scale) {
    CAPTURE(Blocks);
    CAPTURE(Tiles);
    CAPTURE(Ahead);
    CAPTURE(columns);
    CAPTURE(matrix_scale);
    test::Random random(static_cast<unsigned>(100 * Blocks + 10 * Tiles + Ahead));
    const auto rows = random_rows<Real>(random, 16 * Tiles, 16 * Blocks);
    const auto matrix = random_matrix(random, 16 * Blocks, columns, matrix_scale);
    CHECK(multiply<Real, Blocks, Tiles, Ahead>(rows, matrix, columns).error <= kTolerance<Real>);
}

// Depths of the students' layers, F / 2 to 3 F for F = 32 ... 256, in blocks of 16.
template <class Real, int Tiles, int Ahead>
void check_depths(double matrix_scale) {
    check<Real, 1, Tiles, Ahead>(32, matrix_scale);
    check<Real, 2, Tiles, Ahead>(16, matrix_scale);
    check<Real, 6, Tiles, Ahead>(32, matrix_scale);
    check<Real, 8, Tiles, Ahead>(128, matrix_scale);
    check<Real, 24, Tiles, Ahead>(16, matrix_scale);
}

}  // namespace

TEST_CASE("products of rows of all sizes have the errors of single precision") {
    for (const double scale : {1.0, 1e-5, 3e4}) {
        check_depths<float, 1, 4>(scale);
        check_depths<float, 2, 2>(scale);
        check_depths<float, 3, 4>(scale);
    }
    check_depths<float, 4, 1>(1);
    check_depths<float, 6, 1>(1);
    check<float, 16, 3, 2>(256, 1);
    check<float, 48, 2, 2>(16, 1);
    check_depths<double, 1, 2>(1);
    check_depths<double, 3, 2>(1);
    check<double, 48, 1, 2>(16, 1);
}

TEST_CASE("products of halves have the errors of half precision, for rows within its range and matrices of any size") {
    test::Random random(5);
    for (const double row_scale : {1e-2, 1.0, 1e4})
        for (const double matrix_scale : {1e-6, 1.0, 1e5}) {
            CAPTURE(row_scale);
            CAPTURE(matrix_scale);
            std::vector<float> rows;
            for (int i = 0; i < 32 * 128; ++i) rows.push_back(static_cast<float>(row_scale * random(-1, 1)));
            const auto matrix = random_matrix(random, 128, 64, matrix_scale);
            CHECK(multiply<__half, 8, 2, 2>(rows, matrix, 64).error <= 3e-4);
            CHECK(multiply<__half, 8, 2, 2>(rows, matrix, 64, 4).error <= 3e-4);
            rows[3 * 128 + 5] = 7e4F;  // infinite as a half
            const auto product = multiply<__half, 8, 2, 2>(rows, matrix, 64).product;
            for (size_t r = 0; r < 32; ++r)
                for (size_t c = 0; c < 64; ++c) CHECK(std::isfinite(product[64 * r + c]) == (r != 3));
        }
}

TEST_CASE("sizes of rows and matrices may cancel, and only a part of the depth may be used") {
    test::Random random(3);
    std::vector<float> rows;
    for (int i = 0; i < 16 * 128; ++i) rows.push_back(static_cast<float>(1e33 * random(-1, 1)));
    CHECK(multiply<float, 8, 1, 4>(rows, random_matrix(random, 128, 32, 1e-33), 32).error <= kTolerance<float>);
    for (float& x : rows) x *= 1e-33F * 1e-34F;
    CHECK(multiply<float, 8, 1, 4>(rows, random_matrix(random, 128, 32, 1e34), 32).error <= kTolerance<float>);
    for (float& x : rows) x *= 1e34F;
    CHECK(multiply<float, 8, 1, 4>(rows, random_matrix(random, 128, 32, 1), 32, 4).error <= kTolerance<float>);
    CHECK(multiply<float, 8, 1, 4>(rows, random_matrix(random, 128, 32, 0), 32).error == 0);
}

TEST_CASE("a row's product is the same bits beside other rows, and what is not a number stays in its row") {
    test::Random random(4);
    const auto matrix = random_matrix(random, 128, 32, 0.1);
    auto rows = random_rows<float>(random, 64, 128);
    const auto alone = multiply<float, 8, 4, 1>(rows, matrix, 32).product;
    rows[5 * 128 + 70] = NAN;
    rows[30 * 128] = INFINITY;
    const auto beside = multiply<float, 8, 4, 1>(rows, matrix, 32).product;
    for (size_t r = 0; r < 64; ++r)
        for (size_t c = 0; c < 32; ++c) {
            const float found = beside[32 * r + c];
            if (r == 5 || r == 30)
                CHECK(!std::isfinite(found));
            else
                CHECK(found == alone[32 * r + c]);
        }
}
