#include "executor/session/value_range.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/error.h"

namespace fluid {

std::optional<int64_t> first_beyond(const Tensor& value, DType dtype) {
  const bool widens = dtype == DType::f64 || (dtype == DType::f32 && value.dtype() != DType::f64);
  if (value.dtype() == dtype || !is_float(dtype) || widens) return std::nullopt;
  const auto rounded = [&](double x) {
    const auto single = static_cast<float>(x);
    return is_half(dtype) ? half_to_float(float_to_half(single, dtype), dtype) : single;
  };
  for (int64_t i = 0; i < value.numel(); ++i) {
    const double x = value.at(i);
    if (std::isfinite(x) && !std::isfinite(rounded(x))) return i;
  }
  return std::nullopt;
}

void check_range(const Tensor& value, DType dtype, const std::string& what) {
  const std::optional<int64_t> i = first_beyond(value, dtype);
  if (!i) return;
  throw UserError(fmt::format("{}: element {} is {}, beyond the range of {}", what, *i,
                              value.at(*i), name_of(dtype)));
}

}  // namespace fluid
