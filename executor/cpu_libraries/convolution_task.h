#pragma once

// 2d convolutions of channels-last images, as the kernels of this folder compute them.

#include <optional>

#include "executor/device/library_task.h"
#include "ops/nn/window.h"

namespace fluid {

enum class ConvDirection : uint8_t { forward, input_gradient, filter_gradient };

/// A convolution, or a gradient of one, with its epilogue.
struct ConvolutionTask {
  ConvDirection direction;
  DType dtype;
  Shape in, filter, out;  ///< NCHW, OIHW, NCHW
  Window2d window;
  int64_t groups;
  bool bias, relu;
};

/// Returns the convolution of `op` followed by `epilogue`. Returns nullopt if the images are not
/// channels-last, the filter is not plain, or a gradient has an epilogue.
std::optional<ConvolutionTask> convolution_task(ConvDirection direction, const ir::Op& op,
                                                const EpilogueOps& epilogue, int64_t batch);

}  // namespace fluid
