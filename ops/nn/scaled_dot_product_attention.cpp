#include <algorithm>

#include "ops/nn/attention.h"
#include "ops/operators.h"

namespace fluid {
namespace {

constexpr size_t kMask = 3;  // operand number of the optional mask

Value swap_last(Value x) { return transpose(x, {.perm = {0, 1, 3, 2}}); }

Values attention_gradients(const GradCtx& c) {
  const Value q = c.in(0), k = c.in(1), v = c.in(2), y = c.out(0), logsumexp = c.out(1);
  const Value dy = c.dout(0);
  if (!dy) return Values(c.arity());
  const DType wide = logsumexp.dtype();
  Value delta = sum(cast(dy, wide) * cast(y, wide), {.axes = -1});
  // The derivative of logsumexp with respect to a score is the probability p. So the gradient
  // c.dout(1) of logsumexp adds p * c.dout(1) to the score gradient p * (dy v^T - delta).
  if (c.dout(1)) delta = delta - c.dout(1);
  const Value keys = swap_last(k), values = swap_last(v);
  Values operands = {q, keys, values, dy, logsumexp, delta};
  if (c.arity() > kMask) operands.push_back(c.in(kMask));
  ir::Graph& graph = *c.op().graph();
  Values gradients(c.arity());
  const Values dkv = record(graph, "attention_grad_key_value", operands, c.attrs(), c.op().loc);
  std::ranges::copy(dkv, gradients.begin() + 1);
  operands.insert(operands.begin() + 6, k);
  gradients[0] = record(graph, "attention_grad_query", operands, c.attrs(), c.op().loc)[0];
  return gradients;
}

}  // namespace

OpDef scaled_dot_product_attention_op() {
  return OpDef{
      .name = "scaled_dot_product_attention",
      .doc =
          "softmax(q k^T * scale + mask) v per head, as torch.nn.functional."
          "scaled_dot_product_attention with enable_gqa=True: query head h reads head h * G / H "
          "of k and v. The scores are never stored as a whole: memory is linear in T and S. A "
          "query that sees no key gets 0. The mask gets no gradient.",
      .inputs = {{"q", "float [B, H, T, D]"},
                 {"k", "same dtype, [B, G, S, D]; H is a multiple of G"},
                 {"v", "same dtype, [B, G, S, E]"},
                 {.name = "mask",
                  .doc = "broadcasts to [B, H, T, S]: bool, false hides a key; or q's dtype, added "
                         "to the scores",
                  .optional = true}},
      .attrs = attention_attrs(),
      .outputs = {{.name = "y", .doc = "[B, H, T, E]"},
                  {.name = "logsumexp", .doc = "softmax statistics, [B, H, T]", .auxiliary = true}},
      .infer =
          [](const InferCtx& c) {
            const Type& q = c.in(0);
            require_attention_operands(c, q, c.in(1), c.in(2));
            if (c.has(kMask)) require_attention_mask(c, c.in(kMask), q, c.in(1));
            const Shape y = {q.shape[0], q.shape[1], q.shape[2], c.in(2).shape[3]};
            return std::vector{Type{q.dtype, y, {}}, attention_statistics_type(q)};
          },
      .grad = GradFn(attention_gradients),
      .effects = Pure{},
      .amp = {Amp::kHalf},
      .cost =
          [](const CostCtx& c) {
            return attention_cost(c, attention_shape(c.in[0], c.in[1], c.in[2]), 1, 1);
          },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        Values operands = c.op().operands;
        operands[1] = swap_last(c.in(1));
        return record(*c.op().graph(), "attention", operands, c.attrs(), c.op().loc);
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
