#pragma once

#include "ir/type.h"

namespace fluid {

/// Peak FLOP/s and memory bandwidth of a place, with all threads busy.
struct PeakRates {
  double flops_f64 = 0, flops_f32 = 0, flops_f16 = 0, flops_bf16 = 0;
  double bytes_per_second = 0;  ///< memory bandwidth, for equal amounts of reads and writes
  bool tf32 = false;  ///< whether f32 matmuls run in TF32; flops_f32 is then the TF32 rate
  const char* f32_name() const { return tf32 ? "TF32" : "f32"; }

  /// Peak FLOP/s of matmuls and convolutions in `dtype`.
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
