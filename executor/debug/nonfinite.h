#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "ir/tensor.h"

namespace fluid {

/// An element that is infinite or nan, which has no sign.
struct BadElement {
  int64_t index = 0;  ///< in memory: with a layout, padding counts
  double value = 0;
};
/// The first of `numel` elements of a float dtype.
std::optional<BadElement> first_bad_element(const void* data, DType dtype, int64_t numel);

/// A kernel of a step whose result is not finite.
struct BadKernel {
  const ir::Op* op = nullptr;  ///< `fused`
  int result = 0;              ///< its first that is not
  BadElement element;
  std::vector<Tensor> operands;  ///< as the kernel got them, plain; empty when a layout is not
};

/// Names the op in the kernel's body whose result is the first that is not finite, its place in the
/// user's source, and the element. The ops are computed one by one on `device`, rounded to half as
/// the kernel does it: only where it stores.
std::string describe(const BadKernel& bad, int64_t batch, Device& device);
/// The same of a kernel whose results may be finite: "" when those of all ops in its body are.
std::string describe_within(const BadKernel& kernel, int64_t batch, Device& device);

}  // namespace fluid
