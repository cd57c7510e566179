#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ir/type.h"

namespace fluid {

// Winograd's F(4x4, 3x3): 4x4 results of a 3x3 filter by 36 products instead of 144 (Lavin and
// Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, with their matrices A, B
// and G):
//   y = A'((G w G') * (B' x B))A
// and, as its adjoint, the filter's gradient is G'((B' x B) * (A y A'))G. Images lie with their
// channels innermost; what is transformed is f32 and lies in 36 planes of [tile][channel] or
// [channel][channel]. Channels come in whole vectors of kWinogradLanes.

inline constexpr int kWinogradTile = 4;        ///< results along an axis
inline constexpr int kWinogradReach = 6;       ///< pixels along an axis that they depend on
inline constexpr int kWinogradPlanes = 6 * 6;  ///< products a tile
inline constexpr int64_t kWinogradLanes = 16;

/// Whether this processor has the vectors that the functions below take (AVX-512).
bool winograd_runs_here();

/// 36 stretches of memory, `stride` floats apart.
struct WinogradPlanes {
  float* data = nullptr;
  int64_t stride = 0;

  WinogradPlanes at(int64_t offset) const { return {data + offset, stride}; }
};

/// Addresses of pixels, rows one after another.
using WinogradReach = std::array<std::byte*, kWinogradReach * kWinogradReach>;
using WinogradGiven = std::array<std::byte*, kWinogradTile * kWinogradTile>;

/// B' x B of the pixels of one tile, `channels` of each.
void winograd_image(DType dtype, const WinogradReach& pixels, int64_t channels, WinogradPlanes to);
/// A y A' of a tile of a gradient.
void winograd_gradient(DType dtype, const WinogradGiven& pixels, int64_t channels,
                       WinogradPlanes to);
/// A' m A, to the pixels that are not null; adds a number a channel where `bias` is not null.
void winograd_results(DType dtype, WinogradPlanes from, int64_t channels, const void* bias,
                      bool relu, const WinogradGiven& pixels);

/// A filter [outs, ins, 3, 3], plain, as [outs, ins] or, turned round by half a turn, as the filter
/// [ins, outs] of the convolution that gives the input's gradient.
struct WinogradFilter {
  DType dtype;
  int64_t outs, ins;
  bool turned = false;

  int64_t from() const { return turned ? outs : ins; }  ///< channels that it reads
  int64_t to() const { return turned ? ins : outs; }    ///< channels that it gives
};

/// G w G' for the channels [begin, end) of those it reads, whole vectors, to planes of [from][to].
void winograd_filter(const WinogradFilter& filter, const void* w, int64_t begin, int64_t end,
                     WinogradPlanes to);
/// G' m G of the rows [begin, end) of planes of [ins][outs], whole vectors, to a filter that is not
/// turned.
void winograd_filter_gradient(const WinogradFilter& filter, WinogradPlanes from, int64_t begin,
                              int64_t end, void* w);

}  // namespace fluid
