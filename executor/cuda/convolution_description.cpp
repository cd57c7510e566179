#include "executor/cuda/convolution_description.h"

#include <algorithm>
#include <array>

namespace fluid::cuda {
namespace {

using Numbers = std::array<int64_t, 4>;

constexpr int64_t kMostExtent = INT32_MAX;
constexpr int64_t kAlignment = 16;  ///< the largest alignment that kernels use

cudnnDataType_t type_of(FluidGpuDtype number) {
  switch (number) {
    case fluid_gpu_f16:
      return CUDNN_DATA_HALF;
    case fluid_gpu_bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

/// Extents in the order [n, c, h, w], whatever the layout.
Numbers extents_of(const FluidGpuConvolution& c, ConvolutionDescription::Tensor which) {
  switch (which) {
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

Numbers strides_of(const Numbers& extents, bool channels_last) {
  const auto [n, c, h, w] = extents;
  if (channels_last) return {h * w * c, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

int64_t windows(int64_t in, int64_t taps, int64_t stride, int64_t dilation, int64_t padding) {
  return (in + 2 * padding - dilation * (taps - 1) - 1) / stride + 1;
}

}  // namespace

std::string fault_of(const FluidGpuConvolution& c) {
  const int64_t positive[] = {c.images,        c.channels,    c.height,      c.width,
                              c.filters,       c.groups,      c.map_height,  c.map_width,
                              c.stride[0],     c.stride[1],   c.dilation[0], c.dilation[1],
                              c.filter_height, c.filter_width};
  const auto [least, most] = std::ranges::minmax(positive);
  if (least < 1 || most > kMostExtent) return "an extent is not positive, or too large";
  if (c.direction < fluid_gpu_forward || c.direction > fluid_gpu_filter_gradient) {
    return "its direction is invalid";
  }
  if (c.number < fluid_gpu_f32 || c.number > fluid_gpu_bf16) return "its dtype is invalid";
  if (c.channels % c.groups != 0 || c.filters % c.groups != 0)
    return "its groups do not divide its channels or filters";
  if (c.padding[0] < 0 || c.padding[1] < 0) return "its padding is negative";
  if (c.relu != 0 && c.bias == 0) return "it has a relu without a bias";
  if (c.bias != 0 && c.adds != 0) return "it has an addend and a bias";
  if (c.bias != 0 && c.direction != fluid_gpu_forward) return "a gradient has a bias";
  if (c.map_height !=
          windows(c.height, c.filter_height, c.stride[0], c.dilation[0], c.padding[0]) ||
      c.map_width != windows(c.width, c.filter_width, c.stride[1], c.dilation[1], c.padding[1])) {
    return "its feature maps have the wrong size";
  }
  return "";
}

ConvolutionDescription::ConvolutionDescription(const FluidGpuConvolution& about,
                                               cudnnHandle_t handle)
    : about_(about) {
  std::vector<DnnDescriptor> operations;
  operations.push_back(convolution(about.bias != 0 ? sums : maps));
  if (about.bias != 0) {
    const Tensor to = about.relu != 0 ? biased : maps;
    operations.push_back(pointwise(CUDNN_POINTWISE_ADD, sums, bias, to));
  }
  if (about.relu != 0) {
    operations.push_back(pointwise(CUDNN_POINTWISE_RELU_FWD, biased, std::nullopt, maps));
  }
  std::vector<cudnnBackendDescriptor_t> all;
  for (const DnnDescriptor& operation : operations) {
    graph_.require(operation);
    all.push_back(operation.get());
  }
  if (handle != nullptr) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const cudnnBackendDescriptor_t>(all));
  graph_.finish();
}

ConvolutionDescription::Tensor ConvolutionDescription::result() const {
  constexpr Tensor kResults[] = {maps, images, filters};
  return kResults[about_.direction];
}

int64_t ConvolutionDescription::result_bytes() const {
  const auto [n, c, h, w] = extents_of(about_, result());
  return n * c * h * w * (about_.number == fluid_gpu_f32 ? 4 : 2);
}

DnnDescriptor ConvolutionDescription::tensor(Tensor which) const {
  const Numbers extents = extents_of(about_, which);
  const bool in_order = which == filters || about_.channels_last == 0;
  const bool in_no_memory = which == sums || which == biased;
  DnnDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, in_no_memory ? CUDNN_DATA_FLOAT : type_of(about_.number))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const int64_t>(extents))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const int64_t>(strides_of(extents, !in_order)))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(which))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, in_no_memory);
  made.finish();
  return made;
}

DnnDescriptor ConvolutionDescription::window() const {
  DnnDescriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span<const int64_t>(about_.padding))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span<const int64_t>(about_.padding))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span<const int64_t>(about_.stride))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span<const int64_t>(about_.dilation));
  made.finish();
  return made;
}

/// The addend lies in the result's memory (beta = 1).
DnnDescriptor ConvolutionDescription::convolution(Tensor to) const {
  struct Names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t window, images, filters, maps, factor, added_factor;
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
  const Names& names = kNames[about_.direction];
  DnnDescriptor made(names.type);
  made.set(names.window, window())
      .set(names.images, tensor(images))
      .set(names.filters, tensor(filters))
      .set(names.maps, tensor(to))
      .set(names.factor, 1.0F)
      .set(names.added_factor, about_.adds != 0 ? 1.0F : 0.0F);
  made.finish();
  return made;
}

DnnDescriptor ConvolutionDescription::pointwise(cudnnPointwiseMode_t mode, Tensor x,
                                                std::optional<Tensor> b, Tensor y) const {
  DnnDescriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  function.finish();
  DnnDescriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor(x))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(y));
  if (b) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(*b));
  made.finish();
  return made;
}

}  // namespace fluid::cuda
