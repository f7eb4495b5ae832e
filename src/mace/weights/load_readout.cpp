// SPDX-License-Identifier: MIT
// Loads a readout, which turns features into energies.
#include "mace/weights/loaders.h"

namespace mlff::mace {

Readout load_readout(const ModuleReader& reader, int head_count) {
    Readout readout;
    if (reader.is("LinearReadoutBlock")) {
        reader.expect_children({"linear"});
        readout.first = load_linear(reader.at("linear"));
    } else if (reader.is("NonLinearReadoutBlock") || reader.is("NonLinearBiasReadoutBlock")) {
        reader.expect_children({"linear_1", "linear_mid", "linear_2", "non_linearity"});
        readout.first = load_linear(reader.at("linear_1"));
        readout.activation = load_activations(reader.at("non_linearity"));
        if (reader.is("NonLinearBiasReadoutBlock")) readout.middle = load_linear(reader.at("linear_mid"));
        readout.last = load_linear(reader.at("linear_2"));
        const Irreps& hidden = readout.first.out;
        const Irreps& before_last = readout.middle ? readout.middle->out : hidden;
        if (!hidden.all_scalar() || (readout.middle && !readout.middle->in.same_layout(hidden)) ||
            !before_last.same_layout(hidden) || !readout.last->in.same_layout(before_last))
            reader.malformed("hidden irreps '", hidden.text(), "' do not fit from one layer to the next");
        readout.head_slices = head_count;
        if (hidden.dimension() % head_count != 0)
            reader.malformed(hidden.dimension(), " hidden numbers cannot be shared by ", head_count, " heads");
    } else {
        reader.unsupported("readout class ", reader.class_name(), " is not implemented");
    }
    const Irreps& out = (readout.last ? *readout.last : readout.first).out;
    if (!out.all_scalar()) reader.unsupported("a readout of '", out.text(), "': only energies are implemented");
    if (out.dimension() != 1 && out.dimension() != head_count)
        reader.malformed(out.dimension(), " outputs for ", head_count, " heads");
    return readout;
}

}  // namespace mlff::mace
