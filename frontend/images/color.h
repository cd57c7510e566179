#pragma once

#include "frontend/images/image.h"

namespace fluid {

// Colour adjustments, bit-identical to torchvision's functions of the same names on PIL images. A
// factor of 1 leaves the image unchanged. adjust_saturation() and adjust_hue() do nothing unless
// the image has three channels (RGB).

void adjust_brightness(Image& image, double factor);
/// Blends with the mean gray value of the image.
void adjust_contrast(Image& image, double factor);
/// Blends with the gray version of the image.
void adjust_saturation(Image& image, double factor);
/// Shifts the hue by `turn`, a fraction of the colour wheel in [-0.5, 0.5].
void adjust_hue(Image& image, double turn);

}  // namespace fluid
