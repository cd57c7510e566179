#include "executor/cpu_libraries/winograd_tiles.h"

#include <algorithm>
#include <span>

#include "executor/cpu_libraries/divide_up.h"

namespace fluid {
namespace {

/// Returns the distance in pixels between the starts of adjacent images of a mosaic. Adjacent
/// images share the padding between them.
int64_t period_of(const WinogradAxis& axis) {
  return std::max(axis.in + std::max(axis.before, axis.after), axis.out);
}

/// Returns whether a tile may span several images along an axis with `images` images.
bool spans_images(int64_t images, bool mosaic) { return mosaic && images > 1; }

int64_t tiles_along(const WinogradAxis& axis, int64_t images, bool mosaic) {
  return spans_images(images, mosaic) ? divide_up(images * period_of(axis), kWinogradOutputTile)
                                      : images * divide_up(axis.out, kWinogradOutputTile);
}

}  // namespace

WinogradTiles::WinogradTiles(int64_t images, const WinogradAxis& y, const WinogradAxis& x,
                             int input_tile, bool may_span_images)
    : images_(images), y_(y), x_(x), input_tile_(static_cast<size_t>(input_tile)) {
  int64_t fewest = tiles_along(y, images, false) * tiles_along(x, 1, false);
  bool mosaic = false;
  for (int64_t n = 1; may_span_images && n <= images; ++n) {
    const int64_t tiles = tiles_along(y, divide_up(images, n), true) * tiles_along(x, n, true);
    if (tiles >= fewest) continue;
    fewest = tiles;
    mosaic = true;
    images_per_row_ = n;
  }
  rows_ = axis_pixels(y, divide_up(images, images_per_row_), mosaic);
  columns_ = axis_pixels(x, images_per_row_, mosaic);
}

std::vector<WinogradTiles::AxisPixels> WinogradTiles::axis_pixels(const WinogradAxis& axis,
                                                                  int64_t images, bool mosaic) {
  const int64_t tiles = tiles_along(axis, images, mosaic);
  mosaic = spans_images(images, mosaic);
  const int64_t period = mosaic ? period_of(axis) : tiles / images * kWinogradOutputTile;
  std::vector<AxisPixels> axis_pixels(static_cast<size_t>(tiles));
  for (int64_t t = 0; t < tiles; ++t) {
    AxisPixels& pixels = axis_pixels[static_cast<size_t>(t)];
    const int64_t first = t * kWinogradOutputTile;
    for (int64_t i = 0; i < kWinogradMaxInputTile; ++i) {
      const int64_t image = (mosaic ? first + i : first) / period;
      const int64_t pixel = first + i - image * period - axis.before;
      if (image < images && pixel >= 0 && pixel < axis.in)
        pixels.in[static_cast<size_t>(i)] = {image, pixel};
    }
    for (int64_t i = 0; i < kWinogradOutputTile; ++i) {
      const int64_t image = (first + i) / period, pixel = (first + i) % period;
      if (image < images && pixel < axis.out) pixels.out[static_cast<size_t>(i)] = {image, pixel};
    }
  }
  return axis_pixels;
}

template <size_t kMaxSide>
void WinogradTiles::store_pixel_addresses(int64_t tile,
                                          std::array<PixelIndex, kMaxSide> AxisPixels::*axis,
                                          size_t side, const Pixels& source,
                                          std::byte** addresses) const {
  const auto n = static_cast<int64_t>(columns_.size());
  const AxisPixels& row = rows_[static_cast<size_t>(tile / n)];
  const AxisPixels& column = columns_[static_cast<size_t>(tile % n)];
  for (const PixelIndex y : std::span(row.*axis).first(side)) {
    for (const PixelIndex x : std::span(column.*axis).first(side)) {
      const int64_t image = y.image * images_per_row_ + x.image;
      const bool inside = y.pixel >= 0 && x.pixel >= 0 && image < images_;
      const int64_t pixel = (image * source.height + y.pixel) * source.width + x.pixel;
      *addresses++ =
          inside ? source.images.data + pixel * source.images.pixel_bytes : source.outside;
    }
  }
}

WinogradInputPixels WinogradTiles::input_pixels(int64_t tile, const WinogradImages& in,
                                                std::byte* zeros) const {
  WinogradInputPixels addresses{};
  store_pixel_addresses(tile, &AxisPixels::in, input_tile_, {in, y_.in, x_.in, zeros},
                        addresses.data());
  return addresses;
}

WinogradOutputPixels WinogradTiles::output_pixels(int64_t tile, const WinogradImages& out,
                                                  std::byte* outside) const {
  WinogradOutputPixels addresses;
  store_pixel_addresses(tile, &AxisPixels::out, kWinogradOutputTile, {out, y_.out, x_.out, outside},
                        addresses.data());
  return addresses;
}

}  // namespace fluid
