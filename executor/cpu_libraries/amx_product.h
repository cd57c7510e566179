#pragma once

// The inner loops of amx_kernels.h, for CPUs that support amx.h. bf16 values are uint16_t. Sums
// are tiles of 16 x 16 f32, each in adjacent memory.

#include <cstdint>
#include <span>

#include "executor/host/parallel.h"

namespace fluid {

inline constexpr int64_t kAmxTerms = 32;  ///< terms of a product of tiles
inline constexpr int64_t kAmxSide = 16;   ///< rows and columns of a tile of sums
inline constexpr int64_t kAmxTileValues = kAmxSide * kAmxSide;  ///< of sums
inline constexpr int64_t kAmxFactorValues = kAmxSide * kAmxTerms;
/// Tasks of a thread below which a plan makes tasks smaller.
inline constexpr int64_t kAmxTasksPerWorker = 4;

/// Adds the product of one or two row tiles and one or two column tiles to their sums.
struct AmxProduct {
  int64_t row_tiles, column_tiles;
  int64_t steps;  ///< products of tiles, of kAmxTerms terms each
  /// Left factors: rows of terms. Distances in bytes between rows, and in values between the tiles
  /// of adjacent rows and of adjacent steps.
  const uint16_t* left;
  int64_t left_row_bytes, left_tile, left_step;
  /// Right factors: tiles of pairs of terms, of adjacent steps. `right_tile`: values between the
  /// tiles of adjacent columns.
  const uint16_t* right;
  int64_t right_tile;
  float* sums;
  int64_t sums_row, sums_column;  ///< values between tiles of sums
  bool accumulates;               ///< false: the sums are overwritten
};

/// Runs `body` with the tile registers configured.
void with_amx_tiles(void (*body)(void* context), void* context);
template <class Body>
void with_amx_tiles(Body body) {
  with_amx_tiles([](void* context) { (*static_cast<Body*>(context))(); }, &body);
}

/// Calls compute(task, worker) for each of `tasks` tasks, with the tile registers configured. Each
/// of `workers` threads takes adjacent tasks.
template <class Compute>
void run_amx_tasks(int64_t tasks, int64_t workers, Compute compute) {
  parallel_for(workers, [&](int64_t begin, int64_t end) {
    with_amx_tiles([&] {
      for (int64_t worker = begin; worker < end; ++worker) {
        for (int64_t task = tasks * worker / workers; task < tasks * (worker + 1) / workers; ++task)
          compute(task, worker);
      }
    });
  });
}

/// Must be called within with_amx_tiles().
void add_amx_product(const AmxProduct& p);

/// Channels of pixels, as factors of products over pixels. Each kAmxTerms of them fill two adjacent
/// tiles, in the order of amx_channel().
struct AmxChannels {
  const uint16_t* source;  ///< the first channel
  /// Distance in values of each pixel from `source`; negative: the pixel is zero. A multiple of
  /// kAmxTerms pixels.
  std::span<const int64_t> offsets;
  int64_t channels;  ///< those of the last two tiles that are left over are zeros
};

/// Returns the channel in column (or row) `i` of tile 0 or 1 of AmxChannels.
constexpr int64_t amx_channel(int64_t tile, int64_t i) { return i / 4 * 8 + tile * 4 + i % 4; }

/// Stores the right factors: for each tile, steps of kAmxTerms pixels. `next_tile`: values between
/// the tiles.
void pack_amx_columns(const AmxChannels& c, uint16_t* tiles, int64_t next_tile);

/// Stores the left factors: for each tile, steps of kAmxTerms pixels.
void pack_amx_rows(const AmxChannels& c, uint16_t* tiles, int64_t next_tile);

/// Adjacent terms of some rows of a matrix.
struct AmxMatrix {
  const uint16_t* source;
  int64_t stride;  ///< values between adjacent rows
  int64_t rows;
  int64_t terms;  ///< those of the last step that are left over are zeros
};

/// Copies the rows as left factors. Rows of the last tile that are left over are not stored.
void copy_amx_matrix(const AmxMatrix& m, uint16_t* tiles, int64_t next_tile);

/// Stores the rows as columns of right factors, in the order of amx_channel().
void transpose_amx_matrix(const AmxMatrix& m, uint16_t* tiles, int64_t next_tile);

/// Stores a row of right factors, a pair of terms of kAmxSide columns. `even`, `odd`: the terms of
/// column 0; null: zeros. `stride`: values between columns. Columns from `columns` on are zeros.
void pack_amx_terms(const uint16_t* even, const uint16_t* odd, int64_t stride, int64_t columns,
                    uint16_t* to);

/// Some rows of the results, from their sums: [row tile][column tile][kAmxSide][kAmxSide].
struct AmxResults {
  const float* sums;  ///< null: the sums are 0
  int64_t sums_row;   ///< values between the tiles of adjacent rows
  int64_t columns;
  bool interleaves_tiles;  ///< whether two column tiles are in the order of amx_channel()
  const uint16_t* bias;    ///< null: none
  bool relu;
  uint16_t* results;              ///< column 0 of row 0 of the results
  int64_t stride;                 ///< values between adjacent rows of the results
  std::span<const int64_t> rows;  ///< the result of each row of the sums; negative: none
};
void store_amx_results(const AmxResults& r);

/// Adds a tile of the sums of `ranges` arrays, `stride` values apart, and rounds it to bf16.
void sum_amx_ranges(const float* sums, int64_t ranges, int64_t stride, uint16_t* to);

}  // namespace fluid
