// SPDX-License-Identifier: MIT
#include "neighbors/pair_search.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <utility>

#include "neighbors/neighbor_list.h"

namespace mlff {

struct PairSearch::Scratch {
    std::vector<CandidateRun> runs;
    std::vector<ImageRun> images;  // the runs; adjacent runs of the same image are merged
    Buffer<float> x, y, z;         // positions of the candidates' images
    Buffer<float> squared;         // distance to the receiver
    Buffer<int32_t> index;         // sorted index
    std::vector<int32_t> neighbor;
    size_t neighbor_count = 0;  // elements in use; the buffer only grows
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

// Counts the pairs of all workers. The sum is exact, so whether it exceeds the limit does not depend on their order.
class PairCount {
public:
    explicit PairCount(int64_t most) : most_(most) {}
    void add(size_t pairs) { total_.fetch_add(static_cast<int64_t>(pairs), std::memory_order_relaxed); }
    bool is_too_large() const { return total_.load(std::memory_order_relaxed) > most_; }

private:
    const int64_t most_;
    std::atomic<int64_t> total_{0};
};
constexpr size_t kPairsBetweenCounts = 1 << 16;  // of one worker

// Searches one chunk of receivers.
class ChunkSearch {
public:
    ChunkSearch(const CellList& cells, const Mat3& cell, const PairRule& rule, const std::vector<StencilRow>& stencil,
                PairSearch::Scratch& scratch, PairCount& count)
        : cells_(cells), cell_(cell), rule_(rule), stencil_(stencil), scratch_(scratch), count_(count) {
        surely_in_ = cells.grid.surely_within();
        surely_out_ = cells.grid.surely_beyond();
    }

    void search(int64_t chunk, PairList& pairs) {
        scratch_.neighbor_count = 0;
        scratch_.neighbor_runs.clear();
        const int64_t end = pairs.chunk_end(chunk);
        size_t counted = 0;
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
                if (scratch_.neighbor_count - counted < kPairsBetweenCounts) continue;
                count_.add(scratch_.neighbor_count - std::exchange(counted, scratch_.neighbor_count));
                if (count_.is_too_large()) return;
            }
        }
        count_.add(scratch_.neighbor_count - counted);
        if (count_.is_too_large()) return;
        PairList::Chunk& found = pairs.chunk[static_cast<size_t>(chunk)];
        found.neighbor.resize_discard(scratch_.neighbor_count);
        std::copy_n(scratch_.neighbor.data(), scratch_.neighbor_count, found.neighbor.data());
        found.run.resize_discard(scratch_.neighbor_runs.size());
        std::copy(scratch_.neighbor_runs.begin(), scratch_.neighbor_runs.end(), found.run.data());
    }

private:
    // Receivers within a few bins of the same row share their candidates.
    int64_t find_group(int64_t begin, int64_t end) const {
        const int row_length = cells_.grid.bin_count[0];
        const int first = cells_.bin[static_cast<size_t>(begin)];
        const int last = std::min(first + kGroupBins - 1, first - first % row_length + row_length - 1);
        int64_t group_end = begin + 1;
        while (group_end < end && cells_.bin[static_cast<size_t>(group_end)] <= last) ++group_end;
        return group_end;
    }

    void collect_runs(int64_t begin, int64_t end) {
        const BinnedAtoms atoms = {cells_.grid.bin_count, cells_.grid.lattice.periodic, cells_.first_in_bin.data()};
        const BinRange around =
            bin_range(atoms, cells_.bin[static_cast<size_t>(begin)], cells_.bin[static_cast<size_t>(end - 1)]);
        scratch_.runs.clear();
        for (const StencilRow& row : stencil_) {
            RunCursor cursor(atoms, around, row);
            for (CandidateRun run; cursor.next(run);) scratch_.runs.push_back(run);
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
        const Vec3 shift = shift_vector(cells_.grid.lattice.vectors, image[0], image[1], image[2]);
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

    // Fills scratch_.squared. Returns how many candidates are too close to the cutoff for single precision to decide.
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
        if (rule_.half && !is_in_half_list(from.atom, to.atom, image)) return false;
        if (!rule_.exact) return true;
        const auto shift = pair_shift(from, to, image);
        const Vec3 vector =
            edge_vector(from.position.data(), to.position.data(), shift_vector(cell_, shift[0], shift[1], shift[2]));
        return squared_length(vector) < rule_.cutoff_squared;
    }

    const CellList& cells_;
    const Mat3& cell_;
    const PairRule& rule_;
    const std::vector<StencilRow>& stencil_;
    PairSearch::Scratch& scratch_;
    PairCount& count_;
    float surely_in_;
    float surely_out_;
    int64_t home_offset_ = 0;  // candidate index of the receiver itself, minus its sorted index
};

}  // namespace

bool PairSearch::find(const CellList& cells, const Mat3& cell, const PairRule& rule, ThreadTeam& team,
                      PairList& pairs) {
    const auto workers = static_cast<size_t>(team.size());
    if (scratch_.size() < workers) scratch_.resize(workers);
    pairs.resize(static_cast<int64_t>(cells.sites.size()));
    make_stencil(cells.grid, stencil_);
    PairCount count(rule.most_pairs);
    const auto search = [&](int64_t chunk, int worker) {
        if (count.is_too_large()) return;
        ChunkSearch(cells, cell, rule, stencil_, scratch_[static_cast<size_t>(worker)], count).search(chunk, pairs);
    };
    team.run(pairs.chunk_count, std::ref(search));  // by reference: std::function need not allocate
    if (!count.is_too_large()) return true;
    pairs = PairList();
    scratch_.clear();
    return false;
}

}  // namespace mlff
