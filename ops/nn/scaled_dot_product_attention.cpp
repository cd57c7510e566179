#include "ops/nn/scaled_dot_product_attention.h"

#include <algorithm>

#include "ops/nn/attention.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Appends the optional operands of an attention kernel: the mask, then the random key. If there is
/// a random key but no mask, appends an all-true mask.
void append_optional_operands(Values& operands, Value mask, Value random_key) {
  if (random_key && !mask) {
    mask = fill(*random_key.op()->graph(), {.type = Type{boolean, {1}, {}}, .value = 1});
  }
  if (mask) operands.push_back(mask);
  if (random_key) operands.push_back(random_key);
}

Attrs without_stream(Attrs attrs) {
  attrs.erase("stream");  // the random key contains the stream
  return attrs;
}

}  // namespace

Values expand_attention(const ExpandCtx& c, Value mask, Value random_key) {
  Values operands = {c.in(0), c.in(1), c.in(2)};
  append_optional_operands(operands, mask, random_key);
  return record(*c.op().graph(), "attention", operands, without_stream(c.attrs()), c.op().loc);
}

Values attention_gradients(const GradCtx& c, Value mask, Value random_key) {
  const Value q = c.in(0), k = c.in(1), v = c.in(2), y = c.out(0), logsumexp = c.out(1);
  const Value dy = c.dout(0);
  if (!dy) return Values(c.arity());
  const DType wide = logsumexp.dtype();
  Value delta = sum(cast(dy, wide) * cast(y, wide), {.axes = -1});
  // The derivative of logsumexp with respect to a score is the probability p. So the gradient
  // c.dout(1) of logsumexp adds p * c.dout(1) to the score gradient p * (dy v^T - delta).
  if (c.dout(1)) delta = delta - c.dout(1);
  Values operands = {q, k, v, dy, logsumexp, delta};
  append_optional_operands(operands, mask, random_key);
  ir::Graph& graph = *c.op().graph();
  const Attrs attrs = without_stream(c.attrs());
  Values gradients(c.arity());
  const Values dkv = record(graph, "attention_grad_key_value", operands, attrs, c.op().loc);
  std::ranges::copy(dkv, gradients.begin() + 1);
  gradients[0] = record(graph, "attention_grad_query", operands, attrs, c.op().loc)[0];
  return gradients;
}

std::vector<Type> infer_attention(const InferCtx& c, size_t mask) {
  const Type& q = c.in(0);
  require_attention_operands(c, q, c.in(1), c.in(2));
  if (c.has(mask)) require_attention_mask(c, c.in(mask), q, c.in(1));
  const Shape y = {q.shape[0], q.shape[1], q.shape[2], c.in(2).shape[3]};
  return {Type{q.dtype, y, {}}, logsumexp_type(q)};
}

std::vector<PortDef> attention_inputs() {
  return {{"q", "float [B, H, T, D]"},
          {"k", "same dtype, [B, G, S, D]; H is a multiple of G"},
          {"v", "same dtype, [B, G, S, E]"}};
}

PortDef attention_mask_input() {
  return {.name = "mask",
          .doc =
              "broadcasts to [B, H, T, S]: bool, false hides a key; or q's dtype, added to the "
              "scores",
          .optional = true};
}

std::vector<PortDef> attention_outputs() {
  return {{.name = "y", .doc = "[B, H, T, E]"},
          {.name = "logsumexp", .doc = "softmax statistics, [B, H, T]", .auxiliary = true}};
}

OpDef scaled_dot_product_attention_op() {
  constexpr size_t kMask = 3;  // operand index of the optional mask
  std::vector<PortDef> inputs = attention_inputs();
  inputs.push_back(attention_mask_input());
  return OpDef{
      .name = "scaled_dot_product_attention",
      .doc =
          "softmax(q k^T * scale + mask) v per head, like "
          "torch.nn.functional.scaled_dot_product_attention with enable_gqa=True: query head h "
          "reads head h * G / H of k and v. The scores are never stored as a whole: memory is "
          "linear in T and S. A query that sees no key gets 0. The mask gets no gradient.",
      .inputs = inputs,
      .attrs = attention_attrs(),
      .outputs = attention_outputs(),
      .infer = [](const InferCtx& c) { return infer_attention(c, kMask); },
      .grad = GradFn([](const GradCtx& c) {
        return attention_gradients(c, c.arity() > kMask ? c.in(kMask) : Value(), Value());
      }),
      .effects = Pure{},
      .amp = {Amp::kHalf},
      .cost =
          [](const CostCtx& c) {
            return attention_cost(c, attention_shape(c.in[0], c.in[1], c.in[2]), 1, 1);
          },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        return expand_attention(c, c.arity() > kMask ? c.in(kMask) : Value(), Value());
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
