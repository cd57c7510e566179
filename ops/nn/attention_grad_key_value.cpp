#include "ops/nn/attention_grad.h"

namespace fluid {
namespace {

using Operands = AttentionGradOperands;

/// Each block computes the gradients of some tiles of keys and values, summed over all query tiles
/// and all query heads of the group.
kir::Kernel attention_grad_key_value_kernel(const LoopsCtx& c) {
  const AttentionShape shape = attention_grad_shape({c.in_type(0), c.in_type(1), c.in_type(2)});
  KernelWriter k(c);
  AttentionGradTiles grad(k, c, shape, AttentionParallelDim::key);
  AttentionTiles& tiles = grad.tiles();
  const auto key_sums = tiles.row_tile_per_strip(shape.depth);          // [keys, D]
  const auto value_sums = tiles.row_tile_per_strip(shape.value_depth);  // [keys, E]
  const Expr groups = c.extent(shape.batch) * Expr::index(shape.groups);
  tiles.for_each_block(groups, [&](const Expr& group, const Expr& first) {
    tiles.for_each_strip(first, [&](const Expr& first_key) {
      grad.load_lanes(group, first_key);
      tiles.fill(key_sums, 0);
      tiles.fill(value_sums, 0);
    });
    k.loop(Expr::index(0), Expr::index(shape.heads_per_group()), [&](const Expr& member) {
      const Expr head = k.let(group * Expr::index(shape.heads_per_group()) + member);
      tiles.for_each_tile(first,
                          [&](const Expr& first_key, const Expr& first_query, const Expr& count) {
                            grad.compute_score_tile(head, group, first_query, first_key, count);
                            grad.add_product(value_sums, grad.weights(), Operands::kOutputGradient,
                                             head, first_query, count, shape.value_depth);
                            grad.add_product(key_sums, grad.score_gradients(), Operands::kQuery,
                                             head, first_query, count, shape.depth);
                          });
    });
    tiles.for_each_strip(first, [&](const Expr& first_key) {
      tiles.store_rows(key_sums, k.result(0), group, first_key, shape.depth);
      tiles.store_rows(value_sums, k.result(1), group, first_key, shape.value_depth);
    });
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
