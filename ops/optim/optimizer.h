#pragma once

// An optimizer is an op (param, grad, lr, update, state...) -> (new param, new state...): `lr` is a
// float scalar, `update` the i64 number of updates done before. Operands from 4 on are variables of
// the parameter's type that start at 0 and are named after their port.

#include "ops/op_def.h"

namespace fluid {

/// Whether an op is an optimizer: one whose operands begin like those.
bool is_optimizer(const OpDef& def);

/// The operands of an optimizer with these states.
std::vector<PortDef> optimizer_inputs(const std::vector<PortDef>& states = {});

/// Result types: the parameter's, once for the parameter and once a state. Fails unless the
/// operands are as described above.
std::vector<Type> infer_optimizer(const InferCtx& c);

/// Fails unless float attribute `name` lies in [low, high), or is at least `low` without `high`.
void require_setting(const InferCtx& c, std::string_view name, double low);
void require_setting(const InferCtx& c, std::string_view name, double low, double high);

/// The attributes of a `train` op that are its optimizer's.
Attrs optimizer_settings(const Attrs& train);

/// The operands in the parameter's compute dtype; weight decay (L2) is added to a
/// `decayed_gradient`.
struct OptimizerStep {
  Expr param, grad, lr;
};
OptimizerStep optimizer_step(const LowerCtx& c, bool decayed_gradient = true);

}  // namespace fluid
