#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Returns R, the number of rotated features.
int64_t rotated_elements(const Shape& cos) { return 2 * cos.back().size; }

std::vector<Type> infer_apply_rotary(const InferCtx& c) {
  require_float(c, 0);
  const Type &x = c.in(0), &cos = c.in(1), &sin = c.in(2);
  c.require(!x.shape.empty() && !x.shape.back().batch,
            "the operand must be [..., D] with constant D, not " + x.str());
  c.require(cos == sin, "cos and sin differ: " + cos.str() + " and " + sin.str());
  c.require(cos.dtype == x.dtype || (cos.dtype == f32 && is_half_precision(x.dtype)),
            "cos must have the dtype of x or f32, not " + cos.str());
  const auto fits = [&] {
    if (cos.shape.empty() || cos.shape.size() > x.shape.size() || cos.shape.back().batch)
      return false;
    const size_t skip = x.shape.size() - cos.shape.size();
    for (size_t d = 0; d + 1 < cos.shape.size(); ++d) {
      if (!cos.shape[d].is(1) && cos.shape[d] != x.shape[skip + d]) return false;
    }
    const int64_t rotated = rotated_elements(cos.shape);
    return rotated > 0 && rotated <= x.shape.back().size;
  };
  c.require(fits(), "cos " + cos.str() + " does not fit to " + x.str() +
                        ": expects [..., R / 2] with R <= D, which broadcasts");
  return {x};
}

/// Returns the first elements of all rotated pairs if `first`, else the second elements.
Value half_of(Value x, int64_t rotated, bool interleaved, bool first) {
  const int64_t half = rotated / 2, from = interleaved ? 1 : half;
  return slice(x, {.starts = first ? 0 : from,
                   .stops = interleaved || !first ? rotated : half,
                   .steps = interleaved ? 2 : 1,
                   .axes = -1});
}

Values apply_rotary_grad(const GradCtx& c) {
  const Value x = c.in(0), cos = c.in(1), sin = c.in(2), dy = c.dout(0);
  const bool interleaved = c.attr<bool>("interleaved");
  const int64_t rotated = rotated_elements(cos.shape());
  const auto half = [&](Value v, bool first) {
    return cast(half_of(v, rotated, interleaved, first), cos.dtype());
  };
  const Value x0 = half(x, true), x1 = half(x, false), dy0 = half(dy, true), dy1 = half(dy, false);
  return {apply_rotary_embedding(dy, cos, -sin, {.interleaved = interleaved}),
          sum_to(dy0 * x0 + dy1 * x1, cos.shape()), sum_to(dy1 * x0 - dy0 * x1, cos.shape())};
}

Expr apply_rotary_body(const LowerCtx& c) {
  const Shape &x = c.in_type(0).shape, &cos = c.in_type(1).shape;
  const int64_t rotated = rotated_elements(cos);
  const Expr half = Expr::index(rotated / 2), one = Expr::index(1);
  std::vector<Expr> at = c.out_vars();
  const Expr column = at.back();
  const Expr d = rotated == x.back().size ? column : scalar::mod(column, Expr::index(rotated));
  const bool interleaved = c.attr<bool>("interleaved");
  const Expr pair = interleaved ? scalar::floordiv(d, Expr::index(2)) : scalar::mod(d, half);
  const Expr is_first =
      interleaved ? scalar::compare(ScalarOp::eq, scalar::mod(d, Expr::index(2)), Expr::index(0))
                  : scalar::compare(ScalarOp::lt, d, half);
  const Expr distance = interleaved ? one : half;
  std::vector<Expr> angle(cos.size());
  for (size_t i = 0; i + 1 < cos.size(); ++i) {
    angle[i] = cos[i].is(1) ? Expr::index(0) : at[x.size() - cos.size() + i];
  }
  angle.back() = pair;
  at.back() = d;
  const Expr own = c.read(0, at);
  at.back() = scalar::select(is_first, d + distance, d - distance);
  const Expr other = c.read(0, at);
  Expr y = own * c.read(1, angle) + scalar::select(is_first, -other, other) * c.read(2, angle);
  if (rotated == x.back().size) return y;
  return scalar::select(scalar::compare(ScalarOp::lt, column, Expr::index(rotated)), y, c.in(0));
}

}  // namespace

OpDef apply_rotary_embedding_op() {
  return OpDef{
      .name = "apply_rotary_embedding",
      .doc =
          "Rotates pairs (a, b) of the first R elements along the last dimension of x to (a * cos "
          "- "
          "b * sin, b * cos + a * sin), as RotaryEmbedding of ONNX. The other elements stay.",
      .inputs = {{"x", "float [..., D]"},
                 {"cos", "cosines [..., R / 2], broadcast to x; x's dtype or f32"},
                 {"sin", "sines, same type as cos"}},
      .attrs = {{"interleaved", false,
                 "true: pairs are neighbours (GPT-J); false: element i is paired with i + R / 2 "
                 "(Llama)"}},
      .outputs = {{"y", "same type as x"}},
      .infer = infer_apply_rotary,
      .grad = GradFn(apply_rotary_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow, {1, 2}},
      .cost = cost_per_element(4),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) { return std::vector{apply_rotary_body(c)}; }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
