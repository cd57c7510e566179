#pragma once

#include "ir/graph.h"
#include "ops/ints.h"

namespace fluid {

/// Padding that makes a convolution or pooling give ceil(extent / stride) elements along each
/// spatial dimension, as padding="same" of PyTorch (stride 1) and auto_pad of ONNX. If the padding
/// of a dimension is odd, the additional element is after the elements (upper: PyTorch, SAME_UPPER)
/// or before them (lower: SAME_LOWER).
enum class Same : uint8_t { upper, lower };

/// Window of a convolution or pooling: one number, or one per spatial dimension.
struct SameWindow {
  Ints kernel;
  Ints stride = 1;
  Ints dilation = 1;
  Same same = Same::upper;
};

/// Returns the value of attribute `padding` for x [N, C, ...]: all padding before the elements,
/// then all after. Throws UserError when a list does not have one number, or one per spatial
/// dimension of x, all positive.
Ints same_padding(Value x, const SameWindow& window, const Loc& loc = Loc::here());

}  // namespace fluid
