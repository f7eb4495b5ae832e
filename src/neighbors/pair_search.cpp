// SPDX-License-Identifier: MIT
#include "neighbors/pair_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "neighbors/neighbor_list.h"

namespace mlff {

// The bins b + (lowest ... highest, offset1, offset2) can hold neighbours of atoms in bin b.
struct PairSearch::StencilRow {
    int32_t offset1, offset2;
    int32_t lowest, highest;
};

// Sorted atoms begin ... end - 1 in one image.
struct CandidateRun {
    int32_t begin, end;
    uint32_t image;
};

struct PairSearch::Scratch {
    std::vector<CandidateRun> runs;
    std::vector<ImageRun> images;  // the runs, with neighbours in the same image merged
    Buffer<float> x, y, z;         // candidates where their image is
    Buffer<float> squared;         // distance to the receiver
    Buffer<int32_t> index;         // sorted
    std::vector<int32_t> neighbor;
    size_t neighbor_count = 0;  // used so far; the vector only grows
    std::vector<ImageRun> neighbor_runs;
};

PairSearch::PairSearch() = default;
PairSearch::~PairSearch() = default;

void PairList::resize(int64_t new_atom_count) {
    atom_count = new_atom_count;
    atoms_per_chunk = std::clamp<int64_t>(atom_count / 64, 16, 1024);
    chunk_count = (atom_count + atoms_per_chunk - 1) / atoms_per_chunk;
    if (chunk.size() < static_cast<size_t>(chunk_count)) chunk.resize(static_cast<size_t>(chunk_count));
    neighbor_count.resize_discard(static_cast<size_t>(atom_count));
    run_count.resize_discard(static_cast<size_t>(atom_count));
}

namespace {

constexpr int kGroupBins = 4;  // along direction 0

struct Interval {
    double low, high;
    double distance_to_zero() const { return std::max({low, -high, 0.0}); }
};
Interval operator+(const Interval& a, const Interval& b) { return {a.low + b.low, a.high + b.high}; }
Interval operator*(double factor, const Interval& a) {
    return {std::min(factor * a.low, factor * a.high), std::max(factor * a.low, factor * a.high)};
}

// The lattice vectors in a frame where the first points along x and the second lies in the xy plane.
Mat3 triangular(const Mat3& rows) {
    Mat3 axes = rows;
    Mat3 result{};
    for (size_t k = 0; k < 3; ++k) {
        for (size_t l = 0; l < k; ++l) {
            result[k][l] = rows[k][0] * axes[l][0] + rows[k][1] * axes[l][1] + rows[k][2] * axes[l][2];
            for (size_t axis = 0; axis < 3; ++axis) axes[k][axis] -= result[k][l] * axes[l][axis];
        }
        result[k][k] = std::hypot(axes[k][0], axes[k][1], axes[k][2]);
        for (double& component : axes[k]) component /= result[k][k];
    }
    return result;
}

// Two atoms in the same bin are less than this far apart along a direction, in units of bins. The last term
// covers the rounding of the stencil itself.
double bin_diameter(const CellList& cells, size_t direction) {
    return 1 + 2 * cells.bin_margin / (cells.bin_width[direction] * cells.lattice.height[direction]) + 1e-9;
}

// How far apart, in fractional coordinates, atoms are whose bins are `offset` apart along a direction. Where
// nothing repeats only the near end is right, but only that is used: such directions are perpendicular to others.
Interval separation(const CellList& cells, size_t direction, int offset) {
    const double diameter = bin_diameter(cells, direction);
    return {(offset - diameter) * cells.bin_width[direction], (offset + diameter) * cells.bin_width[direction]};
}

int farthest_bin(const CellList& cells, size_t direction) {
    const double width = cells.bin_width[direction] * cells.lattice.height[direction];
    const double most = std::floor((cells.reach + cells.filter_margin) / width + bin_diameter(cells, direction));
    if (cells.lattice.periodic[direction]) return static_cast<int>(most);
    return static_cast<int>(std::min(most, cells.bin_count[direction] - 1.0));
}

void make_stencil(const CellList& cells, std::vector<PairSearch::StencilRow>& stencil) {
    const Mat3 rows = triangular(cells.lattice.vectors);
    const double reach = cells.reach + cells.filter_margin;
    const double far0 = farthest_bin(cells, 0);
    const int far1 = farthest_bin(cells, 1);
    const int far2 = farthest_bin(cells, 2);
    stencil.clear();
    for (int offset2 = -far2; offset2 <= far2; ++offset2)
        for (int offset1 = -far1; offset1 <= far1; ++offset1) {
            const Interval along1 = separation(cells, 1, offset1);
            const Interval along2 = separation(cells, 2, offset2);
            const double z = (rows[2][2] * along2).distance_to_zero();
            const double y = (rows[1][1] * along1 + rows[2][1] * along2).distance_to_zero();
            const double rest = reach * reach - y * y - z * z;
            if (rest < 0) continue;
            const Interval x = rows[1][0] * along1 + rows[2][0] * along2;
            const double half = std::sqrt(rest);
            const double width = rows[0][0] * cells.bin_width[0];
            const double diameter = bin_diameter(cells, 0);
            const double lowest = std::max(std::ceil((-half - x.high) / width - diameter), -far0);
            const double highest = std::min(std::floor((half - x.low) / width + diameter), far0);
            stencil.push_back({offset1, offset2, static_cast<int>(lowest), static_cast<int>(highest)});
        }
}

struct ImageBin {
    int image, bin;
};
// bin = image * count + remainder. Most calls need no division.
ImageBin split(int bin, int count) {
    if (bin >= 0 && bin < count) return {0, bin};
    const int image = bin >= 0 ? bin / count : -((count - 1 - bin) / count);
    return {image, bin - image * count};
}

// The search for one chunk of receivers.
class ChunkSearch {
public:
    ChunkSearch(const CellList& cells, const Mat3& cell, const PairRule& rule,
                const std::vector<PairSearch::StencilRow>& stencil, PairSearch::Scratch& scratch)
        : cells_(cells), cell_(cell), rule_(rule), stencil_(stencil), scratch_(scratch) {
        const double near = std::max(0.0, cells.reach - cells.filter_margin);
        const double far = cells.reach + cells.filter_margin;
        surely_in_ = std::nextafter(static_cast<float>(near * near), 0.0f);
        surely_out_ = std::nextafter(static_cast<float>(far * far), std::numeric_limits<float>::max());
    }

