#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Definitions of the random state operand and of attribute "stream", for ops that draw new random
/// numbers in each step.
PortDef random_state_port();
AttrDef stream_attr();

/// Description of an op that draws random floats in each step. `attrs` and `doc` describe the
/// distribution. `draw` computes an element from `draws` independent words of 32 random bits.
struct RandomOp {
  std::string name, doc;
  std::vector<AttrDef> attrs;
  std::function<void(const InferCtx&)> check;
  int64_t draws = 1;
  std::function<Expr(const LowerCtx&, const std::vector<Expr>& bits)> draw;
};
OpDef random_op_def(const RandomOp& d);

}  // namespace fluid
