#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ir/type.h"

namespace fluid {

// Winograd's F(4x4, 3x3) and F(4x4, 5x5). They compute 4x4 results of a filter by 36 products
// instead of 144, and by 64 instead of 400. See Lavin and Gray, "Fast Algorithms for Convolutional
// Neural Networks", CVPR 2016. The matrices A, B and G are theirs, for the points 0, 1, -1, 2, -2
// and, with five taps, 1/2, -1/2:
//     y = A'((G w G') * (B' x B))A
// The adjoint gives the filter's gradient: G'((B' x B) * (A y A'))G. Images are channels-last.
// Transformed values are f32 in planes, one per product, of [tile][channel] or [channel][channel].
// Channels come in whole vectors of kWinogradLanes.

inline constexpr int kWinogradTile = 4;  ///< results of a tile along an axis
inline constexpr int kWinogradMostReach = 8;
inline constexpr int64_t kWinogradLanes = 16;

struct WinogradForm {
  DType dtype = DType::f32;  ///< dtype of images and filters: f32, bf16 or f16
  int taps = 3;              ///< taps of a filter along an axis: 3 or 5

  int reach() const {
    return kWinogradTile + taps - 1;
  }  ///< pixels along an axis that a tile reads
  int planes() const { return reach() * reach(); }
};

/// Whether this CPU has the vector instructions that the functions below use (AVX-512).
bool winograd_supported();

/// Planes of floats, `stride` floats apart.
struct WinogradPlanes {
  float* data = nullptr;
  int64_t stride = 0;

  WinogradPlanes at(int64_t offset) const { return {data + offset, stride}; }
};

/// Addresses of a tile's pixels, row by row. A form with a shorter reach uses only the first ones.
using WinogradInputPixels = std::array<std::byte*, kWinogradMostReach * kWinogradMostReach>;
using WinogradOutputPixels = std::array<std::byte*, kWinogradTile * kWinogradTile>;

/// Computes B' x B of a tile's pixels, for `channels` channels.
void winograd_image(const WinogradForm& form, const WinogradInputPixels& pixels, int64_t channels,
                    WinogradPlanes to);
/// Computes A y A' of a tile of the output's gradient.
void winograd_gradient(const WinogradForm& form, const WinogradOutputPixels& pixels,
                       int64_t channels, WinogradPlanes to);
/// Computes A' m A and stores it to the pixels that are not null. Adds one bias per channel if
/// `bias` is not null, then applies the relu if set.
void winograd_results(const WinogradForm& form, WinogradPlanes from, int64_t channels,
                      const void* bias, bool relu, const WinogradOutputPixels& pixels);

/// A plain filter [outs, ins, taps, taps]. If `turned`, it is rotated by half a turn and read as
/// [ins, outs]: the convolution with it gives the input's gradient.
struct WinogradFilter {
  WinogradForm form;
  int64_t outs, ins;
  bool turned = false;

  int64_t from() const { return turned ? outs : ins; }  ///< channels that the filter reads
  int64_t to() const { return turned ? ins : outs; }    ///< channels that the filter writes
};

/// Computes G w G' for the channels [begin, end) that the filter reads, in whole vectors. Writes
/// planes of [from][to].
void winograd_filter(const WinogradFilter& filter, const void* w, int64_t begin, int64_t end,
                     WinogradPlanes to);
/// Computes G' m G for the rows [begin, end) of planes of [ins][outs], in whole vectors. Writes a
/// filter that is not turned.
void winograd_filter_gradient(const WinogradFilter& filter, WinogradPlanes from, int64_t begin,
                              int64_t end, void* w);

}  // namespace fluid
