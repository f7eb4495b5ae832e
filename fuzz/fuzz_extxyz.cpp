// SPDX-License-Identifier: MIT
// Reads arbitrary bytes as extended XYZ. What can be read must survive writing and reading unchanged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "core/error.h"
#include "formats/extxyz.h"

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

std::string written(const mlff::Frame& frame) {
    std::ostringstream output;
    mlff::write_extxyz(output, frame);
    return output.str();
}

// A frame that was read can be written, so any error here is a bug.
void check_round_trip(const mlff::Frame& frame) {
    const std::string text = written(frame);
    std::istringstream input(text);
    mlff::ExtxyzReader reader(input, "written");
    mlff::Frame again;
    require(reader.next(again));
    require(again.atomic_numbers == frame.atomic_numbers);
    require(again.positions == frame.positions);
    require(again.cell == frame.cell);
    require(again.periodic == frame.periodic);
    require(again.columns.size() == frame.columns.size());
    require(again.info.size() == frame.info.size());
    require(written(again) == text);
    mlff::Frame none;
    require(!reader.next(none));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::istringstream input(std::string(reinterpret_cast<const char*>(data), size));
    mlff::ExtxyzReader reader(input, "fuzz");
    mlff::Frame frame;
    for (;;) {
        try {
            if (!reader.next(frame)) return 0;
        } catch (const mlff::Error&) {
            return 0;
        }
        try {
            frame.view();
        } catch (const mlff::Error&) {}
        check_round_trip(frame);
    }
}
