// SPDX-License-Identifier: MIT
#include "gpu/runtime/work_stream.h"

#include <new>
#include <optional>

#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/cuda_stream.h"

namespace mlff {
namespace {

class GpuStream : public WorkStream {
public:
    explicit GpuStream(int ordinal) : ordinal_(ordinal) {
        const gpu::CurrentDevice current(ordinal);
        stream_.emplace();
    }
    ~GpuStream() override {
        const gpu::CurrentDevice current(ordinal_, std::nothrow);
        stream_.reset();
    }
    GpuStream(const GpuStream&) = delete;
    GpuStream& operator=(const GpuStream&) = delete;

    void* handle() const override { return static_cast<cudaStream_t>(*stream_); }
    void synchronize() override {
        const gpu::CurrentDevice current(ordinal_);
        gpu::check(cudaStreamSynchronize(*stream_), "waiting for a stream");
    }

private:
    int ordinal_;
    std::optional<gpu::Stream> stream_;
};

}  // namespace

std::unique_ptr<WorkStream> make_gpu_stream(int ordinal) { return std::make_unique<GpuStream>(ordinal); }

}  // namespace mlff
