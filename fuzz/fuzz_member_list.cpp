// SPDX-License-Identifier: MIT
// Reads arbitrary bytes as a list of the members of a committee. Accepted members have names and weights that can be
// used, and are the same after writing and reading.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "committee/member_list.h"
#include "core/error.h"

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const auto members = mlff::parse_member_list(text, "fuzz");
        require(mlff::is_member_list(text));
        require(members.size() >= 2 && members.size() <= mlff::kMostMembers);
        std::string written = "mlff committee\n";
        for (const mlff::ListedMember& member : members) {
            require(!member.name.empty() && member.name.find('\n') == std::string::npos);
            require(std::isfinite(member.weight) && member.weight > 0);
            char weight[64];
            std::snprintf(weight, sizeof weight, " weight=%.17g\n", member.weight);
            written += member.name + weight;
        }
        require(mlff::parse_member_list(written, "fuzz") == members);
    } catch (const mlff::Error&) {}
    return 0;
}
