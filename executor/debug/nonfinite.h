#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "ir/tensor.h"

namespace fluid {

/// An infinite or NaN element. A NaN is stored without its sign.
struct NonfiniteElement {
  int64_t index = 0;  ///< position in memory, in elements; counts the padding of a blocked layout
  double value = 0;
};
/// Finds the first infinite or NaN element among `numel` elements of a float dtype.
std::optional<NonfiniteElement> first_nonfinite_element(const void* data, DType dtype,
                                                        int64_t numel);

/// A kernel with a non-finite result.
struct NonfiniteKernel {
  const ir::Op* op = nullptr;  ///< the `fused` op
  int result = 0;              ///< index of the first non-finite result of `op`
  NonfiniteElement element;
  /// Copies of the kernel's inputs. Empty if an input has a blocked layout.
  std::vector<Tensor> operands;
};

/// Recomputes the ops in the kernel's body one by one on `device`. Describes the first op with a
/// non-finite result: its source line and the element. Rounds to half precision only the results
/// that the kernel stores in half precision.
std::string describe_nonfinite_op(const NonfiniteKernel& kernel, int64_t batch, Device& device);
/// Like describe_nonfinite_op(), but returns "" if no op in the kernel's body has a non-finite
/// result, or if `kernel` has no copies of its inputs.
std::string describe_nonfinite_body_op_or_empty(const NonfiniteKernel& kernel, int64_t batch,
                                                Device& device);

}  // namespace fluid
