#include "executor/cpu_libraries/winograd_tiles.h"

#include <algorithm>
#include <span>

namespace fluid {
namespace {

int64_t divided(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Returns the distance from one image of a mosaic to the next. The gap between two images is
/// padding of both.
int64_t period_of(const WinogradAxis& axis) {
  return std::max(axis.in + std::max(axis.before, axis.after), axis.out);
}

/// Whether tiles span images. Tiles of a single image end where it ends.
bool spans_images(int64_t images, bool across) { return across && images > 1; }

int64_t tiles_along(const WinogradAxis& axis, int64_t images, bool across) {
  return spans_images(images, across) ? divided(images * period_of(axis), kWinogradTile)
                                      : images * divided(axis.out, kWinogradTile);
}

}  // namespace

WinogradTiles::WinogradTiles(int64_t images, const WinogradAxis& y, const WinogradAxis& x,
                             int reach, bool may_span_images)
    : images_(images), y_(y), x_(x), reach_(static_cast<size_t>(reach)) {
  int64_t fewest = tiles_along(y, images, false) * tiles_along(x, 1, false);
  bool across = false;
  for (int64_t n = 1; may_span_images && n <= images; ++n) {
    const int64_t tiles = tiles_along(y, divided(images, n), true) * tiles_along(x, n, true);
    if (tiles >= fewest) continue;
    fewest = tiles;
    across = true;
    across_ = n;
  }
  rows_ = lines(y, divided(images, across_), across);
  columns_ = lines(x, across_, across);
}

std::vector<WinogradTiles::Line> WinogradTiles::lines(const WinogradAxis& axis, int64_t images,
                                                      bool across) {
  const int64_t tiles = tiles_along(axis, images, across);
  across = spans_images(images, across);
  const int64_t period = across ? period_of(axis) : tiles / images * kWinogradTile;
  std::vector<Line> lines(static_cast<size_t>(tiles));
  for (int64_t t = 0; t < tiles; ++t) {
    Line& line = lines[static_cast<size_t>(t)];
    const int64_t first = t * kWinogradTile;
    for (int64_t i = 0; i < kWinogradMostReach; ++i) {
      const int64_t image = (across ? first + i : first) / period;
      const int64_t pixel = first + i - image * period - axis.before;
      if (image < images && pixel >= 0 && pixel < axis.in)
        line.in[static_cast<size_t>(i)] = {image, pixel};
    }
    for (int64_t i = 0; i < kWinogradTile; ++i) {
      const int64_t image = (first + i) / period, pixel = (first + i) % period;
      if (image < images && pixel < axis.out) line.out[static_cast<size_t>(i)] = {image, pixel};
    }
  }
  return lines;
}

template <size_t kMost>
void WinogradTiles::pixels(int64_t tile, std::array<Place, kMost> Line::*places, size_t side,
                           const Pixels& of, std::byte** addresses) const {
  const auto n = static_cast<int64_t>(columns_.size());
  const Line& row = rows_[static_cast<size_t>(tile / n)];
  const Line& column = columns_[static_cast<size_t>(tile % n)];
  for (const Place y : std::span(row.*places).first(side)) {
    for (const Place x : std::span(column.*places).first(side)) {
      const int64_t image = y.image * across_ + x.image;
      const bool there = y.pixel >= 0 && x.pixel >= 0 && image < images_;
      const int64_t pixel = (image * of.height + y.pixel) * of.width + x.pixel;
      *addresses++ = there ? of.images.data + pixel * of.images.pixel_bytes : of.none;
    }
  }
}

WinogradInputPixels WinogradTiles::reach(int64_t tile, const WinogradImages& in,
                                         std::byte* zeros) const {
  WinogradInputPixels addresses{};
  pixels(tile, &Line::in, reach_, {in, y_.in, x_.in, zeros}, addresses.data());
  return addresses;
}

WinogradOutputPixels WinogradTiles::given(int64_t tile, const WinogradImages& out,
                                          std::byte* none) const {
  WinogradOutputPixels addresses;
  pixels(tile, &Line::out, kWinogradTile, {out, y_.out, x_.out, none}, addresses.data());
  return addresses;
}

}  // namespace fluid
