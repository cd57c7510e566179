#pragma once

// Instructions of AMX, in programs that are compiled for any x86-64 CPU. Include this header in
// .cpp files only, inside `#if defined(__x86_64__)`. Callers check cpu_supports_amx().
//
// Inline assembly works without the compiler flags of the instruction sets, and the "memory"
// clobber orders the loads of tiles behind the stores that fill their rows. GCC 12's intrinsics
// lack it.

#include "executor/cpu_libraries/avx512.h"
#include "executor/host/tile_registers.h"

/// Declare functions like FLUID_AVX512 and FLUID_AVX512_ENTRY that may also convert to bf16: every
/// CPU with AMX can.
#define FLUID_AMX                                                              \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,f16c"), \
                 always_inline)) inline
#define FLUID_AMX_ENTRY \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,f16c")))

namespace fluid {

/// Configures the tile registers of the calling thread. The destructor resets them, so that the
/// operating system does not save them with the thread.
class ScopedTiles {
 public:
  ScopedTiles() {
    static constexpr TileConfig kConfig;
    asm volatile("ldtilecfg (%0)" ::"r"(&kConfig) : "memory");
  }
  ~ScopedTiles() { asm volatile("tilerelease" ::: "memory"); }
  ScopedTiles(const ScopedTiles&) = delete;
  ScopedTiles& operator=(const ScopedTiles&) = delete;
};

/// Loads the 16 rows of tile register `kTile` from memory. `stride`: bytes between rows.
template <int kTile>
void load_tile(const void* rows, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
void store_tile(void* rows, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
void zero_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

/// Adds the product of two tiles of bf16 to a tile of f32. `kRight` holds pairs of terms: its row i
/// has terms 2i and 2i + 1 of each column, side by side.
template <int kSum, int kLeft, int kRight>
void add_tile_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kLeft), "i"(kRight));
}

}  // namespace fluid
