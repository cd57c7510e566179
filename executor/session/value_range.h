#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/tensor.h"

namespace fluid {

/// The first finite element of `value` that a `dtype` would hold as inf.
std::optional<int64_t> first_beyond(const Tensor& value, DType dtype);

/// Throws UserError for a finite element of `value` that a `dtype` would hold as inf; `what` names
/// the tensor.
void check_range(const Tensor& value, DType dtype, const std::string& what);

}  // namespace fluid
