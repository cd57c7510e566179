#include "frontend/images/geometry.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "ir/error.h"

namespace fluid {
namespace {

void copy_pixel(const uint8_t* from, uint8_t* to, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) to[c] = from[c];
}

/// Maps position `i`, which may lie outside [0, size), to the index of the source pixel.
int64_t source_index(int64_t i, int64_t size, BorderMode padding) {
  if (padding == BorderMode::edge) return std::clamp<int64_t>(i, 0, size - 1);
  const int64_t mirror = padding == BorderMode::symmetric ? 1 : 0;
  if (i < 0) return -i - mirror;
  return i >= size ? 2 * (size - 1) - i + mirror : i;
}

/// Rounds to 15 decimals, as PIL rounds the sine and cosine of a rotation.
double round_15(double x) { return std::round(x * 1e15) / 1e15; }

int64_t fixed_point(double x) { return static_cast<int64_t>(std::floor(x * 65536 + 0.5)); }

Image turned_by_half(const Image& image) {
  Image out = image;
  flip_horizontally(out);
  flip_vertically(out);
  return out;
}

/// Rotates a square image by 90 degrees, clockwise or counter-clockwise.
Image turned_by_quarter(const Image& image, bool clockwise) {
  Image out(image.height, image.width, image.channels);
  const int64_t n = image.height;
  for (int64_t y = 0; y < n; ++y) {
    for (int64_t x = 0; x < n; ++x) {
      const int64_t from_y = clockwise ? n - 1 - x : x, from_x = clockwise ? y : n - 1 - y;
      copy_pixel(image.row(from_y) + from_x * image.channels, out.row(y) + x * image.channels,
                 image.channels);
    }
  }
  return out;
}

}  // namespace

void flip_horizontally(Image& image) {
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* left = image.row(y);
    uint8_t* right = left + (image.width - 1) * image.channels;
    for (; left < right; left += image.channels, right -= image.channels) {
      std::swap_ranges(left, left + image.channels, right);
    }
  }
}

void flip_vertically(Image& image) {
  const int64_t row_bytes = image.width * image.channels;
  for (int64_t y = 0; y < image.height / 2; ++y) {
    std::swap_ranges(image.row(y), image.row(y) + row_bytes, image.row(image.height - 1 - y));
  }
}

Image crop(const Image& image, const ImageBox& box) {
  Image out(box.height, box.width, image.channels);
  const int64_t from = std::max<int64_t>(0, box.left);
  const int64_t end = std::min(image.width, box.left + box.width);
  for (int64_t y = std::max<int64_t>(0, box.top);
       y < std::min(image.height, box.top + box.height) && from < end; ++y) {
    std::memcpy(out.row(y - box.top) + (from - box.left) * image.channels,
                image.row(y) + from * image.channels,
                static_cast<size_t>((end - from) * image.channels));
  }
  return out;
}

Image center_crop(const Image& image, int64_t height, int64_t width) {
  // A negative origin pads an image that is too small. If the padding is odd, the bottom or right
  // border gets the extra pixel.
  const auto origin = [](int64_t size, int64_t wanted) {
    if (wanted > size) return -((wanted - size) / 2);
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(size - wanted) / 2));
  };
  return crop(image, {origin(image.height, height), origin(image.width, width), height, width});
}

Image pad(const Image& image, const Border& border, BorderMode padding, uint8_t fill) {
  Image out(image.height + border.top + border.bottom, image.width + border.left + border.right,
            image.channels);
  const int64_t across = std::max(border.left, border.right);
  const int64_t down = std::max(border.top, border.bottom);
  const int64_t mirror = padding == BorderMode::symmetric ? 0 : 1;
  if ((padding == BorderMode::reflect || padding == BorderMode::symmetric) &&
      (across > image.width - mirror || down > image.height - mirror)) {
    throw UserError("a border of " + std::to_string(std::max(across, down)) +
                    " pixels cannot be reflected from an image of " + std::to_string(image.height) +
                    "x" + std::to_string(image.width));
  }
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x) {
      uint8_t* to = out.row(y) + x * out.channels;
      const int64_t from_y = y - border.top, from_x = x - border.left;
      const bool inside =
          from_y >= 0 && from_y < image.height && from_x >= 0 && from_x < image.width;
      if (!inside && padding == BorderMode::constant) {
        std::memset(to, fill, static_cast<size_t>(out.channels));
        continue;
      }
      copy_pixel(image.row(source_index(from_y, image.height, padding)) +
                     source_index(from_x, image.width, padding) * image.channels,
                 to, out.channels);
    }
  }
  return out;
}

Image rotate(const Image& image, double degrees, uint8_t fill) {
  degrees = std::fmod(degrees, 360);
  if (degrees < 0) degrees += 360;
  if (degrees == 0) return image;
  if (degrees == 180) return turned_by_half(image);
  if ((degrees == 90 || degrees == 270) && image.height == image.width) {
    return turned_by_quarter(image, degrees == 270);
  }
  const double angle = -degrees * std::numbers::pi / 180;
  const double cosine = round_15(std::cos(angle)), sine = round_15(std::sin(angle));
  const double center_x = static_cast<double>(image.width) / 2;
  const double center_y = static_cast<double>(image.height) / 2;
  const double shift_x = cosine * -center_x + sine * -center_y + center_x;
  const double shift_y = -sine * -center_x + cosine * -center_y + center_y;
  const int64_t step_x = fixed_point(cosine), step_y = fixed_point(-sine);
  const int64_t line_x = fixed_point(sine), line_y = fixed_point(cosine);
  int64_t start_x = fixed_point(shift_x + cosine * 0.5 + sine * 0.5);
  int64_t start_y = fixed_point(shift_y - sine * 0.5 + cosine * 0.5);
  Image out(image.height, image.width, image.channels);
  std::ranges::fill(out.pixels, fill);
  for (int64_t y = 0; y < out.height; ++y, start_x += line_x, start_y += line_y) {
    int64_t at_x = start_x, at_y = start_y;
    uint8_t* to = out.row(y);
    for (int64_t x = 0; x < out.width; ++x, to += out.channels, at_x += step_x, at_y += step_y) {
      const int64_t from_x = at_x >> 16, from_y = at_y >> 16;
      if (from_x < 0 || from_x >= image.width || from_y < 0 || from_y >= image.height) continue;
      copy_pixel(image.row(from_y) + from_x * image.channels, to, image.channels);
    }
  }
  return out;
}

void erase(Image& image, const ImageBox& box, uint8_t value) {
  for (int64_t y = box.top; y < box.top + box.height; ++y) {
    std::memset(image.row(y) + box.left * image.channels, value,
                static_cast<size_t>(box.width * image.channels));
  }
}

}  // namespace fluid
