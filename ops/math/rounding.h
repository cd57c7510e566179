#pragma once

#include "ops/op_def.h"

namespace fluid {

/// OpDef of a function that rounds each element of a float operand to an integer. Its gradient is
/// 0, as in PyTorch.
OpDef rounding_def(std::string name, std::string doc, double flops,
                   std::function<Expr(const Expr&)> round);

/// Rounds the float x to the nearest integer, and halves to the even one.
Expr round_half_to_even(const Expr& x);

}  // namespace fluid
