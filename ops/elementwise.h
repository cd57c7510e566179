#pragma once

// What elementwise ops share: dtype checks, NumPy broadcasting, and bodies.

#include "ops/op_def.h"

namespace fluid {

/// Fail unless operand `i` is of such a dtype: "x must be a float tensor, not i64[3]".
void require_float(const InferCtx& c, size_t i);
void require_number(const InferCtx& c, size_t i);  ///< anything but bool
void require_boolean(const InferCtx& c, size_t i);
/// Fails unless operands `first` and later have one dtype.
void require_one_dtype(const InferCtx& c, size_t first = 0);

/// Fails unless float attribute `name` is a number of `dtype`: for an integer dtype a whole one in
/// its range, for bool 0 or 1.
void require_value(const InferCtx& c, std::string_view name, DType dtype);

/// The shape that all operands broadcast to, as in NumPy: trailing dimensions aligned, equal or 1.
/// The batch goes with itself and with 1 only. Fails otherwise.
Shape broadcast_shape(const InferCtx& c);

/// One result like operand 0, which must be a float (a number) tensor.
std::vector<Type> infer_float_unary(const InferCtx& c);
std::vector<Type> infer_number_unary(const InferCtx& c);
/// One result of the broadcast shape: operands of one number dtype, or of one float dtype.
std::vector<Type> infer_number_broadcast(const InferCtx& c);
std::vector<Type> infer_float_broadcast(const InferCtx& c);
/// A float operand, a bool result of its shape.
std::vector<Type> infer_float_test(const InferCtx& c);
/// Bool operands, a bool result of the broadcast shape.
std::vector<Type> infer_logical(const InferCtx& c);

/// body(x) or body(a, b) of the operands' elements.
Map map_unary(std::function<Expr(const Expr&)> body);
Map map_unary(Scalar function);
Map map_binary(std::function<Expr(const Expr&, const Expr&)> body);

/// The definition of a comparison: operands of one dtype that broadcast, a bool result, no
/// gradient.
OpDef comparison(std::string name, std::string doc, Scalar compare);

/// `flops` a result element.
std::function<Cost(const CostCtx&)> cost_per_element(double flops);

/// Sums `x` over the dimensions along which a tensor of shape `target` was broadcast to x's shape:
/// the gradient of broadcasting. The result has shape `target`.
Value sum_to(Value x, const Shape& target);

}  // namespace fluid
