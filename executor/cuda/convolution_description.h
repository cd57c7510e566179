#pragma once

#include <optional>
#include <string>

#include "executor/cuda/dnn_descriptor.h"
#include "executor/gpu/backend_table.h"

namespace fluid::cuda {

/// Why there can be no such convolution, or "".
std::string fault_of(const FluidGpuConvolution& convolution);

/// A convolution in cuDNN's terms: itself or one of its gradients, and what follows it.
class ConvolutionDescription {
 public:
  /// Tensors, by the numbers that cuDNN knows them by. The sums before a bias, and those before
  /// a relu, are in no memory.
  enum Tensor : int64_t { images = 1, filters, maps, bias, sums, biased };

  /// `handle`: null to describe it for no GPU that is here.
  explicit ConvolutionDescription(const FluidGpuConvolution& convolution,
                                  cudnnHandle_t handle = nullptr);

  cudnnStatus_t status() const { return graph_.status(); }
  const DnnDescriptor& graph() const { return graph_; }

  /// Which tensors `a`, `b` and the result are.
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
