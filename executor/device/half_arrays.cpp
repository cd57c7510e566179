#include "executor/device/half_arrays.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ir/bf16.h"
#include "ir/tensor.h"

namespace fluid {
namespace {

#if defined(__x86_64__)
#define FLUID_F16C __attribute__((target("avx,f16c")))

/// Converts the largest multiple of eight elements. Returns their number.
FLUID_F16C size_t f16_to_float_by_eight(const uint16_t* from, float* to, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
  return i;
}

FLUID_F16C size_t float_to_f16_by_eight(const float* from, uint16_t* to, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
  }
  return i;
}
#else
size_t f16_to_float_by_eight(const uint16_t*, float*, size_t) { return 0; }
size_t float_to_f16_by_eight(const float*, uint16_t*, size_t) { return 0; }
#endif

}  // namespace

bool cpu_has_f16c() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
  return has;
#else
  return false;
#endif
}

void halves_to_floats(DType half_dtype, const uint16_t* from, float* to, size_t n) {
  if (half_dtype == DType::bf16) {
    for (size_t i = 0; i < n; ++i) to[i] = bf16_to_float(from[i]);
    return;
  }
  for (size_t i = cpu_has_f16c() ? f16_to_float_by_eight(from, to, n) : 0; i < n; ++i) {
    to[i] = half_to_float(from[i], DType::f16);
  }
}

void floats_to_halves(DType half_dtype, const float* from, uint16_t* to, size_t n) {
  if (half_dtype == DType::bf16) {
    for (size_t i = 0; i < n; ++i) to[i] = float_to_bf16(from[i]);
    return;
  }
  for (size_t i = cpu_has_f16c() ? float_to_f16_by_eight(from, to, n) : 0; i < n; ++i) {
    to[i] = float_to_half(from[i], DType::f16);
  }
}

}  // namespace fluid
