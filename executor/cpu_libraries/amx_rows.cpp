#include "executor/cpu_libraries/amx_rows.h"

#include <algorithm>

#include "ir/error.h"

#if defined(__x86_64__)
#include "executor/cpu_libraries/amx.h"

namespace fluid {
namespace {

constexpr int64_t kCopied = 32;  // values copied at a time

FLUID_AMX __mmask32 first_values(int64_t n) { return static_cast<__mmask32>((1u << n) - 1); }

FLUID_AMX void copy_values(const uint16_t* from, int64_t n, uint16_t* to) {
  int64_t i = 0;
  for (; i + kCopied <= n; i += kCopied) _mm512_storeu_si512(to + i, _mm512_loadu_si512(from + i));
  if (i == n) return;
  const __mmask32 mask = first_values(n - i);
  _mm512_mask_storeu_epi16(to + i, mask, _mm512_maskz_loadu_epi16(mask, from + i));
}

FLUID_AMX void clear_values(uint16_t* to, int64_t n) {
  const __m512i zeros = _mm512_setzero_si512();
  int64_t i = 0;
  for (; i + kCopied <= n; i += kCopied) _mm512_storeu_si512(to + i, zeros);
  if (i < n) _mm512_mask_storeu_epi16(to + i, first_values(n - i), zeros);
}

/// Copies a run that crosses the left or the right edge of the image.
FLUID_AMX void copy_clipped(const AmxRows& r, const AmxRun& run, int64_t x, const uint16_t* from,
                            uint16_t* to) {
  const int64_t end = run.begin + run.count;
  const int64_t inside = std::clamp(-x * r.channels, run.begin, end);
  const int64_t outside = std::clamp((r.width - x) * r.channels, inside, end);
  clear_values(to, inside - run.begin);
  copy_values(from + inside, outside - inside, to + inside - run.begin);
  clear_values(to + outside - run.begin, end - outside);
}

}  // namespace

FLUID_AMX_ENTRY void copy_amx_rows(const AmxRows& r, std::span<const AmxPixel> pixels) {
  uint16_t* row = r.rows;
  for (const AmxPixel& pixel : pixels) {
    uint16_t* to = row;
    for (const AmxRun& run : r.runs) {
      const int64_t y = pixel.y + run.first.y, x = pixel.x + run.first.x;
      const uint16_t* const from = r.source + pixel.offset + run.first.distance;
      if (y < 0 || y >= r.height) {
        clear_values(to, run.count);
      } else if (x < 0 || x + run.taps > r.width) {
        copy_clipped(r, run, x, from, to);
      } else {
        copy_values(from + run.begin, run.count, to);
      }
      to += run.count;
    }
    clear_values(to, row + r.terms - to);
    row += r.stride;
  }
}

}  // namespace fluid

#else

namespace fluid {

void copy_amx_rows(const AmxRows&, std::span<const AmxPixel>) {
  throw InternalError("AMX kernels on another processor");
}

}  // namespace fluid

#endif
