#pragma once

#include <optional>
#include <string>

#include "executor/cuda/dnn_descriptor.h"
#include "executor/gpu_driver/backend_table.h"

namespace fluid::cuda {

/// Returns why the convolution is invalid, or "" if it is valid.
std::string validation_error(const FluidGpuConvolution& convolution);

/// The cuDNN operation graph of a convolution with bias and relu, or of one of its gradients.
class ConvolutionDescription {
 public:
  /// The tensors of the graph. The enum values are the tensors' unique ids in cuDNN. Two tensors
  /// are virtual: `unbiased` is the convolution before its bias is added, and `biased` is the
  /// operand of the relu.
  enum Tensor : int64_t { images = 1, filters, maps, bias, unbiased, biased };

  /// `handle`: null to build the graph without a GPU.
  explicit ConvolutionDescription(const FluidGpuConvolution& convolution,
                                  cudnnHandle_t handle = nullptr);

  cudnnStatus_t status() const { return graph_.status(); }
  const DnnDescriptor& graph() const { return graph_; }

  /// The tensors at the addresses FluidGpuOperands::a, b and result.
  Tensor a() const { return task_.direction == fluid_gpu_data_gradient ? maps : images; }
  Tensor b() const { return task_.direction == fluid_gpu_filter_gradient ? maps : filters; }
  Tensor result() const;
  int64_t result_bytes() const;

 private:
  DnnDescriptor tensor_descriptor(Tensor tensor) const;
  DnnDescriptor convolution_descriptor() const;
  DnnDescriptor convolution_operation(Tensor y) const;
  DnnDescriptor pointwise_operation(cudnnPointwiseMode_t mode, Tensor x, std::optional<Tensor> b,
                                    Tensor y) const;

  FluidGpuConvolution task_;
  DnnDescriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

}  // namespace fluid::cuda
