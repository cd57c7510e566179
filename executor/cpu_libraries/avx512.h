#pragma once

// Functions for CPUs with AVX-512, in programs that are compiled for any x86-64 CPU. Include this
// header in .cpp files only, inside `#if defined(__x86_64__)`. Callers check
// cpu_supports_avx512().

#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns in its own vector headers
#endif
#include <immintrin.h>

/// Declares a function that is inlined into functions declared FLUID_AVX512_ENTRY.
#define FLUID_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,f16c"), always_inline)) inline
/// Declares a function that other code calls.
#define FLUID_AVX512_ENTRY __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,f16c")))
