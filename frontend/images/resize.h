#pragma once

#include "frontend/images/image.h"

namespace fluid {

/// A rectangle of an image, in pixels.
struct ImageBox {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

enum class Interpolation { bilinear, bicubic };

/// Resizes the part `box` of `image` to height x width with antialiasing, as PIL's Image.resize()
/// does after a crop: a convolution with the filter of the interpolation, widened by the scale
/// where the image shrinks, along the rows and then along the columns. Equal to PIL in every bit.
Image resize(const Image& image, const ImageBox& box, int64_t height, int64_t width,
             Interpolation interpolation = Interpolation::bilinear);

}  // namespace fluid
