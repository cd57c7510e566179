#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "executor/executor.h"

namespace fluid {

/// y = x w + b by full-batch Adam: the program of examples/linear_regression.
Program linear_regression_program(double lr = 0.1);

/// `n` samples of y = 2 x0 - 3 x1 + 10 and noise, with a Batch::id.
Batch linear_batch(int64_t n);

/// The bytes of every parameter, in the executor's order.
std::vector<std::byte> parameter_bytes(Executor& exe);

}  // namespace fluid
