#include "executor/comm/half_sum.h"

#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "executor/device/half_arrays.h"
#include "ir/bf16.h"
#include "ir/tensor.h"

namespace fluid::comm {

namespace {

void add_f16_one_by_one(uint16_t* out, const uint16_t* a, const uint16_t* b, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const float sum = half_to_float(a[i], DType::f16) + half_to_float(b[i], DType::f16);
    out[i] = float_to_half(sum, DType::f16);
  }
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) size_t add_f16_by_eight(uint16_t* out, const uint16_t* a,
                                                            const uint16_t* b, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i)));
    const __m256 y = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + i)));
    const __m128i sum = _mm256_cvtps_ph(_mm256_add_ps(x, y), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), sum);
  }
  return i;
}
#else
size_t add_f16_by_eight(uint16_t*, const uint16_t*, const uint16_t*, size_t) { return 0; }
#endif

}  // namespace

void add_bf16(void* out, const void* a, const void* b, size_t n) {
  auto* sum = static_cast<uint16_t*>(out);
  const auto* x = static_cast<const uint16_t*>(a);
  const auto* y = static_cast<const uint16_t*>(b);
  for (size_t i = 0; i < n; ++i) sum[i] = float_to_bf16(bf16_to_float(x[i]) + bf16_to_float(y[i]));
}

void add_f16(void* out, const void* a, const void* b, size_t n) {
  auto* sum = static_cast<uint16_t*>(out);
  const auto* x = static_cast<const uint16_t*>(a);
  const auto* y = static_cast<const uint16_t*>(b);
  const size_t done = cpu_has_f16c() ? add_f16_by_eight(sum, x, y, n) : 0;
  add_f16_one_by_one(sum + done, x + done, y + done, n - done);
}

}  // namespace fluid::comm
