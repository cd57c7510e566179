#pragma once

// An optimizer is an op (param, grad, lr, update, state...) -> (new param, new state...). `lr` is a
// float scalar; `update` is an i64 scalar, the number of previous updates. Operands 4 and up are
// optimizer states: variables of the parameter's type, initially 0, named after their ports.

#include "ops/op_def.h"

namespace fluid {

/// Whether `def` defines an optimizer: an op that updates variables, with first operands param,
/// grad, lr and update.
bool is_optimizer(const OpDef& def);

/// Returns the operand ports of an optimizer with the given states.
std::vector<PortDef> optimizer_inputs(const std::vector<PortDef>& states = {});

/// Type inference of an optimizer: the new parameter and each new state have the type of the
/// parameter. Throws UserError unless the operands match the signature of an optimizer.
std::vector<Type> infer_optimizer(const InferCtx& c);

/// Throws UserError unless float attribute `name` lies in [low, high). The overload without `high`
/// checks for [low, infinity).
void require_in_range(const InferCtx& c, std::string_view name, double low);
void require_in_range(const InferCtx& c, std::string_view name, double low, double high);

/// Returns those attributes of a `train` op that belong to its optimizer op.
Attrs optimizer_settings(const Attrs& train_attrs);

/// Operands of an optimizer as expressions in the compute dtype of the parameter. With `l2_decay`,
/// `grad` includes L2 weight decay.
struct OptimizerOperands {
  Expr param, grad, lr;
};
OptimizerOperands optimizer_operands(const LowerCtx& c, bool l2_decay = true);

}  // namespace fluid
