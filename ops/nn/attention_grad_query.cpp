#include "ops/nn/attention_grad.h"

namespace fluid {
namespace {

using Operands = AttentionGradOperands;

/// Each block computes the gradients of some tiles of queries, summed over all key tiles.
kir::Kernel attention_grad_query_kernel(const LoopsCtx& c) {
  const AttentionShape shape = attention_grad_shape({c.in_type(0), c.in_type(1), c.in_type(2)});
  KernelWriter k(c);
  AttentionGradTiles grad(k, c, shape, AttentionParallelDim::query);
  AttentionTiles& tiles = grad.tiles();
  const auto sums = tiles.row_tile_per_strip(shape.depth);  // [queries, D]
  const Expr heads = c.extent(shape.batch) * Expr::index(shape.heads);
  tiles.for_each_block(heads, [&](const Expr& head, const Expr& first) {
    const Expr group = k.let(scalar::floordiv(head, Expr::index(shape.heads_per_group())));
    tiles.for_each_strip(first, [&](const Expr& first_query) {
      grad.load_lanes(head, first_query);
      tiles.fill(sums, 0);
    });
    tiles.for_each_tile(first,
                        [&](const Expr& first_query, const Expr& first_key, const Expr& count) {
                          grad.compute_score_tile(head, group, first_key, first_query, count);
                          grad.add_product(sums, grad.score_gradients(), Operands::kKey, group,
                                           first_key, count, shape.depth);
                        });
    tiles.for_each_strip(first, [&](const Expr& first_query) {
      tiles.store_rows(sums, k.result(), head, first_query, shape.depth);
    });
  });
  return k.kernel();
}

}  // namespace

OpDef attention_grad_query_op() {
  return OpDef{
      .name = "attention_grad_query",
      .doc = "Gradient of attention with respect to q.",
      .inputs = attention_grad_inputs(),
      .attrs = attention_kernel_attrs(),
      .outputs = {{"dq", "like q"}},
      .infer =
          [](const InferCtx& c) {
            require_attention_grad_operands(c);
            return std::vector{c.in(Operands::kQuery)};
          },
      .grad = GradFn([](const GradCtx& c) {
        return attention_second_gradients(c, c.dout(0), Value(), Value());
      }),
      .effects = Pure{},
      .amp = {Amp::kHalf, {Operands::kLogsumexp, Operands::kDelta}},
      .cost = [](const CostCtx& c) { return attention_cost(c, attention_grad_shape(c.in), 2, 1); },
      .in_place = {},
      .lower = Loops{attention_grad_query_kernel},
      .kernels = {},
      .version = 2,  // version 1 took transposed keys and values
      .internal = true,
      .combined = CombinedOp{.with = "attention_grad_key_value",
                             .op = "attention_grad",
                             .blocks =
                                 [](const std::vector<Type>& in) {
                                   const Shape& k = in.at(Operands::kKey).shape;
                                   Dim blocks = k[0];
                                   blocks.size *= k[1].size;
                                   return blocks;
                                 }},
  };
}

}  // namespace fluid
