#pragma once

#include "ir/graph.h"
#include "ops/ints.h"

namespace fluid {

/// Padding for which a convolution or pooling returns ceil(extent / stride) elements along each
/// spatial dimension, like padding="same" in PyTorch (stride 1) and auto_pad in ONNX. If the total
/// padding of a dimension is odd, the additional element is at the end (upper: PyTorch, SAME_UPPER)
/// or at the beginning (lower: SAME_LOWER).
enum class Same : uint8_t { upper, lower };

/// Window of a convolution or pooling. Each list has one number, or one per spatial dimension.
struct SameWindow {
  Ints kernel;
  Ints stride = 1;
  Ints dilation = 1;
  Same same = Same::upper;
};

/// Returns the value of attribute `padding` for x [N, C, ...]: the padding at the beginning of all
/// dimensions, then the padding at the end of all dimensions. Throws UserError unless each list of
/// `window` contains one positive number, or one per spatial dimension of x.
Ints same_padding(Value x, const SameWindow& window, const Loc& loc = Loc::here());

/// Padding of a transposed convolution.
struct TransposedPadding {
  Ints padding;         ///< at the beginning of all dimensions, then at the end of all dimensions
  Ints output_padding;  ///< one number per dimension
};

/// Returns the padding for which a transposed convolution of x [N, C, ...] returns extent * stride
/// elements along each spatial dimension, as auto_pad in ONNX. Throws the errors of same_padding().
TransposedPadding same_transposed_padding(Value x, const SameWindow& window,
                                          const Loc& loc = Loc::here());

/// Divides the total padding of each dimension between the beginning and the end, like
/// same_padding(). A negative total becomes output_padding.
TransposedPadding divide_transposed_padding(const Ints& totals, Same same);

}  // namespace fluid
