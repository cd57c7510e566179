#pragma once

#include <string>
#include <vector>

#include "ir/tensor.h"
#include "ops/kernel_ir.h"

namespace fluid::testing {

/// Compiles the kernel for the host, runs it block by block on copies of `inputs` (one tensor for
/// every buffer, in order) and expects what the interpreter gives: equal values, or within `ulps`
/// units in the last place for floats. Guards around every buffer must survive. `cpu`: see
/// CompilerOptions.
void expect_as_interpreted(const kir::Kernel& kernel, const std::vector<Tensor>& buffers,
                           int64_t batch = 1, double ulps = 0, const std::string& cpu = {});

/// Values that are easy to get wrong among ordinary ones, of any dtype.
Tensor sample(DType dtype, int64_t elements, uint64_t seed = 1);

}  // namespace fluid::testing