    void search(int64_t chunk, PairList& pairs) {
        scratch_.neighbor_count = 0;
        scratch_.neighbor_runs.clear();
        const int64_t end = pairs.chunk_end(chunk);
        for (int64_t receiver = pairs.chunk_begin(chunk); receiver < end;) {
            const int64_t group_end = find_group(receiver, end);
            collect_runs(receiver, group_end);
            gather_candidates(receiver);
            for (; receiver < group_end; ++receiver) {
                const size_t neighbors = scratch_.neighbor_count;
                const size_t runs = scratch_.neighbor_runs.size();
                find_neighbors(static_cast<int32_t>(receiver));
                const auto atom = static_cast<size_t>(cells_.sites[static_cast<size_t>(receiver)].atom);
                pairs.neighbor_count[atom] = static_cast<int32_t>(scratch_.neighbor_count - neighbors);
                pairs.run_count[static_cast<size_t>(receiver)] =
                    static_cast<int32_t>(scratch_.neighbor_runs.size() - runs);
            }
        }
        PairList::Chunk& found = pairs.chunk[static_cast<size_t>(chunk)];
        found.neighbor.resize_discard(scratch_.neighbor_count);
        std::copy_n(scratch_.neighbor.data(), scratch_.neighbor_count, found.neighbor.data());
        found.run.resize_discard(scratch_.neighbor_runs.size());
        std::copy(scratch_.neighbor_runs.begin(), scratch_.neighbor_runs.end(), found.run.data());
    }

private:
    // Receivers in the same row within a few bins share their candidates.
    int64_t find_group(int64_t begin, int64_t end) const {
        const int row_length = cells_.bin_count[0];
        const int first = cells_.bin[static_cast<size_t>(begin)];
        const int last = std::min(first + kGroupBins - 1, first - first % row_length + row_length - 1);
        int64_t group_end = begin + 1;
        while (group_end < end && cells_.bin[static_cast<size_t>(group_end)] <= last) ++group_end;
        return group_end;
    }

