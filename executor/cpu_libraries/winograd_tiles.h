#pragma once

#include <vector>

#include "executor/cpu_libraries/winograd_transform.h"

namespace fluid {

/// Sizes of a stride-1 convolution along one spatial axis, height or width.
struct WinogradAxis {
  int64_t in = 0, out = 0;        ///< input and output size in pixels
  int64_t before = 0, after = 0;  ///< padding before and after the input, in pixels

  bool operator==(const WinogradAxis&) const = default;
};

/// A batch of channels-last images.
struct WinogradImages {
  std::byte* data = nullptr;
  int64_t pixel_bytes = 0;
};

/// Maps each tile to the pixels that the tile reads and writes in a batch of images. Either each
/// image is tiled separately, or all images form a mosaic with padding between them. A tile of a
/// mosaic may contain pixels of several images. The images form a mosaic if `may_span_images` is
/// set and a mosaic needs fewer tiles. For example, 64 images of 13 x 13 pixels need 784 tiles as a
/// mosaic, and 1024 separately.
class WinogradTiles {
 public:
  WinogradTiles(int64_t images, const WinogradAxis& y, const WinogradAxis& x, int input_tile,
                bool may_span_images);

  int64_t count() const { return static_cast<int64_t>(rows_.size() * columns_.size()); }

  /// Returns the addresses of the pixels of `in` that a tile reads. Padding pixels get the address
  /// `zeros`, which must point to a pixel of zeros.
  WinogradInputPixels input_pixels(int64_t tile, const WinogradImages& in, std::byte* zeros) const;
  /// Returns the addresses of the pixels of `out` that a tile writes. Pixels outside the images get
  /// the address `outside`.
  WinogradOutputPixels output_pixels(int64_t tile, const WinogradImages& out,
                                     std::byte* outside) const;

 private:
  /// The position of a pixel along one axis.
  struct PixelIndex {
    int64_t image = -1;  ///< index of the image along this axis of the mosaic
    int64_t pixel = -1;  ///< index of the pixel in the image; negative for padding
  };
  /// The pixels that a tile reads and writes along one axis.
  struct AxisPixels {
    std::array<PixelIndex, kWinogradMaxInputTile> in;
    std::array<PixelIndex, kWinogradOutputTile> out;
  };
  static std::vector<AxisPixels> axis_pixels(const WinogradAxis& axis, int64_t images, bool mosaic);
  struct Pixels {
    const WinogradImages& images;
    int64_t height, width;
    std::byte* outside;  ///< address of pixels outside the images
  };
  /// Stores the addresses of a tile's `side` x `side` pixels in `addresses`.
  template <size_t kMaxSide>
  void store_pixel_addresses(int64_t tile, std::array<PixelIndex, kMaxSide> AxisPixels::*axis,
                             size_t side, const Pixels& source, std::byte** addresses) const;

  int64_t images_;
  WinogradAxis y_, x_;
  size_t input_tile_;           ///< pixels that a tile reads along an axis
  int64_t images_per_row_ = 1;  ///< images per row of the mosaic
  std::vector<AxisPixels> rows_, columns_;
};

}  // namespace fluid
