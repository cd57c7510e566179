#pragma once

#include <vector>

#include "ops/kernel_ir.h"

namespace fluid::testing {

/// Kernels by hand that together use every scalar and statement, in every dtype that it takes. They
/// run on any input that `sample` makes, in one block or for any batch.
std::vector<kir::Kernel> every_scalar_kernels();

/// Reductions over `n` elements: sum, max, min and argmax, by serial loops and by lanes.
std::vector<kir::Kernel> reduction_kernels(DType dtype, int64_t n);

/// Loads and stores whose lanes lie `stride` apart (0: gathered through an index table), with and
/// without guards, over `n` lanes.
std::vector<kir::Kernel> memory_kernels(DType dtype, int64_t stride, int64_t n);

/// Loads at (i + first) / divisor, with and without guards, over `n` lanes.
std::vector<kir::Kernel> divided_kernels(DType dtype, int64_t divisor, int64_t first, int64_t n);

}  // namespace fluid::testing
