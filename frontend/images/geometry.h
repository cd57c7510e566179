#pragma once

#include "frontend/images/image.h"
#include "frontend/images/resize.h"

namespace fluid {

void flip_horizontally(Image& image);
void flip_vertically(Image& image);

/// Crops `box` from `image`. Pixels of `box` outside the image become 0.
Image crop(const Image& image, const ImageBox& box);
/// Crops height x width pixels at the centre, and pads a smaller image with 0, like torchvision's
/// center_crop().
Image center_crop(const Image& image, int64_t height, int64_t width);

/// How pad() computes the pixels of the border: the padding_mode of torchvision's pad().
enum class BorderMode { constant, edge, reflect, symmetric };

/// Widths of a border, in pixels.
struct Border {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
};

/// Adds a border to an image, like torchvision's pad(). `fill`: value of a constant border.
/// Throws UserError if a reflected or symmetric border is wider than the image allows.
Image pad(const Image& image, const Border& border, BorderMode padding, uint8_t fill);

/// Rotates an image about its centre by `degrees` counter-clockwise, with nearest-neighbour
/// interpolation. Keeps the size. Sets pixels whose source lies outside the image to `fill`.
/// Bit-identical to PIL's Image.rotate().
Image rotate(const Image& image, double degrees, uint8_t fill);

/// Sets all channels of the pixels in `box` to `value`. `box` must lie within the image.
void erase(Image& image, const ImageBox& box, uint8_t value);

}  // namespace fluid
