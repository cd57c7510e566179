#pragma once

#include <cstdint>
#include <vector>

#include "frontend/images/image.h"
#include "ir/tensor.h"

namespace fluid {

/// Whether tensors of this shape hold images: [N, channels, height, width] with 1, 3 or 4 channels.
bool holds_images(const std::vector<int64_t>& shape);

/// Returns sample `sample` of a tensor that holds images. Keeps u8 values. Maps values from [0, 1]
/// to 0..255. If the sample has values outside [0, 1], maps its minimum to 0 and its maximum to
/// 255.
Image image_of(const Tensor& images, int64_t sample);

}  // namespace fluid
