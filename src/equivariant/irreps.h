// SPDX-License-Identifier: MIT
// Lists of irreducible representations of O(3), as e3nn writes them: "8x0e+8x1o" is eight scalars, then eight vectors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mlff {

inline constexpr int kMaxDegree = 11;  // the largest l of e3nn's own harmonics

struct Irrep {
    int degree = 0;  // l
    int parity = 1;  // +1 (e) or -1 (o)

    int dimension() const { return 2 * degree + 1; }
    bool is_scalar() const { return degree == 0 && parity == 1; }
    bool operator==(const Irrep&) const = default;
};

// `multiplicity` copies of one irrep, stored [copy][component] from `offset` on.
struct IrrepBlock {
    int multiplicity = 0;
    Irrep irrep;
    int offset = 0;

    int size() const { return multiplicity * irrep.dimension(); }
};

class Irreps {
public:
    Irreps() = default;
    // Throws Error{format} for text that is not irreps, and for sizes that no model has.
    static Irreps parse(std::string_view text);

    void append(int multiplicity, Irrep irrep);

    const std::vector<IrrepBlock>& blocks() const { return blocks_; }
    int block_count() const { return static_cast<int>(blocks_.size()); }
    const IrrepBlock& operator[](int block) const { return blocks_[static_cast<size_t>(block)]; }
    int dimension() const { return dimension_; }
    int copies_of(Irrep irrep) const;  // sum of the multiplicities of its blocks
    bool all_scalar() const;           // only 0e
    // Merges adjacent blocks of the same irrep and drops empty blocks. The memory layout stays the same.
    Irreps merged() const;
    bool same_layout(const Irreps& other) const;
    std::string text() const;

private:
    std::vector<IrrepBlock> blocks_;
    int dimension_ = 0;
};

}  // namespace mlff
