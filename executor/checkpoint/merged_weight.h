#pragma once

#include "ir/tensor.h"

namespace fluid {

/// Returns weight + scale * (a @ b) in the dtype of `weight` [in, out]. a [in, rank],
/// b [rank, out]. Computes in f64 and rounds once.
Tensor merged_weight(const Tensor& weight, const Tensor& a, const Tensor& b, double scale);

}  // namespace fluid
