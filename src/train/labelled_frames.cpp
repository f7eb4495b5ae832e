// SPDX-License-Identifier: MIT
#include "train/labelled_frames.h"

#include <algorithm>
#include <cmath>

#include "core/elements.h"
#include "core/error.h"
#include "formats/extxyz.h"
#include "train/packed_frames.h"

namespace mlff::train {
namespace {

bool all_finite(const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

// A hash that is the same on all machines and in all runs, unlike std::hash.
uint64_t text_hash(const std::string& text) {
    uint64_t hash = 14695981039346656037ull;  // FNV-1a
    for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ull;
    hash ^= hash >> 31;
    hash *= 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}
Split split_by_hash(const std::string& text) {
    const uint64_t share = text_hash(text) % 100;
    return share < 90 ? Split::train : share < 95 ? Split::valid : Split::test;
}

constexpr size_t kFewMolecules = 20;  // too few to hold some out

// Assigns a split to each frame that has none.
void deal(FrameSet& set) {
    std::vector<LabelledFrame*> dealt;
    std::array<int64_t, 3> counts{};
    std::map<std::string, std::vector<LabelledFrame*>> molecules;
    for (LabelledFrame& frame : set.frames) {
        if (!frame.split) {
            frame.split = split_by_hash(frame.molecule);
            dealt.push_back(&frame);
            molecules[frame.molecule].push_back(&frame);
        }
        ++counts[static_cast<size_t>(*frame.split)];
    }
    if (dealt.size() < 3 || std::find(counts.begin(), counts.end(), 0) == counts.end()) return;
    // Groups in a stable order: a twentieth of them, at least one, for validation, and as many for the test.
    std::vector<std::pair<uint64_t, std::vector<LabelledFrame*>>> groups;
    set.is_dealt_by_frame = molecules.size() < kFewMolecules;
    if (set.is_dealt_by_frame)
        for (size_t i = 0; i < dealt.size(); ++i)
            groups.push_back({text_hash(dealt[i]->molecule + "#" + std::to_string(i)), {dealt[i]}});
    else
        for (const auto& [name, frames] : molecules) groups.emplace_back(text_hash(name), frames);
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const size_t share = (groups.size() + 19) / 20;
    for (size_t i = 0; i < groups.size(); ++i)
        for (LabelledFrame* frame : groups[i].second)
            frame->split = i < share ? Split::valid : i < 2 * share ? Split::test : Split::train;
}

// "" if the frame is usable.
std::string fault_of(const LabelledFrame& frame, const FrameRules& rules) {
    const auto atoms = static_cast<size_t>(frame.atom_count());
    if (atoms == 0) return "no atoms";
    if (frame.positions.size() != 3 * atoms || frame.forces.size() != 3 * atoms)
        return "not three positions and forces for each atom";
    if (!all_finite(frame.positions) || !all_finite(frame.forces) || !std::isfinite(frame.energy))
        return "numbers that are not finite";
    for (const int32_t number : frame.atomic_numbers)
        if (number < 1 || number > 96) return "an element without a covalent radius";
    if (frame.stress &&
        !std::all_of(frame.stress->begin(), frame.stress->end(), [](double value) { return std::isfinite(value); }))
        return "numbers that are not finite";
    const double limit = rules.shortest_distance * rules.shortest_distance;
    for (size_t i = 0; i < atoms; ++i) {
        const double* f = &frame.forces[3 * i];
        if (rules.largest_force > 0 && std::hypot(f[0], f[1], f[2]) > rules.largest_force)
            return "a force above the limit";
        for (size_t j = i + 1; j < atoms; ++j) {
            const double *a = &frame.positions[3 * i], *b = &frame.positions[3 * j];
            const double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
            if (x * x + y * y + z * z < limit) return "atoms closer than the limit";
        }
    }
    return "";
}

std::vector<double> real_numbers(const InfoValue& value) {
    std::vector<double> numbers;
    if (const auto* reals = std::get_if<std::vector<double>>(&value.values)) numbers = *reals;
    if (const auto* whole = std::get_if<std::vector<int64_t>>(&value.values))
        numbers.assign(whole->begin(), whole->end());
    return numbers;
}

int kind_index(FrameSet& set, const std::string& name) {
    const auto found = std::find(set.kinds.begin(), set.kinds.end(), name);
    if (found != set.kinds.end()) return static_cast<int>(found - set.kinds.begin());
    set.kinds.push_back(name);
    return static_cast<int>(set.kinds.size()) - 1;
}

std::string text_or(const Frame& frame, const char* key, const std::string& otherwise) {
    const InfoValue* value = frame.find_info(key);
    if (!value) return otherwise;
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value->values); texts && texts->size() == 1)
        return texts->front();
    if (const auto* whole = std::get_if<std::vector<int64_t>>(&value->values); whole && whole->size() == 1)
        return std::to_string(whole->front());
    return otherwise;
}

// "" or why the frame cannot be used.
std::string labelled(const Frame& source, LabelledFrame& frame) {
    frame.atomic_numbers = source.atomic_numbers;
    frame.positions = source.positions;
    if (source.cell) frame.cell = *source.cell;
    frame.periodic = source.periodic;
    const InfoValue* energy = source.find_info("energy");
    const std::vector<double> energies = energy ? real_numbers(*energy) : std::vector<double>();
    if (energies.size() != 1) return "no energy";
    frame.energy = energies[0];
    for (const AtomColumn& column : source.columns)
        if ((column.name == "forces" || column.name == "force") && column.width == 3)
            if (const auto* values = std::get_if<std::vector<double>>(&column.values)) frame.forces = *values;
    if (frame.forces.empty()) return "no forces";
    if (const InfoValue* stress = source.find_info("stress")) {
        const std::vector<double> s = real_numbers(*stress);
        if (s.size() == 9) {
            frame.stress.emplace();
            std::copy(s.begin(), s.end(), frame.stress->begin());
        } else if (s.size() == 6) {  // xx, yy, zz, yz, xz, xy
            frame.stress = {s[0], s[5], s[4], s[5], s[1], s[3], s[4], s[3], s[2]};
        } else {
            return "a stress that is not 6 or 9 numbers";
        }
    }
    return "";
}

void read_extxyz_frames(const std::string& path, FrameSet& set) {
    ExtxyzReader reader(path);
    Frame source;
    while (reader.next(source)) {
        LabelledFrame frame;
        const std::string fault = labelled(source, frame);
        if (!fault.empty()) {
            ++set.skipped[fault];
            continue;
        }
        frame.molecule = text_or(source, "molecule", std::to_string(reader.frames_read()));
        const std::string split = text_or(source, "split", "");
        if (!split.empty()) frame.split = split_of_text(split);
        frame.kind = kind_index(set, text_or(source, "kind", "frame"));
        set.frames.push_back(std::move(frame));
    }
}

}  // namespace

