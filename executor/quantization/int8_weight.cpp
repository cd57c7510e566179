#include "executor/quantization/int8_weight.h"

#include <algorithm>
#include <cmath>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr float kLargest = 127;

}  // namespace

Int8Weight quantize_weight(const Tensor& weight, size_t axis, const std::string& name) {
  const std::vector<int64_t>& shape = weight.shape();
  const auto channels = static_cast<size_t>(shape.at(axis));
  size_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= static_cast<size_t>(shape[d]);
  Int8Weight result{Tensor(i8, shape), Tensor(f32, {shape[axis]})};
  const auto values = weight.as<float>();
  const auto scale = result.scale.as<float>();
  const auto channel_of = [&](size_t i) { return i / inner % channels; };
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]))
      throw UserError("quantize: an element of '" + name + "' is not finite");
    float& largest = scale[channel_of(i)];
    largest = std::max(largest, std::abs(values[i]));
  }
  for (float& s : scale) {
    s /= kLargest;
    // The scale of zeros, and of numbers so small that the quotient is a subnormal, is arbitrary.
    if (!std::isnormal(s)) s = 1;
  }
  const auto integers = result.integers.as<int8_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    const float rounded = std::nearbyint(values[i] / scale[channel_of(i)]);
    integers[i] = static_cast<int8_t>(std::clamp(rounded, -kLargest, kLargest));
  }
  return result;
}

}  // namespace fluid
