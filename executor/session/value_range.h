#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/tensor.h"

namespace fluid {

/// Index of the first finite element of `value` that overflows to inf in `dtype`.
std::optional<int64_t> first_beyond(const Tensor& value, DType dtype);

/// Throws UserError when a finite element of `value` overflows to inf in `dtype`. `what`: name of
/// the tensor in the message.
void check_range(const Tensor& value, DType dtype, const std::string& what);

}  // namespace fluid
