#pragma once

// An optimizer is an op (param, grad, lr, update, state...) -> (new param, new state...). `lr` is a
// float scalar; `update` is an i64 scalar, the number of previous updates. Operands from number 4
// on are optimizer states: variables of the parameter's type that start at 0 and are named after
// their port.

#include "ops/op_def.h"

namespace fluid {

/// Whether `def` defines an optimizer: it updates variables, and its first operands are param,
/// grad, lr and update.
bool is_optimizer(const OpDef& def);

/// Returns the operand ports of an optimizer with the given states.
std::vector<PortDef> optimizer_inputs(const std::vector<PortDef>& states = {});

/// Type inference of an optimizer: the new parameter and each new state have the type of the
/// parameter. Throws UserError unless the operands match the signature of an optimizer.
std::vector<Type> infer_optimizer(const InferCtx& c);

/// Throws UserError unless float attribute `name` lies in [low, high). Without `high`, the range is
/// [low, infinity).
void require_in_range(const InferCtx& c, std::string_view name, double low);
void require_in_range(const InferCtx& c, std::string_view name, double low, double high);

/// Returns the attributes of a `train` op that are attributes of its optimizer op.
Attrs optimizer_settings(const Attrs& train_attrs);

/// Operands of an optimizer as expressions in the compute dtype of the parameter. With `l2_decay`,
/// `grad` includes L2 weight decay.
struct OptimizerOperands {
  Expr param, grad, lr;
};
OptimizerOperands optimizer_operands(const LowerCtx& c, bool l2_decay = true);

}  // namespace fluid
