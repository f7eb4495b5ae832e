// SPDX-License-Identifier: MIT
// Moments, for the first layer, where the features of a sender depend on its element z alone. The radial network ends
// in a linear layer,
//   R[k] = sum over h of f[h](r) W[h][k],
// so sums over edges can be done first, and the rest is one linear map for each element:
//   moment[z][lm][h] = sum over edges from atoms of element z of Y[lm] f[h](r),
//   message          = sum over z of map_z(moment[z]),  map_z = (message map) (features of z) W.
// This is less work, because the network has fewer hidden functions h than (channels times paths) k, and there are
// fewer elements than edges.
#pragma once

#include <map>
#include <optional>

#include "mace/plan/linear_map.h"
#include "mace/weights/weights.h"

namespace mlff::mace::plan {

template <class Real>
class MomentMaps {
public:
    MomentMaps(const Weights& weights, const Layer& layer, const RowLayout& messages);

    void prepare(int sender_element);  // makes the element's map; call it before of(), from one thread
    const LinearMap<Real>& of(int sender_element) const { return maps_.at(sender_element); }

    // Of the moments: a block for each path, all with the same stride.
    const RowLayout& layout() const { return layout_; }
    int stride() const { return layout_.blocks.front().stride; }
    int row_count() const { return layout_.size / stride(); }
    int first_row(size_t path) const { return layout_.blocks[path].offset / stride(); }
    Linear plain_map(int sender_element) const;  // map_z above

private:
    const Weights& weights_;
    const Interaction& interaction_;
    Irreps irreps_;
    RowLayout layout_, messages_;
    std::map<int, LinearMap<Real>> maps_;
};

// Nothing if the layer is not the first, if the features of senders do not depend on their element alone, or if there
// are more hidden functions than radial weights.
template <class Real>
std::optional<MomentMaps<Real>> make_moment_maps(const Weights& weights, const Layer& layer, const RowLayout& messages);

}  // namespace mlff::mace::plan