    void collect_runs(int64_t begin, int64_t end) {
        const auto& count = cells_.bin_count;
        const auto& periodic = cells_.lattice.periodic;
        const int first_bin = cells_.bin[static_cast<size_t>(begin)];
        const int row = first_bin / count[0];
        const int first0 = first_bin - row * count[0];
        const int last0 = cells_.bin[static_cast<size_t>(end - 1)] - row * count[0];
        const int bin1 = row % count[1];
        const int bin2 = row / count[1];
        scratch_.runs.clear();
        for (const auto& entry : stencil_) {
            const ImageBin along1 = split(bin1 + entry.offset1, count[1]);
            const ImageBin along2 = split(bin2 + entry.offset2, count[2]);
            if ((along1.image != 0 && !periodic[1]) || (along2.image != 0 && !periodic[2])) continue;
            const int32_t* first = cells_.first_in_bin.data() + (along2.bin * count[1] + along1.bin) * count[0];
            int from = first0 + entry.lowest;
            int to = last0 + entry.highest;
            if (!periodic[0]) {
                from = std::max(from, 0);
                to = std::min(to, count[0] - 1);
            }
            while (from <= to) {
                const ImageBin along0 = split(from, count[0]);
                const int stop = std::min(to - along0.image * count[0], count[0] - 1) + 1;
                if (first[along0.bin] < first[stop])
                    scratch_.runs.push_back({first[along0.bin], first[stop],
                                             pack_image(along0.image, along1.image, along2.image)});
                from = (along0.image + 1) * count[0];
            }
        }
    }

    void gather_candidates(int64_t receiver) {
        const uint32_t home = pack_image(0, 0, 0);
        size_t total = 0;
        scratch_.images.clear();
        for (const CandidateRun& run : scratch_.runs) {
            if (run.image == home && run.begin <= receiver && receiver < run.end)
                home_offset_ = static_cast<int64_t>(total) - run.begin;
            total += static_cast<size_t>(run.end - run.begin);
            if (!scratch_.images.empty() && scratch_.images.back().image == run.image)
                scratch_.images.back().count += run.end - run.begin;
            else
                scratch_.images.push_back({run.image, run.end - run.begin});
        }
        for (Buffer<float>* buffer : {&scratch_.x, &scratch_.y, &scratch_.z, &scratch_.squared})
            buffer->resize_discard(total);
        scratch_.index.resize_discard(total);
        size_t place = 0;
        for (const CandidateRun& run : scratch_.runs) {
            copy_run(run, place);
            place += static_cast<size_t>(run.end - run.begin);
        }
    }

    void copy_run(const CandidateRun& run, size_t place) {
        const auto image = unpack_image(run.image);
        const Vec3 shift = shift_vector(cells_.lattice.vectors, image[0], image[1], image[2]);
        const auto shift_x = static_cast<float>(shift[0]);
        const auto shift_y = static_cast<float>(shift[1]);
        const auto shift_z = static_cast<float>(shift[2]);
        const float* __restrict from_x = cells_.x.data() + run.begin;
        const float* __restrict from_y = cells_.y.data() + run.begin;
        const float* __restrict from_z = cells_.z.data() + run.begin;
        float* __restrict x = scratch_.x.data() + place;
        float* __restrict y = scratch_.y.data() + place;
        float* __restrict z = scratch_.z.data() + place;
        int32_t* __restrict index = scratch_.index.data() + place;
        const int32_t count = run.end - run.begin;
        for (int32_t k = 0; k < count; ++k) {
            x[k] = from_x[k] + shift_x;
            y[k] = from_y[k] + shift_y;
            z[k] = from_z[k] + shift_z;
            index[k] = run.begin + k;
        }
    }

