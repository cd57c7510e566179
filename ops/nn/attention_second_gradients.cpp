#include <limits>

#include "ir/error.h"
#include "ops/nn/attention_grad.h"
#include "ops/operators.h"

namespace fluid {
namespace {

using Operands = AttentionGradOperands;

/// Repeats the heads of `v` [B, G, S, D] for the query heads that read them: [B, H, S, D].
Value repeat_kv_heads(Value v, const AttentionShape& s) {
  if (s.heads == s.groups) return v;
  const Dim keys = v.shape()[2], depth = v.shape()[3];
  const Value repeated = broadcast_to(unsqueeze(v, {.axes = 2}),
                                      {s.batch, s.groups, s.heads_per_group(), keys, depth});
  return reshape(repeated, Shape{s.batch, s.heads, keys, depth});
}

/// Sums `v` [B, H, S, D] over the query heads of each key head: [B, G, S, D].
Value sum_over_query_heads(Value v, const AttentionShape& s) {
  if (s.heads == s.groups) return v;
  const Shape split = {s.batch, s.groups, s.heads_per_group(), v.shape()[2], v.shape()[3]};
  return sum(reshape(v, split), {.axes = 2});
}

/// q k^T * scale + the bias of ALiBi + mask. The scores of masked keys are -inf.
Value scores_of(const GradCtx& c, Value q, Value k, const AttentionShape& s) {
  ir::Graph& graph = *q.op()->graph();
  Value scores = matmul(q, k, {.transpose_b = true}) * attention_scale(c.attrs(), s.depth);
  if (c.attr<bool>("alibi")) {
    scores =
        scores + alibi(graph, {.type = Type{scores.dtype(), {s.heads, s.queries, s.keys}, {}}});
  }
  const Value minus_infinity = scalar_like(scores, -std::numeric_limits<double>::infinity());
  if (c.arity() > Operands::kMask) {
    const Value mask = c.in(Operands::kMask);
    scores = mask.dtype() == boolean ? where(mask, scores, minus_infinity)
                                     : scores + cast(mask, scores.dtype());
  }
  if (!c.attr<bool>("causal")) return scores;
  const Value query = arange(graph, {.type = Type{i64, {s.queries}, {}}});
  const Value key = arange(graph, {.type = Type{i64, {s.keys}, {}}});
  return where(less_equal(key, reshape(query, Shape{s.queries, 1})), scores, minus_infinity);
}

Value sum_of(Value a, Value b) { return a && b ? a + b : a ? a : b; }

}  // namespace

/// With p = exp(scores - logsumexp), g = dy v^T - delta and ds = p * g * scale, the gradient ops
/// compute dq = ds k, dk = ds^T q and dv = p^T dy. Names that begin with `d_` are gradients with
/// respect to these values.
Values attention_second_gradients(const GradCtx& c, Value ddq, Value ddk, Value ddv) {
  if (c.arity() > Operands::kRandomKey) {
    throw UserError(c.op().loc, c.op().name +
                                    " with dropout has no gradient, but a gradient is "
                                    "taken through it; set the dropout to 0");
  }
  const AttentionShape shape = attention_shape(
      c.in(Operands::kQuery).type(), c.in(Operands::kKey).type(), c.in(Operands::kValue).type());
  const double scale = attention_scale(c.attrs(), shape.depth);
  const DType wide = compute_dtype(c.in(Operands::kQuery).dtype());
  const auto operand = [&](int i) { return cast(c.in(static_cast<size_t>(i)), wide); };
  const auto repeated = [&](Value v) {
    return v ? repeat_kv_heads(cast(v, wide), shape) : Value();
  };
  const auto times = [](Value a, Value b) { return matmul(a, b); };
  const auto times_transposed = [](Value a, Value b) {
    return matmul(a, b, {.transpose_b = true});
  };
  const auto transposed_times = [](Value a, Value b) {
    return matmul(a, b, {.transpose_a = true});
  };
  const auto of_query = [](Value v) { return unsqueeze(v, {.axes = -1}); };

  const Value q = operand(Operands::kQuery), dy = operand(Operands::kOutputGradient);
  const Value k = repeated(c.in(Operands::kKey)), v = repeated(c.in(Operands::kValue));
  if (ddq) ddq = cast(ddq, wide);
  ddk = repeated(ddk);
  ddv = repeated(ddv);
  const Value p = exp(scores_of(c, q, k, shape) - of_query(operand(Operands::kLogsumexp)));
  const Value g = times_transposed(dy, v) - of_query(operand(Operands::kDelta));
  const Value ds = p * g * scale;

  const Value d_ds =
      sum_of(ddq ? times_transposed(ddq, k) : Value(), ddk ? times_transposed(q, ddk) : Value());
  const Value d_g = d_ds ? d_ds * p * scale : Value();
  const Value d_p =
      sum_of(d_ds ? d_ds * g * scale : Value(), ddv ? times_transposed(dy, ddv) : Value());
  const Value d_scores = d_p * p;

  Values gradients(c.arity());
  const auto set = [&](int i, Value gradient) {
    if (gradient)
      gradients[static_cast<size_t>(i)] = cast(gradient, c.in(static_cast<size_t>(i)).dtype());
  };
  set(Operands::kQuery, sum_of(times(d_scores, k) * scale, ddk ? times(ds, ddk) : Value()));
  set(Operands::kKey, sum_over_query_heads(sum_of(transposed_times(d_scores, q) * scale,
                                                  ddq ? transposed_times(ds, ddq) : Value()),
                                           shape));
  if (d_g) set(Operands::kValue, sum_over_query_heads(transposed_times(d_g, dy), shape));
  set(Operands::kOutputGradient,
      sum_of(d_g ? times(d_g, v) : Value(), ddv ? times(p, ddv) : Value()));
  set(Operands::kLogsumexp, -sum(d_scores, {.axes = -1}));
  if (d_g) set(Operands::kDelta, -sum(d_g, {.axes = -1}));
  return gradients;
}

}  // namespace fluid
