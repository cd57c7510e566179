#pragma once

#include <cstddef>

namespace fluid::comm {

/// out = a + b over `n` elements, each added in f32 and rounded to nearest even; `out` may be `a`
/// or `b`. The same bits on every CPU, but for the payload of a NaN.
void add_bf16(void* out, const void* a, const void* b, size_t n);
void add_f16(void* out, const void* a, const void* b, size_t n);

}  // namespace fluid::comm
