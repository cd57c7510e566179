#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/images/geometry.h"
#include "frontend/images/image.h"
#include "frontend/readers/split_mix64.h"

/// Stages that augment_images() applies to the images of a SampleSource. The definitions, defaults
/// and distributions are those of torchvision.transforms.v2 on PIL images; the random numbers are
/// not.
namespace fluid::augment {

/// Changes an image. Draws from `random`, which is seeded per sample; the same seed must give the
/// same image.
using Stage = std::function<void(Image& image, SplitMix64& random)>;

/// Height and width. A stage with `width` = 0 uses `height` for both.
struct Size {
  int64_t height = 0, width = 0;
};

/// A closed interval.
struct Range {
  double low = 0, high = 0;
};

/// Mirrors from left to right, with a probability (RandomHorizontalFlip).
Stage flip(double probability = 0.5);
/// Mirrors from top to bottom, with a probability (RandomVerticalFlip).
Stage vflip(double probability = 0.5);

/// Resizes to `size`; `smaller_edge`: so that the smaller edge has `size.height` pixels, and the
/// aspect ratio stays (Resize with antialias).
struct ResizeOptions {
  Size size;
  bool smaller_edge = false;
  Interpolation interpolation = Interpolation::bilinear;
};
Stage resize(ResizeOptions options);

/// Takes a random part (RandomCrop). The image must be at least as large.
Stage crop(Size size);
/// Takes the part at the centre (CenterCrop). A smaller image is padded with 0.
Stage center_crop(Size size);

/// Takes a part with a random area, a fraction in `scale` of the image's, and a random aspect
/// ratio in `ratio`, and resizes it (RandomResizedCrop with antialias).
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

/// Rotates by a random angle in degrees, counter-clockwise (RandomRotation by nearest neighbour).
Stage rotate(Range degrees, uint8_t fill = 0);

/// Changes brightness, contrast and saturation by random factors in these intervals, and the hue
/// by a random part of a circle, in a random order (ColorJitter). An interval {1, 1}, or {0, 0} of
/// the hue, draws no number and changes nothing.
struct ColorJitterOptions {
  Range brightness = {1, 1};
  Range contrast = {1, 1};
  Range saturation = {1, 1};
  Range hue = {0, 0};
};
Stage color_jitter(ColorJitterOptions options);

/// Sets a random rectangle to `value`, with a probability. Its area is a fraction in `scale` of
/// the image's, its aspect ratio in `ratio` (RandomErasing).
struct EraseOptions {
  double probability = 0.5;
  Range scale = {0.02, 0.33};
  Range ratio = {0.3, 3.3};
  uint8_t value = 0;
};
Stage erase(EraseOptions options);

}  // namespace fluid::augment
