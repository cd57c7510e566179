#include "executor/cuda/convolution_description.h"

#include <algorithm>
#include <array>

namespace fluid::cuda {
namespace {

using Int64x4 = std::array<int64_t, 4>;

constexpr int64_t kMaxExtent = INT32_MAX;
/// Alignment of tensors in bytes. cuDNN's kernels do not benefit from a larger alignment.
constexpr int64_t kAlignment = 16;

cudnnDataType_t type_of(FluidGpuDtype dtype) {
  switch (dtype) {
    case fluid_gpu_f16:
      return CUDNN_DATA_HALF;
    case fluid_gpu_bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

/// Extents of a tensor, in the order [n, c, h, w] for NCHW and NHWC alike.
Int64x4 extents_of(const FluidGpuConvolution& c, ConvolutionDescription::Tensor tensor) {
  switch (tensor) {
    case ConvolutionDescription::images:
      return {c.images, c.channels, c.height, c.width};
    case ConvolutionDescription::filters:
      return {c.filters, c.channels / c.groups, c.filter_height, c.filter_width};
    case ConvolutionDescription::bias:
      return {1, c.filters, 1, 1};
    default:
      return {c.images, c.filters, c.map_height, c.map_width};
  }
}

Int64x4 strides_of(const Int64x4& extents, bool channels_last) {
  const auto [n, c, h, w] = extents;
  if (channels_last) return {h * w * c, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

/// Output size of a convolution along a spatial axis.
int64_t output_size(int64_t in, int64_t taps, int64_t stride, int64_t dilation, int64_t padding) {
  return (in + 2 * padding - dilation * (taps - 1) - 1) / stride + 1;
}

}  // namespace

std::string validation_error(const FluidGpuConvolution& c) {
  const int64_t positive[] = {c.images,        c.channels,    c.height,      c.width,
                              c.filters,       c.groups,      c.map_height,  c.map_width,
                              c.stride[0],     c.stride[1],   c.dilation[0], c.dilation[1],
                              c.filter_height, c.filter_width};
  const auto [least, most] = std::ranges::minmax(positive);
  if (least < 1 || most > kMaxExtent) return "an extent is not positive, or too large";
  if (c.direction < fluid_gpu_forward || c.direction > fluid_gpu_filter_gradient) {
    return "its direction is invalid";
  }
  if (c.dtype < fluid_gpu_f32 || c.dtype > fluid_gpu_bf16) return "its dtype is invalid";
  if (c.channels % c.groups != 0 || c.filters % c.groups != 0)
    return "its groups do not divide its channels or filters";
  if (c.padding[0] < 0 || c.padding[1] < 0) return "its padding is negative";
  if (c.relu != 0 && c.bias == 0) return "it has a relu without a bias";
  if (c.bias != 0 && c.has_addend != 0) return "it has an addend and a bias";
  if (c.bias != 0 && c.direction != fluid_gpu_forward) return "a gradient has a bias";
  if (c.map_height !=
          output_size(c.height, c.filter_height, c.stride[0], c.dilation[0], c.padding[0]) ||
      c.map_width !=
          output_size(c.width, c.filter_width, c.stride[1], c.dilation[1], c.padding[1])) {
    return "its feature maps have the wrong size";
  }
  return "";
}

ConvolutionDescription::ConvolutionDescription(const FluidGpuConvolution& task,
                                               cudnnHandle_t handle)
    : task_(task) {
  std::vector<DnnDescriptor> operations;
  operations.push_back(convolution_operation(task.bias != 0 ? unbiased : maps));
  if (task.bias != 0) {
    const Tensor to = task.relu != 0 ? biased : maps;
    operations.push_back(pointwise_operation(CUDNN_POINTWISE_ADD, unbiased, bias, to));
  }
  if (task.relu != 0) {
    operations.push_back(pointwise_operation(CUDNN_POINTWISE_RELU_FWD, biased, std::nullopt, maps));
  }
  std::vector<cudnnBackendDescriptor_t> all;
  for (const DnnDescriptor& operation : operations) {
    graph_.propagate_error(operation);
    all.push_back(operation.get());
  }
  if (handle != nullptr) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const cudnnBackendDescriptor_t>(all));
  graph_.finalize();
}

ConvolutionDescription::Tensor ConvolutionDescription::result() const {
  constexpr Tensor kResults[] = {maps, images, filters};
  return kResults[task_.direction];
}

int64_t ConvolutionDescription::result_bytes() const {
  const auto [n, c, h, w] = extents_of(task_, result());
  return n * c * h * w * (task_.dtype == fluid_gpu_f32 ? 4 : 2);
}

DnnDescriptor ConvolutionDescription::tensor_descriptor(Tensor tensor) const {
  const Int64x4 extents = extents_of(task_, tensor);
  const bool in_order = tensor == filters || task_.channels_last == 0;
  const bool is_virtual = tensor == unbiased || tensor == biased;
  DnnDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, is_virtual ? CUDNN_DATA_FLOAT : type_of(task_.dtype))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const int64_t>(extents))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const int64_t>(strides_of(extents, !in_order)))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(tensor))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  made.finalize();
  return made;
}

DnnDescriptor ConvolutionDescription::convolution_descriptor() const {
  DnnDescriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span<const int64_t>(task_.padding))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span<const int64_t>(task_.padding))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span<const int64_t>(task_.stride))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span<const int64_t>(task_.dilation));
  made.finalize();
  return made;
}

/// Describes the convolution, or one of its gradients, as a cuDNN operation. `y`: the tensor for y,
/// or for dy if the result is a gradient. If there is an addend, the result's buffer contains the
/// addend, and beta = 1 makes cuDNN accumulate into the buffer.
DnnDescriptor ConvolutionDescription::convolution_operation(Tensor y) const {
  struct Names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t convolution_descriptor, images, filters, maps, factor, added_factor;
  };
  static constexpr Names kNames[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
  const Names& names = kNames[task_.direction];
  DnnDescriptor made(names.type);
  made.set(names.convolution_descriptor, convolution_descriptor())
      .set(names.images, tensor_descriptor(images))
      .set(names.filters, tensor_descriptor(filters))
      .set(names.maps, tensor_descriptor(y))
      .set(names.factor, 1.0F)
      .set(names.added_factor, task_.has_addend != 0 ? 1.0F : 0.0F);
  made.finalize();
  return made;
}

DnnDescriptor ConvolutionDescription::pointwise_operation(cudnnPointwiseMode_t mode, Tensor x,
                                                          std::optional<Tensor> b, Tensor y) const {
  DnnDescriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  function.finalize();
  DnnDescriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor_descriptor(x))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor_descriptor(y));
  if (b) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor_descriptor(*b));
  made.finalize();
  return made;
}

}  // namespace fluid::cuda
