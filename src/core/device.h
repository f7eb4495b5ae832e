// SPDX-License-Identifier: MIT
// Where a session computes.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace mlff {

struct Device {
    enum class Kind {
        cpu,
        reference,  // plain fp64 loops on the CPU
        gpu
    };
    Kind kind = Kind::cpu;
    int index = 0;  // of a GPU: among those that this library can use

    bool is_gpu() const { return kind == Kind::gpu; }
    bool operator==(const Device&) const = default;

    // "cpu", "reference", "cuda:1"
    std::string name() const {
        switch (kind) {
            case Kind::cpu: return "cpu";
            case Kind::reference: return "reference";
            case Kind::gpu: break;
        }
        return "cuda:" + std::to_string(index);
    }
};

// "cpu", "reference", "cuda" (the first GPU) or "cuda:1"; nothing for other texts, "auto" among them.
inline std::optional<Device> parse_device(std::string_view text) {
    if (text == "cpu") return Device{Device::Kind::cpu};
    if (text == "reference") return Device{Device::Kind::reference};
    if (text == "cuda") return Device{Device::Kind::gpu};
    constexpr std::string_view kPrefix = "cuda:";
    if (!text.starts_with(kPrefix)) return std::nullopt;
    Device device = {Device::Kind::gpu};
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + kPrefix.size(), end, device.index);
    if (parsed.ec != std::errc() || parsed.ptr != end || device.index < 0) return std::nullopt;
    return device;
}

// The same for the name of a device of which a session said that it runs there.
inline bool names_gpu(std::string_view text) { return parse_device(text).value_or(Device{}).is_gpu(); }

}  // namespace mlff
