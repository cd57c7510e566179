#pragma once

#include <cstddef>

namespace fluid::comm {

/// out = a + b for `n` bf16 or f16 elements, added in f32 and rounded to nearest even. `out` may
/// alias `a` or `b`. The result is bit-identical on every CPU, except for NaN payloads.
void add_bf16(void* out, const void* a, const void* b, size_t n);
void add_f16(void* out, const void* a, const void* b, size_t n);

}  // namespace fluid::comm
