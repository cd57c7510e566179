#include "ops/nn/attention_grad.h"

namespace fluid {
namespace {

using Operands = AttentionGradOperands;

/// Each block computes the gradients of some tiles of keys and values.
kir::Kernel attention_grad_key_value_kernel(const LoopsCtx& c) {
  const AttentionShape shape = attention_grad_shape({c.in_type(0), c.in_type(1), c.in_type(2)});
  KernelWriter k(c);
  AttentionGradTiles grad(k, c, shape, AttentionParallelDim::key);
  const Expr groups = c.extent(shape.batch) * Expr::index(shape.groups);
  grad.tiles().for_each_block(groups, [&](const Expr& group, const Expr& first) {
    grad.write_key_value_gradients(group, first, k.result(0), k.result(1));
  });
  return k.kernel();
}

}  // namespace

OpDef attention_grad_key_value_op() {
  return OpDef{
      .name = "attention_grad_key_value",
      .doc = "Gradients of attention with respect to k and v.",
      .inputs = attention_grad_inputs(),
      .attrs = attention_kernel_attrs(),
      .outputs = {{"dk", "[B, G, S, D]"}, {"dv", "[B, G, S, E]"}},
      .infer =
          [](const InferCtx& c) {
            require_attention_grad_operands(c);
            return std::vector{c.in(Operands::kKey), c.in(Operands::kValue)};
          },
      .grad = GradFn([](const GradCtx& c) {
        return attention_second_gradients(c, Value(), c.dout(0), c.dout(1));
      }),
      .effects = Pure{},
      .amp = {Amp::kHalf, {Operands::kLogsumexp, Operands::kDelta}},
      .cost = [](const CostCtx& c) { return attention_cost(c, attention_grad_shape(c.in), 2, 2); },
      .in_place = {},
      .lower = Loops{attention_grad_key_value_kernel},
      .kernels = {},
      .version = 2,  // version 1 took transposed keys and values
      .internal = true,
  };
}

}  // namespace fluid
