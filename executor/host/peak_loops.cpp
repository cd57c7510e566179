#include "executor/host/peak_loops.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "executor/host/host_cpu.h"
#include "executor/host/tile_registers.h"

namespace fluid {
namespace {

#if defined(__x86_64__)

// Inline assembly works without the compiler flags of the instruction sets. Each loop repeats its
// instructions for 12 independent accumulators (registers 2 to 13). This hides a latency of up to
// 12 cycles at one instruction per cycle. The factors (registers 0 and 1) are ones: zeros would
// draw less power and allow a higher clock rate.
constexpr int64_t kAccumulators = 12;

// clang-format off
#define FLUID_FOR_EACH_ACCUMULATOR(instructions) \
  ".irp r,2,3,4,5,6,7,8,9,10,11,12,13\n" instructions ".endr\n"

/// Defines a function that loops over `instructions`, repeated for each accumulator. In `clear` and
/// `instructions`, \r is the register number of the accumulator. `clear`: sets an accumulator to
/// zero. `load`: loads the 32-bit pattern at %[ones] into all lanes of registers 0 and 1. `end`:
/// instructions after the loop.
#define FLUID_PEAK_LOOP(function, pattern, clear, load, instructions, end)                    \
  void function(int64_t iterations) {                                                         \
    static constexpr uint32_t kOnes[4] = {pattern, pattern, pattern, pattern};                \
    asm volatile(FLUID_FOR_EACH_ACCUMULATOR(clear)                                            \
                 load                                                                         \
                 "1:\n"                                                                       \
                 FLUID_FOR_EACH_ACCUMULATOR(instructions)                                     \
                 "dec %[n]\n"                                                                 \
                 "jnz 1b\n"                                                                   \
                 end                                                                          \
                 : [n] "+r"(iterations)                                                       \
                 : [ones] "r"(kOnes)                                                          \
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",    \
                   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13");               \
  }

#define FLUID_CLEAR_VEX "vpxor %%xmm\\r, %%xmm\\r, %%xmm\\r\n"
#define FLUID_LOAD(width) \
  "vpbroadcastd (%[ones]), %%" width "0\n vpbroadcastd (%[ones]), %%" width "1\n"
#define FLUID_VEX_LOOP(function, pattern, instruction)                                  \
  FLUID_PEAK_LOOP(function, pattern, FLUID_CLEAR_VEX, FLUID_LOAD("ymm"),                \
                  instruction " %%ymm0, %%ymm1, %%ymm\\r\n", "vzeroupper\n")
#define FLUID_EVEX_LOOP(function, pattern, instruction)                                 \
  FLUID_PEAK_LOOP(function, pattern, FLUID_CLEAR_VEX, FLUID_LOAD("zmm"),                \
                  instruction " %%zmm0, %%zmm1, %%zmm\\r\n", "vzeroupper\n")

constexpr uint32_t kOneF32 = 0x3f800000, kOnesBf16 = 0x3f803f80, kOnesF16 = 0x3c003c00,
                   kOnesI8 = 0x01010101;

FLUID_PEAK_LOOP(f32_sse, kOneF32, "xorps %%xmm\\r, %%xmm\\r\n", "movups (%[ones]), %%xmm0\n",
                "mulps %%xmm0, %%xmm\\r\n addps %%xmm0, %%xmm\\r\n", "")
FLUID_VEX_LOOP(f32_avx2, kOneF32, "vfmadd231ps")
FLUID_EVEX_LOOP(f32_avx512, kOneF32, "vfmadd231ps")
FLUID_EVEX_LOOP(bf16_avx512, kOnesBf16, "vdpbf16ps")
FLUID_EVEX_LOOP(f16_avx512, kOnesF16, "vfmadd231ph")
FLUID_VEX_LOOP(i8_avx_vnni, kOnesI8, "%{vex%} vpdpbusd")
FLUID_EVEX_LOOP(i8_avx512_vnni, kOnesI8, "vpdpbusd")

constexpr int64_t kProductsPerIteration = 4;

/// Defines a function that repeats `instruction` for four accumulators, tiles 0 to 3. The factors
/// are tiles 4 to 7.
#define FLUID_AMX_LOOP(function, pattern, instruction)                                  \
  void function(int64_t iterations) {                                                   \
    static constexpr TileConfig kConfig;                                                \
    alignas(64) uint32_t ones[kTileBytes / sizeof(uint32_t)];                           \
    std::ranges::fill(ones, pattern);                                                   \
    asm volatile("ldtilecfg (%[config])\n"                                              \
                 ".irp t,4,5,6,7\n tileloadd (%[ones], %[stride]), %%tmm\\t\n .endr\n"  \
                 ".irp t,0,1,2,3\n tilezero %%tmm\\t\n .endr\n"                         \
                 "1:\n"                                                                 \
                 instruction " %%tmm6, %%tmm4, %%tmm0\n"                                \
                 instruction " %%tmm6, %%tmm5, %%tmm1\n"                                \
                 instruction " %%tmm7, %%tmm4, %%tmm2\n"                                \
                 instruction " %%tmm7, %%tmm5, %%tmm3\n"                                \
                 "dec %[n]\n"                                                           \
                 "jnz 1b\n"                                                             \
                 "tilerelease\n"                                                        \
                 : [n] "+r"(iterations)                                                 \
                 : [config] "r"(&kConfig), [ones] "r"(ones), [stride] "r"(kTileRowBytes)\
                 : "cc", "memory");                                                     \
  }

FLUID_AMX_LOOP(bf16_amx, kOnesBf16, "tdpbf16ps")
FLUID_AMX_LOOP(f16_amx, kOnesF16, "tdpfp16ps")
FLUID_AMX_LOOP(i8_amx, kOnesI8, "tdpbssd")
// clang-format on

/// A loop, and the features in /proc/cpuinfo that it needs.
struct KnownLoop {
  PeakLoop loop;
  std::vector<std::string_view> features;
};

constexpr int64_t ops(int64_t lanes, int64_t products) {
  return kAccumulators * lanes * products * 2;
}
constexpr int64_t tile_ops(int64_t products) {  // an accumulator tile has 16 x 16 elements
  return kProductsPerIteration * 16 * 16 * products * 2;
}

const std::vector<KnownLoop>& known_loops() {
  static const std::vector<KnownLoop> all = {
      {{"f32_sse", ops(4, 1), 16, f32_sse}, {"sse4_2"}},
      {{"f32_avx2", ops(8, 1), 32, f32_avx2}, {"avx2", "fma"}},
      {{"f32_avx512", ops(16, 1), 64, f32_avx512}, {"avx512f"}},
      {{"bf16_avx512", ops(16, 2), 128, bf16_avx512}, {"avx512f", "avx512_bf16"}},
      {{"bf16_amx", tile_ops(32), 1024, bf16_amx}, {"amx_tile", "amx_bf16"}},
      {{"f16_avx512", ops(32, 1), 128, f16_avx512}, {"avx512f", "avx512_fp16"}},
      {{"f16_amx", tile_ops(32), 1024, f16_amx}, {"amx_tile", "amx_fp16"}},
      {{"i8_avx_vnni", ops(8, 4), 128, i8_avx_vnni}, {"avx2", "avx_vnni"}},
      {{"i8_avx512_vnni", ops(16, 4), 256, i8_avx512_vnni}, {"avx512f", "avx512_vnni"}},
      {{"i8_amx", tile_ops(64), 2048, i8_amx}, {"amx_tile", "amx_int8"}}};
  return all;
}

std::vector<PeakLoop> usable_loops() {
  const std::vector<std::string> features = host_cpu().features;
  const auto has = [&](std::string_view feature) {
    return std::ranges::find(features, feature) != features.end() &&
           (feature != "amx_tile" || request_tile_registers());
  };
  std::vector<PeakLoop> usable;
  for (const KnownLoop& known : known_loops()) {
    if (std::ranges::all_of(known.features, has)) usable.push_back(known.loop);
  }
  return usable;
}

#else

std::vector<PeakLoop> usable_loops() { return {}; }

#endif

}  // namespace

std::span<const PeakLoop> peak_loops() {
  static const std::vector<PeakLoop> loops = usable_loops();
  return loops;
}

}  // namespace fluid
