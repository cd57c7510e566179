#pragma once

namespace fluid::testing {

/// Whether oneDNN has kernels in bf16 for this CPU. Otherwise ops in bf16 are computed in f32.
inline bool onednn_computes_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

/// Whether the CPU has AVX-512 instructions for products of 8-bit integers.
inline bool has_avx512_vnni() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

}  // namespace fluid::testing
