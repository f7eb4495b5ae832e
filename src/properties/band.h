// SPDX-License-Identifier: MIT
// Paths of least energy between two minima, and the saddle on the way.
//
// Nudged elastic band: springs hold images apart, along tangents that point to the higher neighbour (Henkelman and
// Jonsson 2000), and the forces of the model act across them. String (E, Ren and Vanden-Eijnden 2002): no springs,
// images are spread evenly after every move. Either way the highest image may climb: the force along the path is
// inverted (Henkelman, Uberuaga and Jonsson 2000), so that it ends on the saddle.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "properties/cautious_minimizer.h"
#include "properties/path.h"

namespace mlff {

struct BandOptions {
    enum class Method { elastic_band, string };
    Method method = Method::elastic_band;
    bool climbs = true;
    double climbs_below = 0.5;    // eV/angstrom: the highest image climbs once no force is larger
    double spring = 1;            // eV/angstrom^2
    double largest_force = 0.05;  // eV/angstrom; converged when no force on the band is larger
    int64_t step_limit = 500;     // moves
};

class Band {
public:
    // Connected images; the ends stay where they are. `is_fixed` [atom] is empty if all move. Throws Error{argument}.
    Band(std::vector<Image> images, std::vector<uint8_t> is_fixed, RigidMotion motion, const BandOptions& options);

    // Evaluates all images that are to be known as one batch. Before the first move, and after each.
    void evaluate(const ImageForces& forces);
    void move();

    const std::vector<Image>& images() const { return images_; }
    const std::vector<ImageResult>& results() const { return results_; }
    // Of length 1 and along the path; those of the ends point to and from their neighbours.
    const std::vector<Image>& tangents() const { return tangents_; }
    std::vector<double> energies() const;
    std::vector<double> slopes() const;  // of the energy along the path, eV/angstrom
    // The largest force on an atom of an image: what is left across the path, springs, and for the climbing image all.
    double largest_force() const { return largest_force_; }
    // The image between the ends that is highest; none if an end is higher than all between.
    std::optional<size_t> highest() const;
    std::optional<size_t> climbing() const { return climbing_; }
    int64_t move_count() const { return move_count_; }
    bool is_converged() const { return is_converged_; }
    bool is_finished() const { return is_converged_ || move_count_ >= options_.step_limit; }

private:
    void set_tangents();
    void set_gradient();
    void spread();

    std::vector<Image> images_, tangents_;
    std::vector<uint8_t> is_fixed_;
    RigidMotion motion_;
    BandOptions options_;
    std::vector<ImageResult> results_;
    CautiousMinimizer minimizer_;
    std::vector<double> variables_, gradient_;  // of all images between the ends
    std::optional<size_t> climbing_;
    double largest_force_ = 0;
    int64_t move_count_ = 0;
    bool is_converged_ = false, may_climb_ = false;
};

}  // namespace mlff