    // Fills scratch_.squared; returns how many candidates are too near the cutoff for single precision.
    int measure_candidates(int32_t receiver) {
        const float* __restrict x = scratch_.x.data();
        const float* __restrict y = scratch_.y.data();
        const float* __restrict z = scratch_.z.data();
        float* __restrict squared = scratch_.squared.data();
        const float at_x = cells_.x[static_cast<size_t>(receiver)];
        const float at_y = cells_.y[static_cast<size_t>(receiver)];
        const float at_z = cells_.z[static_cast<size_t>(receiver)];
        const float surely_in = surely_in_;
        const float surely_out = surely_out_;
        const size_t count = scratch_.squared.size();
        int undecided = 0;
        for (size_t k = 0; k < count; ++k) {
            const float dx = x[k] - at_x;
            const float dy = y[k] - at_y;
            const float dz = z[k] - at_z;
            const float r2 = dx * dx + dy * dy + dz * dz;
            squared[k] = r2;
            undecided += static_cast<int>(r2 >= surely_in) & static_cast<int>(r2 < surely_out);
        }
        return undecided;
    }

    void find_neighbors(int32_t receiver) {
        const int undecided = measure_candidates(receiver);
        scratch_.squared[static_cast<size_t>(home_offset_ + receiver)] = std::numeric_limits<float>::infinity();
        const size_t most = scratch_.neighbor_count + scratch_.squared.size() + 1;
        if (scratch_.neighbor.size() < most) scratch_.neighbor.resize(2 * most);
        const float* squared = scratch_.squared.data();
        const int32_t* index = scratch_.index.data();
        for (const ImageRun& image : scratch_.images) {
            int32_t* found = scratch_.neighbor.data() + scratch_.neighbor_count;
            int32_t count = 0;
            for (int32_t k = 0; k < image.count; ++k) {
                found[count] = index[k];
                count += static_cast<int32_t>(squared[k] < surely_out_);
            }
            squared += image.count;
            index += image.count;
            if (rule_.half || (rule_.exact && undecided > 0)) count = keep_wanted(receiver, image.image, found, count);
            if (count == 0) continue;
            scratch_.neighbor_count += static_cast<size_t>(count);
            scratch_.neighbor_runs.push_back({image.image, count});
        }
    }

    int32_t keep_wanted(int32_t receiver, uint32_t image, int32_t* found, int32_t count) const {
        int32_t kept = 0;
        for (int32_t k = 0; k < count; ++k)
            if (is_wanted(receiver, found[k], unpack_image(image))) found[kept++] = found[k];
        return kept;
    }

    bool is_wanted(int32_t receiver, int32_t sender, const std::array<int32_t, 3>& image) const {
        const Site& from = cells_.sites[static_cast<size_t>(receiver)];
        const Site& to = cells_.sites[static_cast<size_t>(sender)];
        if (rule_.half && to.atom < from.atom) return false;
        if (rule_.half && to.atom == from.atom && image < std::array<int32_t, 3>{0, 0, 0}) return false;
        if (!rule_.exact) return true;
        const auto shift = pair_shift(from, to, image);
        const Vec3 vector = edge_vector(from.position.data(), to.position.data(),
                                        shift_vector(cell_, shift[0], shift[1], shift[2]));
        return squared_length(vector) < rule_.cutoff_squared;
    }

    const CellList& cells_;
    const Mat3& cell_;
    const PairRule& rule_;
    const std::vector<PairSearch::StencilRow>& stencil_;
    PairSearch::Scratch& scratch_;
    float surely_in_;
    float surely_out_;
    int64_t home_offset_ = 0;  // candidate that is the receiver itself, less its sorted index
};

}  // namespace

void PairSearch::find(const CellList& cells, const Mat3& cell, const PairRule& rule,
                      ThreadTeam& team, PairList& pairs) {
    const auto workers = static_cast<size_t>(team.size());
    if (scratch_.size() < workers) scratch_.resize(workers);
    pairs.resize(static_cast<int64_t>(cells.sites.size()));
    make_stencil(cells, stencil_);
    const auto search = [&](int64_t chunk, int worker) {
        ChunkSearch(cells, cell, rule, stencil_, scratch_[static_cast<size_t>(worker)]).search(chunk, pairs);
    };
    team.run(pairs.chunk_count, std::ref(search));  // by reference: std::function need not allocate
}

}  // namespace mlff
