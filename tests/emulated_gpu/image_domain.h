// SPDX-License-Identifier: MIT
// A periodic system as one domain, whose ghosts are images of its own atoms. Those of even numbers are copied where
// they are, those of odd ones are sent and received.
#pragma once

#include <algorithm>
#include <cstring>

#include "neighbors/neighbor_list.h"
#include "potential/domain.h"
#include "random_painn.h"

namespace mlff::test {

struct ImageDomain {
    // Neighbours beyond the cutoff are in the list too.
    ImageDomain(const System& system, double cutoff)
        : own_count(system.numbers.size()), numbers(system.numbers), positions(system.positions) {
        NeighborOptions reach;
        reach.cutoff = cutoff + 0.4;
        const BruteForceEdges edges = brute_force_neighbors(system.view(), reach);
        first = edges.first;
        for (size_t e = 0; e < edges.sender.size(); ++e) {
            const auto sender = static_cast<size_t>(edges.sender[e]);
            const int32_t* s = &edges.shift[3 * e];
            const Vec3 shift = shift_vector(system.cell, s[0], s[1], s[2]);
            Vec3 at;
            for (size_t k = 0; k < 3; ++k) at[k] = system.positions[3 * sender + k] + shift[k];
            size_t place = 0;
            while (place < numbers.size() && !std::equal(at.begin(), at.end(), &positions[3 * place])) ++place;
            neighbors.push_back(static_cast<int32_t>(place));
            if (place < numbers.size()) continue;
            numbers.push_back(system.numbers[sender]);
            positions.insert(positions.end(), at.begin(), at.end());
            if (source.size() % 2 == 0) {
                source.push_back(-1 - static_cast<int32_t>(sender));
            } else {
                source.push_back(static_cast<int32_t>(sent.size()));
                sent.push_back(static_cast<int32_t>(sender));
            }
        }
        loop.rows = sent.size();
    }

    Domain domain() {
        Domain domain;
        domain.atoms.atom_count = static_cast<int64_t>(numbers.size());
        domain.atoms.atomic_numbers = numbers.data();
        domain.atoms.positions = positions.data();
        domain.owned_count = static_cast<int64_t>(own_count);
        domain.first = first.data();
        domain.neighbors = neighbors.data();
        domain.halo = {sent, static_cast<int64_t>(sent.size()), source, &loop};
        domain.list_version = 5;
        return domain;
    }
    // Adds what ghosts have to the atoms that they copy. `numbers_of_atoms` [atom][size]; own atoms remain.
    void add_ghosts(Numbers& numbers_of_atoms, size_t size) const {
        for (size_t ghost = own_count; ghost < numbers.size(); ++ghost) {
            const int32_t from = source[ghost - own_count];
            const auto owner = static_cast<size_t>(from < 0 ? -1 - from : sent[static_cast<size_t>(from)]);
            for (size_t k = 0; k < size; ++k) numbers_of_atoms[size * owner + k] += numbers_of_atoms[size * ghost + k];
        }
        numbers_of_atoms.resize(size * own_count);
    }

    struct Loop : HaloExchange {
        size_t rows = 0, count = 0;
        void exchange(const void* from, void* to, size_t row_bytes) override {
            std::memcpy(to, from, rows * row_bytes);
            ++count;
        }
    } loop;
    size_t own_count;
    std::vector<int32_t> numbers, neighbors, sent, source;
    Numbers positions;
    std::vector<int64_t> first;
};

}  // namespace mlff::test
