#pragma once

#include <memory>
#include <string>

#include "ir/graph.h"

namespace fluid::testing {

/// Convolution and pooling twice, dropout, a global maximum, two dense layers, cross-entropy; train
/// directive with `optimizer`. Images are [?, 1, size, size], of `dtype`; channels as given.
struct ConvNet {
  int64_t size = 32;
  int64_t first = 32, second = 64, hidden = 32;
  double dropout = 0.1;
  std::string optimizer = "adam";
  DType dtype = DType::f32;
};
std::unique_ptr<ir::Program> conv_net(const ConvNet& net = {});

}  // namespace fluid::testing
