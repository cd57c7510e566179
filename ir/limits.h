#pragma once

#include <cstddef>
#include <cstdint>

namespace fluid::ir {

// Limits on the size of a program, far above real programs. Without them a hostile file of a few
// kilobytes could keep the compiler busy for hours.

/// Maximum length, in characters, of the name of an op, attribute or value.
inline constexpr size_t kMaxNameLength = 255;
inline constexpr size_t kMaxAttrs = 256;  ///< maximum number of attributes of an op
/// Maximum number of graphs of a program: main, and the bodies of fused kernels.
inline constexpr size_t kMaxGraphs = 1 << 18;
inline constexpr int64_t kMaxRank = 12;  ///< maximum rank of a tensor; see layout_letters()
inline constexpr int64_t kMaxId = int64_t{1} << 62;  ///< maximum id of an op; the minimum is 0

}  // namespace fluid::ir
