// SPDX-License-Identifier: MIT
// A C++ program that uses an installed mlff: prints the energy of a water molecule.
#include <cstdio>
#include <exception>

#include <mlff/mlff.hpp>

int main() {
    try {
        mlff::Options options;
        options.device = "cpu";
        options.precision = MLFF_PRECISION_FP64;
        mlff::Session session(mlff::Model("builtin"), options);
        const mlff::Evaluation water = session.evaluate({{8, 1, 1}, {0, 0, 0, 0.9572, 0, 0, -0.239987, 0.926627, 0}, {}, {}, 0, 1});
        std::printf("%.8f\n", water.energy);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
