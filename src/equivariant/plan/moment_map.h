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

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "equivariant/edge_messages.h"
#include "equivariant/plan/linear_map.h"

namespace mlff::equivariant {

// What atoms of each element send: an element's features, [convolution.in.dimension()]. Empty: they depend on more.
using FeaturesOfElement = std::function<std::vector<double>(int element)>;

template <class Real>
class MomentMaps {
public:
    MomentMaps(const EdgeMessages& messages, const RowLayout& message_layout, FeaturesOfElement senders);

    void prepare(int sender_element);  // makes the element's map; call it before of(), from one thread
    const LinearMap<Real>& of(int sender_element) const { return maps_.at(sender_element); }

    // Of the moments: a block for each path, all with the same stride.
    const RowLayout& layout() const { return layout_; }
    int stride() const { return layout_.blocks.front().stride; }
    int row_count() const { return layout_.size / stride(); }
    int first_row(size_t path) const { return layout_.blocks[path].offset / stride(); }
    Linear plain_map(int sender_element) const;  // map_z above

private:
    const EdgeMessages& messages_;
    FeaturesOfElement senders_;
    Irreps irreps_;
    RowLayout layout_, message_layout_;
    std::map<int, LinearMap<Real>> maps_;
};

// Nothing if `senders` is empty, if the radial weights are not linear in hidden functions of the distance, or if there
// are more of these than radial weights.
template <class Real>
std::optional<MomentMaps<Real>> make_moment_maps(const EdgeMessages& messages, const RowLayout& message_layout,
                                                 FeaturesOfElement senders);

}  // namespace mlff::equivariant
