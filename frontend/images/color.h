#pragma once

#include "frontend/images/image.h"

namespace fluid {

// Colour operations on RGB images, equal in every bit to torchvision's functions of the same names
// on PIL images. A factor of 1 leaves the image as it is. adjust_saturation() and adjust_hue()
// leave images of other than three channels as they are.

void adjust_brightness(Image& image, double factor);
/// Blends with the mean gray value of the image.
void adjust_contrast(Image& image, double factor);
/// Blends with the gray version of the image.
void adjust_saturation(Image& image, double factor);
/// Turns the hue by `turn` of a full circle, in [-0.5, 0.5].
void adjust_hue(Image& image, double turn);

}  // namespace fluid
