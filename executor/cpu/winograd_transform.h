#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ir/type.h"

namespace fluid {

// Winograd's F(4x4, 3x3) and F(4x4, 5x5): 4x4 results of a filter by 36 products instead of 144, by
// 64 instead of 400 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR
// 2016, with their matrices A, B and G; of points 0, 1, -1, 2, -2 and, for five taps, 1/2, -1/2):
//   y = A'((G w G') * (B' x B))A
// and, as its adjoint, the filter's gradient is G'((B' x B) * (A y A'))G. Images lie with their
// channels innermost; what is transformed is f32 and lies in planes, one a product, of
// [tile][channel] or [channel][channel]. Channels come in whole vectors of kWinogradLanes.

inline constexpr int kWinogradTile = 4;  ///< results along an axis
inline constexpr int kWinogradMostReach = 8;
inline constexpr int64_t kWinogradLanes = 16;

struct WinogradForm {
  DType dtype = DType::f32;  ///< of images and filters: f32, bf16 or f16
  int taps = 3;              ///< of a filter along an axis: 3 or 5

  int reach() const {
    return kWinogradTile + taps - 1;
  }  ///< pixels along an axis that a tile reads
  int planes() const { return reach() * reach(); }
};

/// Whether this processor has the vectors that the functions below take (AVX-512).
bool winograd_runs_here();

/// Stretches of memory, `stride` floats apart.
struct WinogradPlanes {
  float* data = nullptr;
  int64_t stride = 0;

  WinogradPlanes at(int64_t offset) const { return {data + offset, stride}; }
};

/// Addresses of pixels, rows one after another; as many as a form's tile reads.
using WinogradReach = std::array<std::byte*, kWinogradMostReach * kWinogradMostReach>;
using WinogradGiven = std::array<std::byte*, kWinogradTile * kWinogradTile>;

/// B' x B of the pixels of one tile, `channels` of each.
void winograd_image(const WinogradForm& form, const WinogradReach& pixels, int64_t channels,
                    WinogradPlanes to);
/// A y A' of a tile of a gradient.
void winograd_gradient(const WinogradForm& form, const WinogradGiven& pixels, int64_t channels,
                       WinogradPlanes to);
/// A' m A, to the pixels that are not null; adds a number a channel where `bias` is not null.
void winograd_results(const WinogradForm& form, WinogradPlanes from, int64_t channels,
                      const void* bias, bool relu, const WinogradGiven& pixels);

/// A filter [outs, ins, taps, taps], plain, as [outs, ins] or, turned round by half a turn, as the
/// filter [ins, outs] of the convolution that gives the input's gradient.
struct WinogradFilter {
  WinogradForm form;
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
