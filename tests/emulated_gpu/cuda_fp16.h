// SPDX-License-Identifier: MIT
// Half precision for the emulated GPU.
#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>
#include <vector>

struct __half {
    uint16_t bits;
};
inline float half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size = exponent == 31  ? (fraction ? NAN : HUGE_VAL)
                        : exponent == 0 ? ldexp(fraction, -24)
                                        : ldexp(1024 + fraction, exponent - 25);
    return static_cast<float>(bits & 0x8000 ? -size : size);
}
inline float __half2float(__half x) {
    static const std::vector<float> values = [] {  // products convert the same few numbers over and over
        std::vector<float> all;
        for (int bits = 0; bits <= 0xffff; ++bits) all.push_back(half_value(static_cast<uint16_t>(bits)));
        return all;
    }();
    return values[x.bits];
}
inline __half __float2half_rn(float x) {
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const double size = fabs(static_cast<double>(x));
    if (!(size < 65520)) return {static_cast<uint16_t>(sign | (std::isnan(x) ? 0x7e00 : 0x7c00))};
    int exponent = 0;
    frexp(size, &exponent);
    exponent = exponent - 1 < -14 ? -14 : exponent - 1;
    const auto units = static_cast<int>(nearbyint(ldexp(size, 10 - exponent)));  // 1024 ... 2048, or less if subnormal
    return {static_cast<uint16_t>(sign | (units < 1024 ? units : ((exponent + 15) << 10) + (units - 1024)))};
}
