#pragma once

// An optimizer is an op (param, grad, lr, update, state...) -> (new param, new state...). `lr` is a
// float scalar, `update` the i64 number of previous updates. Operands from 4 on are states:
// variables of the parameter's type that start at 0 and are named after their port.

#include "ops/op_def.h"

namespace fluid {

/// Whether `def` is an optimizer: it updates variables and its first operands are param, grad, lr,
/// update.
bool is_optimizer(const OpDef& def);

/// Operands of an optimizer with the given states.
std::vector<PortDef> optimizer_inputs(const std::vector<PortDef>& states = {});

/// Result types of an optimizer: the parameter's type for the parameter and for each state. Fails
/// unless the operands match the signature of an optimizer.
std::vector<Type> infer_optimizer(const InferCtx& c);

/// Fails unless float attribute `name` lies in [low, high), or in [low, inf) without `high`.
void require_setting(const InferCtx& c, std::string_view name, double low);
void require_setting(const InferCtx& c, std::string_view name, double low, double high);

/// The attributes of a `train` op that belong to its optimizer.
Attrs optimizer_settings(const Attrs& train);

/// Operands of an update in the parameter's compute dtype. With `decayed_gradient`, L2 weight decay
/// is added to the gradient.
struct OptimizerStep {
  Expr param, grad, lr;
};
OptimizerStep optimizer_step(const LowerCtx& c, bool decayed_gradient = true);

}  // namespace fluid
