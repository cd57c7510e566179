#pragma once

#include "ir/type.h"

namespace fluid {

/// What a place can do at most, a second, with all of its threads.
struct Limits {
  double flops_f64 = 0, flops_f32 = 0, flops_f16 = 0, flops_bf16 = 0;
  double bytes = 0;   ///< to and from memory, where a call reads as much as it writes
  bool tf32 = false;  ///< f32 is that of products which round to TF32
  const char* f32_name() const { return tf32 ? "TF32" : "f32"; }

  /// In contractions of numbers of `dtype`.
  double flops(DType dtype) const {
    switch (dtype) {
      case DType::f64:
        return flops_f64;
      case DType::f16:
        return flops_f16;
      case DType::bf16:
        return flops_bf16;
      default:
        return flops_f32;
    }
  }
};

}  // namespace fluid
