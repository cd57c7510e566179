#include "executor/trainer/tensor_image.h"

#include <algorithm>
#include <cmath>

namespace fluid {

bool holds_images(const std::vector<int64_t>& shape) {
  return shape.size() == 4 && (shape[1] == 1 || shape[1] == 3 || shape[1] == 4) && shape[2] > 0 &&
         shape[3] > 0;
}

Image image_of(const Tensor& images, int64_t sample) {
  const std::vector<int64_t>& shape = images.shape();
  const int64_t numel = shape[1] * shape[2] * shape[3], first = sample * numel;
  std::vector<double> values;
  for (int64_t i = 0; i < numel; ++i) {
    const double value = images.at(first + i);
    values.push_back(std::isfinite(value) ? value : 0);
  }
  double low = 0, high = 255;
  if (images.dtype() != u8) {
    const auto [min, max] = std::ranges::minmax(values);
    const bool is_unit = min >= 0 && max <= 1;
    low = is_unit ? 0 : min;
    high = is_unit ? 1 : max;
  }
  const double scale = high > low ? 255 / (high - low) : 0;
  std::vector<uint8_t> planes;
  for (const double value : values) {
    planes.push_back(static_cast<uint8_t>(std::lround((value - low) * scale)));
  }
  return Image::from_planes(shape[2], shape[3], shape[1], planes);
}

}  // namespace fluid
