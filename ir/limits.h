#pragma once

#include <cstddef>
#include <cstdint>

namespace fluid::ir {

// What a program may hold. No honest program comes near; without limits a hostile file could make
// the compiler work for hours on a few kilobytes.

inline constexpr size_t kMaxNameLength =
    255;                                  ///< characters of an op's, attribute's or value's name
inline constexpr size_t kMaxAttrs = 256;  ///< attributes of an op
inline constexpr size_t kMaxGraphs = 1 << 18;  ///< of a program: main and the bodies of kernels
inline constexpr int64_t kMaxRank = 12;  ///< dims of a tensor: as many as layouts have letters
inline constexpr int64_t kMaxId = int64_t{1} << 62;  ///< ids of ops lie in [0, kMaxId]

}  // namespace fluid::ir
