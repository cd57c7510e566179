#include "executor/cpu/onednn_half_copy.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "executor/cpu/parallel.h"
#include "ir/tensor.h"

namespace fluid {
namespace {

constexpr int64_t kSerial = 1 << 14;  // elements; fewer are copied before another thread wakes up

#if defined(__x86_64__)
#define FLUID_F16C __attribute__((target("avx,f16c")))

FLUID_F16C size_t widen_by_eight(const uint16_t* from, float* to, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
  return i;
}

FLUID_F16C size_t narrow_by_eight(const float* from, uint16_t* to, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
  }
  return i;
}

bool converts_f16() { return __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c"); }
#else
size_t widen_by_eight(const uint16_t*, float*, size_t) { return 0; }
size_t narrow_by_eight(const float*, uint16_t*, size_t) { return 0; }
bool converts_f16() { return false; }
#endif

const bool kByEight = converts_f16();

void widen(const uint16_t* from, float* to, size_t n) {
  for (size_t i = kByEight ? widen_by_eight(from, to, n) : 0; i < n; ++i) {
    to[i] = half_to_float(from[i], DType::f16);
  }
}

void narrow(const float* from, uint16_t* to, size_t n) {
  for (size_t i = kByEight ? narrow_by_eight(from, to, n) : 0; i < n; ++i) {
    to[i] = float_to_half(from[i], DType::f16);
  }
}

}  // namespace

void HalfCopy::run() const {
  const auto part = [](void* context, int64_t begin, int64_t end) {
    const auto& copy = *static_cast<const HalfCopy*>(context);
    uint16_t* half = copy.half + begin;
    float* wide = copy.wide + begin;
    const auto n = static_cast<size_t>(end - begin);
    copy.widens ? widen(half, wide, n) : narrow(wide, half, n);
  };
  parallel_for(n, n > kSerial ? thread_count(0) : 1, part, const_cast<HalfCopy*>(this));
}

}  // namespace fluid
