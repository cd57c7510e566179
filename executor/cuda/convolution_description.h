#pragma once

#include <optional>
#include <string>

#include "executor/cuda/dnn_descriptor.h"
#include "executor/gpu_driver/backend_table.h"

namespace fluid::cuda {

/// Why the convolution is invalid, or "".
std::string fault_of(const FluidGpuConvolution& convolution);

/// A cuDNN operation graph: a convolution or one of its gradients, with bias and relu.
class ConvolutionDescription {
 public:
  /// cuDNN's unique ids of the tensors. `sums` (before the bias) and `biased` (before the relu) are
  /// virtual tensors.
  enum Tensor : int64_t { images = 1, filters, maps, bias, sums, biased };

  /// `handle`: null to describe it without a GPU.
  explicit ConvolutionDescription(const FluidGpuConvolution& convolution,
                                  cudnnHandle_t handle = nullptr);

  cudnnStatus_t status() const { return graph_.status(); }
  const DnnDescriptor& graph() const { return graph_; }

  /// The tensors that are `a`, `b` and the result.
  Tensor a() const { return about_.direction == fluid_gpu_data_gradient ? maps : images; }
  Tensor b() const { return about_.direction == fluid_gpu_filter_gradient ? maps : filters; }
  Tensor result() const;
  int64_t result_bytes() const;

 private:
  DnnDescriptor tensor(Tensor which) const;
  DnnDescriptor window() const;
  DnnDescriptor convolution(Tensor to) const;
  DnnDescriptor pointwise(cudnnPointwiseMode_t mode, Tensor x, std::optional<Tensor> b,
                          Tensor y) const;

  FluidGpuConvolution about_;
  DnnDescriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

}  // namespace fluid::cuda
