#pragma once

#include "frontend/images/image.h"

namespace fluid {

/// A rectangle of an image, in pixels.
struct ImageBox {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

enum class Interpolation { bilinear, bicubic };

/// Crops `box` from `image` and resizes it to height x width with antialiasing, bit-identical to
/// PIL's Image.resize(). Convolves the rows, then the columns, with the interpolation filter. When
/// downscaling, the filter is widened by the scale factor.
Image resize(const Image& image, const ImageBox& box, int64_t height, int64_t width,
             Interpolation interpolation = Interpolation::bilinear);

}  // namespace fluid
