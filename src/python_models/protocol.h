// SPDX-License-Identifier: MIT
// The protocol between libmlff and mlff-python-host: messages over a socket that keeps message boundaries, and a memory
// file mapped by both. Both come from the same build on the same machine; the protocol number is still checked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mlff::python {

constexpr uint32_t kProtocolVersion = 1;
constexpr int kSocketDescriptor = 3;  // in the host process
constexpr int kMemoryDescriptor = 4;
constexpr size_t kMostText = 60000;  // maximum bytes of text in a message
constexpr int kHeartbeatMilliseconds = 50;

enum class MessageKind : uint32_t { start, load, prepare, evaluate, answer, log };

// A message: this struct, then `text_size` bytes of text (JSON of a request or reply, an error, or a log line).
struct Message {
    MessageKind kind = MessageKind::answer;
    int32_t status = 0;  // status of an answer, or level of a log line
    uint32_t text_size = 0;
    // For evaluate, and its answer:
    uint32_t wants_energy = 0, wants_forces = 0, wants_virial = 0, wants_atom_energies = 0;
    int64_t atom_count = 0;
    int64_t capacity = 0;  // number of atoms that fit into the memory file
    double cell[9] = {};
    uint8_t periodic[8] = {};
    double total_charge = 0, spin_multiplicity = 1;
    double energy = 0;
    double virial[9] = {};
};

// The memory file: a page with the heartbeat, then the arrays. It is sealed: it can grow, but not shrink.
struct Heartbeat {
    std::atomic<uint64_t> count;  // incremented every kHeartbeatMilliseconds while the host process runs
};
constexpr size_t kArraysOffset = 65536;  // a multiple of every page size

struct SharedArrays {
    double* positions;
    double* forces;
    double* atom_energies;
    int32_t* atomic_numbers;

    SharedArrays(void* memory, int64_t capacity)
        : positions(static_cast<double*>(memory)),
          forces(positions + 3 * capacity),
          atom_energies(forces + 3 * capacity),
          atomic_numbers(reinterpret_cast<int32_t*>(atom_energies + capacity)) {}
    static size_t byte_count(int64_t capacity) {
        return static_cast<size_t>(capacity) * (7 * sizeof(double) + sizeof(int32_t));
    }
};

}  // namespace mlff::python
