// SPDX-License-Identifier: MIT
// Energies and forces of a water molecule, isolated and in a periodic box, with the functions of mace_wrapper.h.
//
//     c++ -std=c++17 water.cpp -o water $(pkg-config --cflags --libs mace_wrapper)
//     ./water                  with the model inside mlff
//     ./water X.model          or: ./water small, a model from the model cache
#include <mace_wrapper.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// Owns a handle, and turns errors into exceptions.
class Mace {
public:
    struct Evaluation {
        double energy;
        std::vector<double> forces;  // [atom][3]
    };

    Mace(const std::string& model, const std::string& device) {
        // model_path takes files and the model inside mlff, model_type the names of the model cache.
        const bool is_path = model.find_first_of("/.") != std::string::npos || model == "builtin";
        handle_.reset(
            mace_init(is_path ? model.c_str() : nullptr, is_path ? nullptr : model.c_str(), device.c_str(), 0));
        if (!handle_) throw std::runtime_error(mace_get_error(nullptr));
    }

    Evaluation molecule(const std::vector<double>& positions, const std::vector<int>& numbers) {
        MACEResult result;
        mace_calculate(handle_.get(), positions.data(), numbers.data(), static_cast<int>(numbers.size()), &result);
        return taken(result);
    }

    Evaluation periodic(const std::vector<double>& positions, const std::vector<int>& numbers, const double (&cell)[9],
                        const int (&pbc)[3]) {
        MACEResult result;
        mace_calculate_periodic(handle_.get(), positions.data(), numbers.data(), static_cast<int>(numbers.size()), cell,
                                pbc, &result);
        return taken(result);
    }

private:
    static Evaluation taken(MACEResult& result) {
        if (!result.success) throw std::runtime_error(result.error_msg);
        Evaluation evaluation{result.energy, {result.forces, result.forces + 3 * result.num_atoms}};
        mace_free_result(&result);
        return evaluation;
    }

    struct Deleter {
        void operator()(void* handle) const { mace_destroy(handle); }
    };
    std::unique_ptr<void, Deleter> handle_;
};

static void print(const char* what, const Mace::Evaluation& evaluation) {
    std::printf("%s: %.8f eV\n", what, evaluation.energy);
    for (std::size_t i = 0; i < evaluation.forces.size(); i += 3)
        std::printf("%16.8f %16.8f %16.8f\n", evaluation.forces[i], evaluation.forces[i + 1], evaluation.forces[i + 2]);
}

int main(int argc, char** argv) {
    try {
        Mace mace(argc > 1 ? argv[1] : "builtin", argc > 2 ? argv[2] : "cpu");
        const std::vector<double> positions = {0, 0, 0, 0.96, 0, 0, -0.24, 0.93, 0};
        const std::vector<int> numbers = {8, 1, 1};
        print("molecule", mace.molecule(positions, numbers));
        print("periodic", mace.periodic(positions, numbers, {9, 0, 0, 0, 9, 0, 0, 0, 9}, {1, 1, 1}));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
