#pragma once

// Helpers of elementwise ops: dtype checks, NumPy broadcasting, map bodies.

#include "ops/op_def.h"

namespace fluid {

/// Fail unless operand `i` is a float, number or bool tensor. The message names its type: "the
/// operand must be a float tensor, not i64[3]".
void require_float(const InferCtx& c, size_t i);
void require_number(const InferCtx& c, size_t i);  ///< any dtype but bool
void require_boolean(const InferCtx& c, size_t i);
/// Fails unless all operands from `first` on have the same dtype.
void require_one_dtype(const InferCtx& c, size_t first = 0);

/// Fails unless float attribute `name` is representable in `dtype`: an integer in range for integer
/// dtypes, 0 or 1 for bool.
void require_value(const InferCtx& c, std::string_view name, DType dtype);

/// The broadcast shape of all operands, as in NumPy: trailing dimensions aligned, extents equal or
/// 1. The batch dimension broadcasts only with itself and with 1. Fails for other shapes.
Shape broadcast_shape(const InferCtx& c);

/// Infers one result of operand 0's type. Operand 0 must be a float (or number) tensor.
std::vector<Type> infer_float_unary(const InferCtx& c);
std::vector<Type> infer_number_unary(const InferCtx& c);
/// Infers one result of the broadcast shape. All operands have one number (or float) dtype.
std::vector<Type> infer_number_broadcast(const InferCtx& c);
std::vector<Type> infer_float_broadcast(const InferCtx& c);
/// Infers a bool result of the shape of the float operand.
std::vector<Type> infer_float_predicate(const InferCtx& c);
/// Infers a bool result of the broadcast shape of the bool operands.
std::vector<Type> infer_logical(const InferCtx& c);

/// A Map of `body` over the elements of one operand, or of two broadcast operands.
Map map_unary(std::function<Expr(const Expr&)> body);
Map map_unary(Scalar function);
Map map_binary(std::function<Expr(const Expr&, const Expr&)> body);

/// OpDef of a comparison: operands of one dtype that broadcast, a bool result, no gradient.
OpDef comparison(std::string name, std::string doc, Scalar compare);
/// OpDef of a logical function of two bool operands that broadcast.
OpDef logical_binary(std::string name, std::string doc, Expr (*function)(const Expr&, const Expr&));
/// OpDef of the larger (Scalar::max) or smaller (Scalar::min) of two operands that broadcast.
OpDef elementwise_extremum(std::string name, std::string doc, Scalar which);

/// A cost of `flops` for each element of the result.
std::function<Cost(const CostCtx&)> cost_per_element(double flops);

/// Gradient of broadcasting: sums `x` over the dimensions along which a tensor of shape `target`
/// was broadcast to x's shape. The result has shape `target`.
Value sum_to(Value x, const Shape& target);

}  // namespace fluid
