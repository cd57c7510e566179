#pragma once

#include "frontend/images/image.h"
#include "frontend/images/resize.h"

namespace fluid {

/// Mirror an image from left to right, and from top to bottom.
void flip_horizontally(Image& image);
void flip_vertically(Image& image);

/// Returns the part `box` of `image`. Pixels outside the image are 0.
Image crop(const Image& image, const ImageBox& box);
/// Returns the height x width pixels at the centre, as torchvision's center_crop() chooses them.
Image center_crop(const Image& image, int64_t height, int64_t width);

/// How pad() continues an image beyond its border.
enum class BorderMode { constant, edge, reflect, symmetric };

/// Widths of a border, in pixels.
struct Border {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
};

/// Adds a border to an image, as torchvision's pad() does. `fill`: the value of a constant border.
/// Throws UserError if a reflected border is too wide for the image.
Image pad(const Image& image, const Border& border, BorderMode padding, uint8_t fill);

/// Rotates an image about its centre by `degrees` counter-clockwise, by nearest neighbour. Keeps
/// the size. Sets pixels whose source lies outside the image to `fill`. Bit-identical to PIL's
/// Image.rotate().
Image rotate(const Image& image, double degrees, uint8_t fill);

/// Sets the part `box` of the image to `value`.
void erase(Image& image, const ImageBox& box, uint8_t value);

}  // namespace fluid
