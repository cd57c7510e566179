#pragma once

#include <vector>

#include "executor/cpu/winograd_transform.h"

namespace fluid {

/// One axis of a convolution with a stride of 1.
struct WinogradAxis {
  int64_t in = 0, out = 0;        ///< pixels
  int64_t before = 0, after = 0;  ///< padding

  bool operator==(const WinogradAxis&) const = default;
};

/// A batch of images with channels innermost.
struct WinogradImages {
  std::byte* data = nullptr;
  int64_t pixel_bytes = 0;
};

/// Which pixels the tiles of a batch of images depend on and give. Tiles end where their image
/// ends, or, where they may and fewer do, lie across several: the images are laid side by side, as
/// a mosaic with the padding between them, and only its edge has tiles that are used in part. 64
/// images of 13 x 13 take 784 tiles across and 1024 otherwise.
class WinogradTiles {
 public:
  WinogradTiles(int64_t images, const WinogradAxis& y, const WinogradAxis& x, int reach,
                bool may_lie_across);

  int64_t count() const { return static_cast<int64_t>(rows_.size() * columns_.size()); }

  /// The pixels of `in` that a tile depends on; `zeros` stands for padding.
  WinogradReach reach(int64_t tile, const WinogradImages& in, std::byte* zeros) const;
  /// The pixels of `out` that a tile gives; `none` where it gives none.
  WinogradGiven given(int64_t tile, const WinogradImages& out, std::byte* none) const;

 private:
  struct Place {
    int64_t image = -1;  ///< along the mosaic's axis
    int64_t pixel = -1;  ///< none when negative
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
  /// The addresses of `side` x `side` places of a tile.
  template <size_t kMost>
  void pixels(int64_t tile, std::array<Place, kMost> Line::*places, size_t side, const Pixels& of,
              std::byte** addresses) const;

  int64_t images_;
  WinogradAxis y_, x_;
  size_t reach_;        ///< pixels along an axis that a tile depends on
  int64_t across_ = 1;  ///< images in a row
  std::vector<Line> rows_, columns_;
};

}  // namespace fluid
