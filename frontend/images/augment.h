#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/images/geometry.h"
#include "frontend/images/image.h"
#include "frontend/readers/split_mix64.h"

/// Image transforms that augment_images() applies to the images of a SampleSource. Definitions,
/// defaults and distributions match torchvision.transforms.v2 on PIL images. The random number
/// generator differs from torchvision's.
namespace fluid::augment {

/// Transforms an image in place. `random` is seeded per sample. A stage must have no other source
/// of randomness.
using Stage = std::function<void(Image& image, SplitMix64& random)>;

/// Height and width. If `width` is 0, stages use `height` for both.
struct Size {
  int64_t height = 0, width = 0;
};

/// A closed interval.
struct Range {
  double low = 0, high = 0;
};

/// Flips horizontally, with the given probability (RandomHorizontalFlip).
Stage flip(double probability = 0.5);
/// Flips vertically, with the given probability (RandomVerticalFlip).
Stage vflip(double probability = 0.5);

/// Resizes to `size` (Resize with antialias). With `smaller_edge`, resizes the smaller edge to
/// `size.height` pixels and keeps the aspect ratio.
struct ResizeOptions {
  Size size;
  bool smaller_edge = false;
  Interpolation interpolation = Interpolation::bilinear;
};
Stage resize(ResizeOptions options);

/// Crops to `size` at a random position (RandomCrop). Throws UserError if the image is smaller.
Stage crop(Size size);
/// Crops to `size` at the centre (CenterCrop). Pads a smaller image with 0.
Stage center_crop(Size size);

/// Crops a random rectangle and resizes it to `size` (RandomResizedCrop with antialias). `scale`:
/// range of the rectangle's area relative to the image. `ratio`: range of its width / height.
struct ResizedCropOptions {
  Size size;
  Range scale = {0.08, 1.0};
  Range ratio = {3.0 / 4, 4.0 / 3};
  Interpolation interpolation = Interpolation::bilinear;
};
Stage resized_crop(ResizedCropOptions options);

/// Adds a border (Pad).
struct PadOptions {
  Border border;
  BorderMode padding = BorderMode::constant;
  uint8_t fill = 0;
};
Stage pad(PadOptions options);

/// Rotates counter-clockwise by a random angle in degrees (RandomRotation, nearest neighbour).
Stage rotate(Range degrees, uint8_t fill = 0);

/// Adjusts brightness, contrast, saturation and hue in a random order (ColorJitter). Draws each
/// adjustment factor from its range. `hue`: range of the hue shift, as a fraction of the colour
/// wheel in [-0.5, 0.5]. Skips adjustments with the default range.
struct ColorJitterOptions {
  Range brightness = {1, 1};
  Range contrast = {1, 1};
  Range saturation = {1, 1};
  Range hue = {0, 0};
};
Stage color_jitter(ColorJitterOptions options);

/// Sets a random rectangle to `value`, with the given probability (RandomErasing). `scale`: range
/// of the rectangle's area relative to the image. `ratio`: range of its height / width.
struct EraseOptions {
  double probability = 0.5;
  Range scale = {0.02, 0.33};
  Range ratio = {0.3, 3.3};
  uint8_t value = 0;
};
Stage erase(EraseOptions options);

}  // namespace fluid::augment
