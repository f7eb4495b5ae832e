// SPDX-License-Identifier: MIT
// Reads arbitrary bytes as a pickle, twice with the same result, and visits everything reachable from the root.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "formats/pickle.h"

namespace {

// A number that depends on every reachable node.
uint64_t fingerprint(const mlff::Pickle& graph) {
    std::unordered_set<mlff::PickleId> seen;
    std::vector<mlff::PickleId> waiting = {graph.root().id()};
    uint64_t sum = 0;
    const auto mix = [&](uint64_t value) { sum = (sum ^ value) * 0x100000001b3; };
    while (!waiting.empty()) {
        const mlff::PickleId id = waiting.back();
        waiting.pop_back();
        if (!seen.insert(id).second) continue;
        const mlff::PickleNode& node = graph.node(id);
        mix(static_cast<uint64_t>(node.kind));
        mix(static_cast<uint64_t>(node.integer));
        for (char letter : node.text) mix(static_cast<unsigned char>(letter));
        for (mlff::PickleId item : node.items) {
            mix(item);
            waiting.push_back(item);
        }
        waiting.insert(waiting.end(), {node.callable, node.arguments, node.state});
    }
    return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const mlff::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    try {
        const mlff::Pickle graph(bytes, "fuzz"), again(bytes, "fuzz");
        if (fingerprint(graph) != fingerprint(again)) std::abort();
        graph.root().get("state");
        graph.root().state().has("_modules");
    } catch (const mlff::Error&) {}
    return 0;
}