Split split_of_text(const std::string& text) {
    if (text == "train") return Split::train;
    if (text == "valid" || text == "validation" || text == "val") return Split::valid;
    if (text == "test") return Split::test;
    fail(Status::format, "a split is train, valid or test, not '", text, "'");
}
const char* split_name(Split split) {
    return split == Split::train ? "train" : split == Split::valid ? "valid" : "test";
}

SystemView LabelledFrame::view() const {
    SystemView system;
    system.atom_count = atom_count();
    system.atomic_numbers = atomic_numbers.data();
    system.positions = positions.data();
    system.cell = cell;
    system.periodic = periodic;
    return system;
}

void FrameSet::append(FrameSet other) {
    for (LabelledFrame& frame : other.frames) {
        frame.kind = kind_index(*this, other.kinds[static_cast<size_t>(frame.kind)]);
        frames.push_back(std::move(frame));
    }
    for (const auto& [reason, count] : other.skipped) skipped[reason] += count;
    is_dealt_by_frame |= other.is_dealt_by_frame;
}

FrameSet read_labelled_frames(const std::vector<std::string>& paths, const FrameRules& rules) {
    FrameSet all;
    for (const std::string& path : paths) {
        FrameSet part;
        if (is_packed_frames(path))
            part = read_packed_frames(path);
        else
            read_extxyz_frames(path, part);
        FrameSet usable;
        usable.kinds = part.kinds;
        usable.skipped = part.skipped;
        for (size_t index = 0; index < part.frames.size(); ++index) {
            LabelledFrame& frame = part.frames[index];
            const std::string fault = fault_of(frame, rules);
            if (!fault.empty()) {
                ++usable.skipped[fault];
                continue;
            }
            if (frame.molecule.empty()) frame.molecule = std::to_string(index);
            usable.frames.push_back(std::move(frame));
        }
        all.append(std::move(usable));
    }
    deal(all);
    return all;
}

}  // namespace mlff::train
