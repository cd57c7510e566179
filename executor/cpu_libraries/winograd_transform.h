#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "executor/cpu_libraries/winograd_planes.h"
#include "ir/type.h"

namespace fluid {

// Winograd's F(4x4, 3x3) and F(4x4, 5x5). A tile of 4x4 results takes 36 multiplications instead of
// 144 with 3x3 filters, and 64 instead of 400 with 5x5 filters. See Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks", CVPR 2016. The matrices A, B and G are the
// paper's, for the interpolation points 0, 1, -1, 2, -2 and, for 5x5 filters, 1/2, -1/2:
//     y = A'((G w G') * (B' x B))A
// The filter's gradient is G'((B' x B) * (A dy A'))G. M' is the transpose of M; * is elementwise.
//
// Images are channels-last. Transformed values are f32, in one plane per element of the transformed
// tile: WinogradPlanes [tile][channel] or [channel][channel].

inline constexpr int kWinogradOutputTile = 4;    ///< output pixels of a tile along an axis
inline constexpr int kWinogradMaxInputTile = 8;  ///< input pixels of the largest tile along an axis

/// A variant of the Winograd convolution: its dtype and filter size.
struct WinogradVariant {
  DType dtype = DType::f32;  ///< dtype of images and filters: f32, bf16 or f16
  int taps = 3;              ///< filter size along an axis: 3 or 5

  /// Number of input pixels of a tile along an axis.
  int input_tile() const { return kWinogradOutputTile + taps - 1; }
  int planes() const { return input_tile() * input_tile(); }
};

/// Addresses of a tile's pixels, row by row. A smaller input tile uses only the first entries.
using WinogradInputPixels = std::array<std::byte*, kWinogradMaxInputTile * kWinogradMaxInputTile>;
using WinogradOutputPixels = std::array<std::byte*, kWinogradOutputTile * kWinogradOutputTile>;

// `next`: the pixels of the tile that is transformed next, which are prefetched; `pixels` for the
// last tile.

/// Computes B' x B for a tile x of the input, for each of `channels` channels.
void transform_winograd_input(const WinogradVariant& variant, const WinogradInputPixels& pixels,
                              const WinogradInputPixels& next, int64_t channels, WinogradPlanes to);
/// Computes A dy A' for a tile dy of the output gradient.
void transform_winograd_output_gradient(const WinogradVariant& variant,
                                        const WinogradOutputPixels& pixels,
                                        const WinogradOutputPixels& next, int64_t channels,
                                        WinogradPlanes to);
/// Computes A' m A for a transformed tile m. Then adds `bias` (one value per channel; null: no
/// bias), and applies a relu if `relu` is set. Stores the results to the pixels whose address is
/// not null.
void transform_winograd_output(const WinogradVariant& variant, WinogradPlanes from,
                               int64_t channels, const void* bias, bool relu,
                               const WinogradOutputPixels& pixels);

/// A filter [out_channels, in_channels, taps, taps] in row-major layout. If `rotated`, the
/// convolution rotates the filter by 180 degrees and swaps its channel axes. The input gradient is
/// such a convolution.
struct WinogradFilter {
  WinogradVariant variant;
  int64_t out_channels, in_channels;
  bool rotated = false;

  /// Number of channels of the images that the convolution reads.
  int64_t source_channels() const { return rotated ? out_channels : in_channels; }
  /// Number of channels of the images that the convolution writes.
  int64_t result_channels() const { return rotated ? in_channels : out_channels; }
};

/// Computes G w G' for the source channels [begin, end), and zeros for channels that the filter
/// does not have. `begin` and `end` must be multiples of kWinogradLanes. Each plane of `to` is a
/// matrix [source channel][result channel].
void transform_winograd_filter(const WinogradFilter& filter, const void* w, int64_t begin,
                               int64_t end, WinogradPlanes to);
/// Computes the filter gradient G' m G, where m is the sum of (B' x B) * (A dy A') over all tiles.
/// Plane i of `from` contains element i of m as a matrix [in_channels][out_channels]. Computes the
/// gradient for the input channels in [begin, end). `begin` and `end` must be multiples of
/// kWinogradLanes. `from` must have `end` rows. The filter must not be rotated.
void transform_winograd_filter_gradient(const WinogradFilter& filter, WinogradPlanes from,
                                        int64_t begin, int64_t end, void* w);

}  // namespace fluid
