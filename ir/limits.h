#pragma once

#include <cstddef>
#include <cstdint>

namespace fluid::ir {

// Limits on the size of a program, far above real programs. Without them a hostile file of a few
// kilobytes could keep the compiler busy for hours.

inline constexpr size_t kMaxNameLength = 255;  ///< characters of an op, attribute or value name
inline constexpr size_t kMaxAttrs = 256;       ///< attributes of an op
/// Graphs of a program: main and the bodies of kernels.
inline constexpr size_t kMaxGraphs = 1 << 18;
inline constexpr int64_t kMaxRank = 12;  ///< dims of a tensor: the number of layout letters
inline constexpr int64_t kMaxId = int64_t{1} << 62;  ///< op ids lie in [0, kMaxId]

}  // namespace fluid::ir
