#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fluid {

/// An image with 8-bit channels, in row-major order [height, width, channels].
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  ///< height x width x channels

  Image() = default;
  Image(int64_t height, int64_t width, int64_t channels)
      : height(height),
        width(width),
        channels(channels),
        pixels(static_cast<size_t>(height * width * channels)) {}

  uint8_t* row(int64_t y) { return pixels.data() + y * width * channels; }
  const uint8_t* row(int64_t y) const { return pixels.data() + y * width * channels; }

  /// Creates an image from pixels in planar layout [channels, height, width].
  static Image from_planes(int64_t height, int64_t width, int64_t channels,
                           std::span<const uint8_t> planes);
  /// Writes the pixels to `planes` in planar layout [channels, height, width].
  void copy_to_chw(std::span<uint8_t> planes) const;
};

}  // namespace fluid
