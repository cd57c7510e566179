#include "frontend/images/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "frontend/images/color.h"
#include "ir/error.h"

namespace fluid::augment {
namespace {

/// Maximum number of random rectangles to try, as in torchvision.
constexpr int kTries = 10;

Size both(Size size) { return {size.height, size.width == 0 ? size.height : size.width}; }

int64_t draw_origin(SplitMix64& random, int64_t room) {
  return static_cast<int64_t>(random.below(static_cast<uint64_t>(room + 1)));
}

/// Draws an area and an aspect ratio (width / height), and returns the rectangle's size.
Size draw_extent(SplitMix64& random, double image_area, const Range& scale, const Range& ratio) {
  const double area = image_area * random.uniform(scale.low, scale.high);
  const double aspect = std::exp(random.uniform(std::log(ratio.low), std::log(ratio.high)));
  return {static_cast<int64_t>(std::nearbyint(std::sqrt(area / aspect))),
          static_cast<int64_t>(std::nearbyint(std::sqrt(area * aspect)))};
}

double area_of(const Image& image) { return static_cast<double>(image.height * image.width); }

/// Returns the largest central rectangle whose aspect ratio is in `ratio`.
ImageBox central_part(const Image& image, const Range& ratio) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  int64_t h = image.height, w = image.width;
  if (width / height < ratio.low) {
    h = static_cast<int64_t>(std::nearbyint(width / ratio.low));
  } else if (width / height > ratio.high) {
    w = static_cast<int64_t>(std::nearbyint(height * ratio.high));
  }
  return {(image.height - h) / 2, (image.width - w) / 2, h, w};
}

ImageBox draw_part(const Image& image, SplitMix64& random, const Range& scale, const Range& ratio) {
  for (int i = 0; i < kTries; ++i) {
    const Size part = draw_extent(random, area_of(image), scale, ratio);
    if (part.width < 1 || part.width > image.width) continue;
    if (part.height < 1 || part.height > image.height) continue;
    const int64_t top = draw_origin(random, image.height - part.height);
    return {top, draw_origin(random, image.width - part.width), part.height, part.width};
  }
  return central_part(image, ratio);
}

}  // namespace

Stage flip(double probability) {
  return [=](Image& image, SplitMix64& random) {
    if (random.uniform() < probability) flip_horizontally(image);
  };
}

Stage vflip(double probability) {
  return [=](Image& image, SplitMix64& random) {
    if (random.uniform() < probability) flip_vertically(image);
  };
}

Stage resize(ResizeOptions options) {
  return [=](Image& image, SplitMix64&) {
    auto [height, width] = both(options.size);
    if (options.smaller_edge) {
      const int64_t edge = options.size.height;
      const bool upright = image.width <= image.height;
      height = upright ? edge * image.height / image.width : edge;
      width = upright ? edge : edge * image.width / image.height;
    }
    const ImageBox all = {0, 0, image.height, image.width};
    image = fluid::resize(image, all, height, width, options.interpolation);
  };
}

Stage crop(Size size) {
  return [size = both(size)](Image& image, SplitMix64& random) {
    if (size.height > image.height || size.width > image.width) {
      throw UserError("crop=" + std::to_string(size.height) + "x" + std::to_string(size.width) +
                      " is larger than the image of " + std::to_string(image.height) + "x" +
                      std::to_string(image.width));
    }
    const int64_t top = draw_origin(random, image.height - size.height);
    const int64_t left = draw_origin(random, image.width - size.width);
    image = fluid::crop(image, {top, left, size.height, size.width});
  };
}

Stage center_crop(Size size) {
  return [size = both(size)](Image& image, SplitMix64&) {
    image = fluid::center_crop(image, size.height, size.width);
  };
}

Stage resized_crop(ResizedCropOptions options) {
  return [=](Image& image, SplitMix64& random) {
    const auto [height, width] = both(options.size);
    const ImageBox part = draw_part(image, random, options.scale, options.ratio);
    image = fluid::resize(image, part, height, width, options.interpolation);
  };
}

Stage pad(PadOptions options) {
  return [=](Image& image, SplitMix64&) {
    image = fluid::pad(image, options.border, options.padding, options.fill);
  };
}

Stage rotate(Range degrees, uint8_t fill) {
  return [=](Image& image, SplitMix64& random) {
    image = fluid::rotate(image, random.uniform(degrees.low, degrees.high), fill);
  };
}

Stage color_jitter(ColorJitterOptions options) {
  struct Adjustment {
    void (*adjust)(Image&, double);
    Range range;
    double neutral;
  };
  const std::array<Adjustment, 4> adjustments = {{{adjust_brightness, options.brightness, 1},
                                                  {adjust_contrast, options.contrast, 1},
                                                  {adjust_saturation, options.saturation, 1},
                                                  {adjust_hue, options.hue, 0}}};
  return [=](Image& image, SplitMix64& random) {
    std::array<size_t, 4> order = {0, 1, 2, 3};
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(random.below(i))]);
    }
    for (const size_t i : order) {
      const auto& [adjust, range, neutral] = adjustments[i];
      if (range.low == neutral && range.high == neutral) continue;
      adjust(image, random.uniform(range.low, range.high));
    }
  };
}

Stage erase(EraseOptions options) {
  return [=](Image& image, SplitMix64& random) {
    if (random.uniform() >= options.probability) return;
    for (int i = 0; i < kTries; ++i) {
      // Swaps height and width, because RandomErasing's aspect ratio is height / width.
      const auto [width, height] =
          draw_extent(random, area_of(image), options.scale, options.ratio);
      if (height >= image.height || width >= image.width || height < 1 || width < 1) continue;
      const int64_t top = draw_origin(random, image.height - height);
      const int64_t left = draw_origin(random, image.width - width);
      return fluid::erase(image, {top, left, height, width}, options.value);
    }
  };
}

}  // namespace fluid::augment
