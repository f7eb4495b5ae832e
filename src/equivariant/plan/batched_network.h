// SPDX-License-Identifier: MIT
// A dense network for many inputs (rows) at once, in double precision: values, slopes along one direction of the input,
// and gradients by the input.
#pragma once

#include <vector>

#include "core/buffer.h"
#include "equivariant/dense_network.h"
#include "equivariant/plan/kernel_table.h"

namespace mlff::equivariant {

// Memory of one pass, reused by the next. Rows are padded(width) apart.
struct BatchedPass {
    struct Layer {
        // [row][padded(out_width)]; `before` is the input of the activation
        Buffer<double> before, output, output_slope, normalised;
        std::vector<double> deviation;  // [row]
    };
    Buffer<double> input, input_slope;  // [row][padded(in_width)], filled by the caller
    std::vector<Layer> layers;
    Buffer<double> gradient, gradient_below;
    std::vector<const double*> from;
    std::vector<double*> to;
};

class BatchedNetwork {
public:
    // Uses the first `layer_count` layers of the network.
    BatchedNetwork(const DenseNetwork& network, size_t layer_count);

    int in_width() const { return layers_.front().plain->in_width; }
    int in_stride() const { return padded(in_width()); }
    int out_width() const { return layers_.back().plain->out_width; }
    int out_stride() const { return padded(out_width()); }

    // Allocates the input of `row_count` rows and sets it to zero.
    void start(BatchedPass& pass, int row_count) const;
    // Computes pass.layers.back().output, and its slope along pass.input_slope if `with_slope`.
    void compute(const KernelTable<double>& kernels, BatchedPass& pass, int row_count, bool with_slope) const;
    // Takes dE/doutput, [row][out_stride()], and returns dE/dinput, [row][in_stride()], for the last compute().
    const double* reverse(const KernelTable<double>& kernels, BatchedPass& pass, int row_count,
                          const double* output_gradient) const;

private:
    struct Layer {
        const DenseLayer* plain;
        Buffer<double> weight, transposed;  // matrices [in_width][padded(out_width)], [out_width][padded(in_width)]
    };
    std::vector<Layer> layers_;
};

}  // namespace mlff::equivariant
