#pragma once

// Helpers that define elementwise ops: dtype checks, type inference with NumPy broadcasting,
// lowering to a Map.

#include "ops/op_def.h"

namespace fluid {

/// Throw UserError unless operand `i` is a float, numeric or bool tensor, respectively. The message
/// states the actual type: "the operand must be a float tensor, not i64[3]".
void require_float(const InferCtx& c, size_t i);
void require_numeric(const InferCtx& c, size_t i);  ///< dtype: float or integer
void require_bool(const InferCtx& c, size_t i);
/// Throws UserError unless the operands from index `first` on have the same dtype.
void require_same_dtype(const InferCtx& c, size_t first = 0);

/// Whether `dtype` can hold `value`: an integer in range for integer dtypes, 0 or 1 for bool.
bool is_representable(double value, DType dtype);
/// Throws UserError unless the value of float attribute `name` is representable in `dtype`.
void require_representable(const InferCtx& c, std::string_view name, DType dtype);
/// Throws UserError unless float attribute `name` is finite.
void require_finite(const InferCtx& c, std::string_view name);
/// Throws UserError if float attribute `name` is NaN.
void require_not_nan(const InferCtx& c, std::string_view name);

/// Returns the shape to which all operands broadcast by NumPy's rule: trailing dimensions are
/// aligned, and their extents are equal or 1. The batch dimension broadcasts only with itself and
/// with extent 1. Throws UserError when the operands do not broadcast.
Shape broadcast_shape(const InferCtx& c);

/// Type inference of an op with one result, which has the type of operand 0. Throws UserError
/// unless operand 0 is a float tensor (infer_float_unary) or a numeric tensor
/// (infer_numeric_unary).
std::vector<Type> infer_float_unary(const InferCtx& c);
std::vector<Type> infer_numeric_unary(const InferCtx& c);
/// Type inference of an op with one result, which has the broadcast shape and the dtype of the
/// operands. Throws UserError unless all operands have the same dtype. The dtype must be numeric
/// (infer_numeric_broadcast) or a float dtype (infer_float_broadcast).
std::vector<Type> infer_numeric_broadcast(const InferCtx& c);
std::vector<Type> infer_float_broadcast(const InferCtx& c);
/// Type inference of an op with one bool result, which has the shape of operand 0. Throws UserError
/// unless operand 0 is a float tensor.
std::vector<Type> infer_float_predicate(const InferCtx& c);
/// Type inference of an op with one bool result, which has the broadcast shape of the operands.
/// Throws UserError unless the operands are bool tensors.
std::vector<Type> infer_logical(const InferCtx& c);

/// Returns a Map that applies a scalar function elementwise: to one operand (map_unary), or to two
/// operands that broadcast (map_binary).
Map map_unary(std::function<Expr(const Expr&)> body);
Map map_unary(ScalarOp function);
Map map_binary(std::function<Expr(const Expr&, const Expr&)> body);

/// OpDef of an elementwise comparison of two operands that have the same dtype and broadcast. The
/// result is bool; the op has no gradient.
OpDef comparison_def(std::string name, std::string doc, ScalarOp compare);
/// OpDef of an elementwise logical op on two bool operands that broadcast.
OpDef logical_binary_def(std::string name, std::string doc,
                         Expr (*function)(const Expr&, const Expr&));
/// OpDef of the elementwise maximum (`op` is ScalarOp::max) or minimum (ScalarOp::min) of two
/// operands that broadcast.
OpDef elementwise_extremum_def(std::string name, std::string doc, ScalarOp op);

/// Returns a cost function that counts `flops` floating-point operations per element of the result.
std::function<Cost(const CostCtx&)> cost_per_element(double flops);

/// Returns the sign of each element of the float tensor `x`: -1, 0 or 1. The sign of NaN is 0.
Value sign_of(Value x);

/// Sums `x` to shape `target`, like torch.Tensor.sum_to_size: the gradient of a broadcast from
/// `target` to the shape of `x`.
Value sum_to(Value x, const Shape& target);

}  // namespace fluid
