#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "ir/tensor.h"

namespace fluid {

/// An infinite or nan element. A nan's sign is dropped.
struct BadElement {
  int64_t index = 0;  ///< in memory order, counting a layout's padding
  double value = 0;
};
/// The first infinite or nan element among `numel` elements of a float dtype.
std::optional<BadElement> first_bad_element(const void* data, DType dtype, int64_t numel);

/// A kernel whose result is not finite.
struct BadKernel {
  const ir::Op* op = nullptr;  ///< the `fused` op
  int result = 0;              ///< index of its first non-finite result
  BadElement element;
  /// Copies of the kernel's inputs; empty if one has a blocked layout.
  std::vector<Tensor> operands;
};

/// Describes the first op in the kernel's body with a non-finite result: its source line and the
/// element. Recomputes the ops one by one on `device`. Rounds to half precision only what the
/// kernel stores.
std::string describe(const BadKernel& bad, int64_t batch, Device& device);
/// As describe(), for a kernel with finite results: "" when the results of all ops in its body are
/// finite.
std::string describe_within(const BadKernel& kernel, int64_t batch, Device& device);

}  // namespace fluid
