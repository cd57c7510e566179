// Generated from the op table by fluid_opgen.
// clang-format off
#pragma once

#include "ops/ints.h"
#include "ops/record.h"

namespace fluid {

/// a + b.
/// a: number tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value add(Value a, Value b, const Loc& loc = Loc::here());

struct BroadcastToAttrs {
  Type to = {};  ///< its shape is the result's; its dtype is not used (required)
};
/// x repeated along the dimensions in which `to` is larger, as NumPy broadcasts.
/// x: any tensor.
/// Gives y: x's dtype.
Value broadcast_to(Value x, const BroadcastToAttrs& attrs, const Loc& loc = Loc::here());

struct CastAttrs {
  Type to = {};  ///< its dtype is the result's; its shape is not used (required)
};
/// x in another dtype: floats to integers towards zero, to bool by != 0, to halves to the nearest, ties to even.
/// x: any tensor.
/// Gives y: x's shape.
Value cast(Value x, const CastAttrs& attrs, const Loc& loc = Loc::here());

/// x's elements in memory of their own.
/// x: any tensor.
/// Gives y: like x.
Value copy(Value x, const Loc& loc = Loc::here());

/// a / b.
/// a: float tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value div(Value a, Value b, const Loc& loc = Loc::here());

/// e to the power of x.
/// x: float tensor.
/// Gives y: like x.
Value exp(Value x, const Loc& loc = Loc::here());

struct FillAttrs {
  Type type = {};  ///< of the result (required)
  double value = 0.0;  ///< of every element
};
/// A tensor of one constant.
/// Gives y: of the given type.
Value fill(ir::Graph& graph, const FillAttrs& attrs, const Loc& loc = Loc::here());

/// Whether a > b.
/// a: any tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: bool, the broadcast shape.
Value greater(Value a, Value b, const Loc& loc = Loc::here());

/// The natural logarithm of x.
/// x: float tensor.
/// Gives y: like x.
Value log(Value x, const Loc& loc = Loc::here());

struct MatmulAttrs {
  bool transpose_a = false;  ///< a is [..., k, m]
  bool transpose_b = false;  ///< b is [..., n, k]
};
/// The matrix product of the last two dimensions; those before broadcast.
/// a: float tensor [..., m, k].
/// b: same dtype, [..., k, n].
/// Gives y: [..., m, n].
Value matmul(Value a, Value b, const MatmulAttrs& attrs = {}, const Loc& loc = Loc::here());

/// a * b.
/// a: number tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value mul(Value a, Value b, const Loc& loc = Loc::here());

/// -x.
/// x: number tensor.
/// Gives y: like x.
Value neg(Value x, const Loc& loc = Loc::here());

struct NumelAttrs {
  Type of = {};  ///< the type whose elements are counted; also the result's dtype (required)
};
/// How many elements a tensor of type `of` has, the batch of the running step included.
/// Gives n: scalar.
Value numel(ir::Graph& graph, const NumelAttrs& attrs, const Loc& loc = Loc::here());

/// max(x, 0).
/// x: float tensor.
/// Gives y: like x.
Value relu(Value x, const Loc& loc = Loc::here());

struct ReshapeAttrs {
  Type to = {};  ///< its shape is the result's; its dtype is not used (required)
};
/// x's elements, in row-major order, under another shape.
/// x: any tensor.
/// Gives y: x's dtype.
Value reshape(Value x, const ReshapeAttrs& attrs, const Loc& loc = Loc::here());

/// a where the condition holds, else b.
/// condition: bool tensor.
/// a: any tensor.
/// b: same dtype as a.
/// Gives y: a's dtype, the shape that all three broadcast to.
Value select(Value condition, Value a, Value b, const Loc& loc = Loc::here());

/// a - b.
/// a: number tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value sub(Value a, Value b, const Loc& loc = Loc::here());

struct SumAttrs {
  Ints axes = {};  ///< to reduce; negative ones count from the end; none: all
  bool keep_dims = false;  ///< reduced axes stay, with extent 1
};
/// The sum along `axes`; 0 over none. Floats add in f32 or wider.
/// x: number tensor.
/// Gives y: x's dtype.
Value sum(Value x, const SumAttrs& attrs = {}, const Loc& loc = Loc::here());

}  // namespace fluid
