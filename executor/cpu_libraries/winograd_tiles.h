#pragma once

#include <vector>

#include "executor/cpu_libraries/winograd_transform.h"

namespace fluid {

/// One axis of a convolution with stride 1.
struct WinogradAxis {
  int64_t in = 0, out = 0;        ///< size of the input and output, in pixels
  int64_t before = 0, after = 0;  ///< padding

  bool operator==(const WinogradAxis&) const = default;
};

/// A batch of channels-last images.
struct WinogradImages {
  std::byte* data = nullptr;
  int64_t pixel_bytes = 0;
};

/// Maps the tiles of a batch of images to the pixels that they read and write. Tiles end where
/// their image ends. If it is allowed and takes fewer tiles, they span images instead. The images
/// then form a mosaic with padding between them, and only tiles at its edge are partly unused. 64
/// images of 13 x 13 take 784 tiles as a mosaic and 1024 otherwise.
class WinogradTiles {
 public:
  WinogradTiles(int64_t images, const WinogradAxis& y, const WinogradAxis& x, int reach,
                bool may_span_images);

  int64_t count() const { return static_cast<int64_t>(rows_.size() * columns_.size()); }

  /// Returns the pixels of `in` that a tile reads. `zeros`: the address for padding.
  WinogradInputPixels reach(int64_t tile, const WinogradImages& in, std::byte* zeros) const;
  /// Returns the pixels of `out` that a tile writes; `none`: the address for pixels outside the
  /// images.
  WinogradOutputPixels given(int64_t tile, const WinogradImages& out, std::byte* none) const;

 private:
  struct Place {
    int64_t image = -1;  ///< index along the mosaic's axis
    int64_t pixel = -1;  ///< negative: none
  };
  struct Line {
    std::array<Place, kWinogradMostReach> in;
    std::array<Place, kWinogradTile> out;
  };
  static std::vector<Line> lines(const WinogradAxis& axis, int64_t images, bool across);
  struct Pixels {
    const WinogradImages& images;
    int64_t height, width;
    std::byte* none;  ///< address for places outside the images
  };
  /// Writes the addresses of a tile's `side` x `side` pixels to `addresses`.
  template <size_t kMost>
  void pixels(int64_t tile, std::array<Place, kMost> Line::*places, size_t side, const Pixels& of,
              std::byte** addresses) const;

  int64_t images_;
  WinogradAxis y_, x_;
  size_t reach_;        ///< pixels along an axis that a tile reads
  int64_t across_ = 1;  ///< images in a row of the mosaic
  std::vector<Line> rows_, columns_;
};

}  // namespace fluid
