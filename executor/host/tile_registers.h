#pragma once

// The tile registers of Intel's AMX ("Intel 64 and IA-32 Architectures Software Developer's
// Manual", volume 1, chapter 18).

#include <cstdint>

namespace fluid {

inline constexpr int64_t kTileRowBytes = 64;               ///< bytes of a row of a tile
inline constexpr int64_t kTileBytes = 16 * kTileRowBytes;  ///< a tile has 16 rows

/// Operand of `ldtilecfg`: eight tiles of full size.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

/// Asks Linux for permission to use the tile registers in this process (Documentation/arch/x86/
/// xstate.rst). Returns whether Linux grants it; false on other processors.
bool request_tile_registers();

}  // namespace fluid
