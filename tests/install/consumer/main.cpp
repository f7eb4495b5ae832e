// SPDX-License-Identifier: MIT
// A C++ program that uses an installed mlff: prints the energy of a water molecule, after checking forces and stress of
// a periodic box against changes of the energy, and how errors arrive.
#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include <mlff/mlff.hpp>

namespace {

// A molecule in a box with one long edge, which may be stretched along x.
mlff::Atoms box(double stretch, double shift) {
    return {{8, 1, 1},
            {0, 0, 0, (0.9572 + shift) * stretch, 0, 0, -0.239987 * stretch, 0.926627, 0},
            std::array<double, 9>{5 * stretch, 0, 0, 0, 5, 0, 0, 0, 6},
            {true, true, true},
            0,
            1};
}

bool is_close(double found, double expected) { return std::abs(found - expected) <= 1e-5; }

}  // namespace

int main() {
    try {
        mlff::Options options;
        options.device = "cpu";
        options.precision = MLFF_PRECISION_FP64;
        mlff::Session session(mlff::Model("builtin"), options);

        const double step = 1e-4, volume = 5 * 5 * 6;
        const mlff::Evaluation here = session.evaluate(box(1, 0));
        const double force =
            -(session.evaluate(box(1, step)).energy - session.evaluate(box(1, -step)).energy) / (2 * step);
        const double stress = (session.evaluate(box(1 + step, 0)).energy - session.evaluate(box(1 - step, 0)).energy) /
                              (2 * step) / volume;
        if (here.forces.size() != 9 || !is_close(here.forces[3], force))
            throw std::runtime_error("the force is not -dE/dx");
        if (!here.stress || !is_close((*here.stress)[0], stress))
            throw std::runtime_error("the stress is not (dE/dstrain)/volume");

        try {
            session.evaluate({{92}, {0, 0, 0}, {}, {}, 0, 1});
            throw std::runtime_error("an element that the model does not know was taken");
        } catch (const mlff::StatusError& error) {
            if (error.status() != MLFF_ERROR_SYSTEM) throw;
        }
        const mlff::Evaluation water =
            session.evaluate({{8, 1, 1}, {0, 0, 0, 0.9572, 0, 0, -0.239987, 0.926627, 0}, {}, {}, 0, 1});
        std::printf("%.8f\n", water.energy);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
