// SPDX-License-Identifier: MIT
// Named ranges for NVIDIA's profilers (nsys, ncu), in the domain "mlff". Header only: without a profiler nothing is
// loaded, and the cost is negligible. For CUDA sources only.
#pragma once

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

namespace mlff::gpu {

inline nvtxDomainHandle_t nvtx_domain() {
    static const nvtxDomainHandle_t domain = nvtxDomainCreateA("mlff");
    return domain;
}
inline void begin_nvtx_range(const char* name) {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    nvtxDomainRangePushEx(nvtx_domain(), &attributes);
}
inline void end_nvtx_range() { nvtxDomainRangePop(nvtx_domain()); }

}  // namespace mlff::gpu
#else

namespace mlff::gpu {

inline void begin_nvtx_range(const char*) {}
inline void end_nvtx_range() {}

}  // namespace mlff::gpu
#endif

namespace mlff::gpu {

class NvtxRange {
public:
    explicit NvtxRange(const char* name) { begin_nvtx_range(name); }
    NvtxRange(const NvtxRange&) = delete;
    NvtxRange& operator=(const NvtxRange&) = delete;
    ~NvtxRange() { end_nvtx_range(); }
};

}  // namespace mlff::gpu
