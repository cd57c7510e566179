#pragma once

#include "ops/op_def.h"

namespace fluid {

/// The operand, and the attribute, of ops that draw numbers in each step.
PortDef random_state_port();
AttrDef stream_attr();

/// OpDef of an op that draws floats of type `type` in each step: `attrs` and `doc` are those of the
/// distribution, and `draw` returns an element from independent random bits. `draw` may take bits
/// 0 to draws - 1.
struct StepDraw {
  std::string name, doc;
  std::vector<AttrDef> attrs;
  std::function<void(const InferCtx&)> check;
  int64_t draws = 1;
  std::function<Expr(const LowerCtx&, const std::vector<Expr>& bits)> draw;
};
OpDef step_draw_def(const StepDraw& d);

}  // namespace fluid
