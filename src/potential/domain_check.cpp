// SPDX-License-Identifier: MIT
#include "potential/domain_check.h"

#include <limits>

#include "core/error.h"
#include "neighbors/lattice.h"
#include "neighbors/listed_edges.h"

namespace mlff {
namespace {

constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();  // Halo::source has 32-bit indices

}  // namespace

void DomainCheck::check(const Domain& domain) {
    const Halo& halo = domain.halo;
    const auto is_own = [&](int64_t atom) { return atom >= 0 && atom < domain.owned_count; };
    const int64_t ghost_count = domain.atoms.atom_count - domain.owned_count;
    const auto sent_count = static_cast<int64_t>(halo.sent.size()),
               source_count = static_cast<int64_t>(halo.source.size());
    const std::array<int64_t, 6> given = {domain.list_version, domain.owned_count, ghost_count,
                                          sent_count,          source_count,       halo.received_count};
    if (domain.list_version != 0 && domain.list_version == passed_[0] && given != passed_)
        fail(Status::argument, "list_version ", domain.list_version,
             " is that of the last domain, but the numbers of atoms or rows differ");
    const bool has_passed = domain.list_version != 0 && given == passed_;
    passed_ = {};
    make_lattice(domain.whole_cell());  // rejects an invalid cell
    if (!halo.exchange) fail(Status::argument, "the domain's function for exchanging rows with other domains is NULL");
    if (domain.owned_count < 0 || ghost_count < 0)
        fail(Status::argument, "the domain has ", domain.owned_count, " own atoms, but ", domain.atoms.atom_count,
             " atoms in all");
    if (halo.received_count < 0 || halo.received_count > kMostRows)
        fail(Status::argument, "the domain receives ", halo.received_count, " rows, expected 0 to ", kMostRows);
    if (source_count != ghost_count)
        fail(Status::argument, "the domain has ", ghost_count,
             " ghosts, but the list of where their rows come from has ", source_count, " entries");
    if (sent_count > 0 && !halo.sent.data())
        fail(Status::argument, "the domain sends ", sent_count, " rows, but the list of their atoms is NULL");
    if (source_count > 0 && !halo.source.data())
        fail(Status::argument, "the domain has ", ghost_count,
             " ghosts, but the list of where their rows come from is NULL");
    if (!has_passed) {
        const ListedNeighbors list = {domain.owned_count, domain.first, domain.neighbors};
        check_listed_neighbors(domain.atoms.atom_count, list);
        check_both_ways(list);
        for (size_t row = 0; row < halo.sent.size(); ++row)
            if (!is_own(halo.sent[row]))
                fail(Status::argument, "sent row ", row, " is that of atom ", halo.sent[row], ", expected one of the ",
                     domain.owned_count, " own atoms");
        for (size_t ghost = 0; ghost < halo.source.size(); ++ghost) {
            const int64_t source = halo.source[ghost];
            if (source >= halo.received_count)
                fail(Status::argument, "ghost ", ghost, " has received row ", source,
                     ", but the number of received rows is ", halo.received_count);
            if (source < 0 && !is_own(-1 - source))
                fail(Status::argument, "ghost ", ghost, " is an image of atom ", -1 - source, ", expected one of the ",
                     domain.owned_count, " own atoms");
        }
    }
    passed_ = given;
}

}  // namespace mlff
