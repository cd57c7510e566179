#include "ops/nn/attention_grad.h"

namespace fluid {
namespace {

using Operands = AttentionGradOperands;

/// Each block computes the gradients of some heads of keys and values, and of the queries that read
/// them. The gradients of the queries are sums over the tiles of keys, which accumulate in dq.
kir::Kernel attention_grad_kernel(const LoopsCtx& c) {
  const AttentionShape shape = attention_grad_shape({c.in_type(0), c.in_type(1), c.in_type(2)});
  KernelWriter k(c);
  AttentionGradTiles grad(k, c, shape, AttentionParallelDim::key);
  AttentionTiles& tiles = grad.tiles();
  const auto dq = k.result(0);
  const auto clear_query_gradients = [&](const Expr& group) {
    const Expr elements = Expr::index(shape.heads_per_group() * shape.queries * shape.depth);
    k.vector_loop(Expr::index(0), elements, [&](const Expr& i) {
      k.store(dq, group * elements + i, Expr::constant(tiles.dtype(), 0));
    });
  };
  const auto add_query_gradients = [&](const Expr& head, const Expr& group, const Expr& first_key,
                                       const Expr& first_query, const Expr& count) {
    tiles.multiply_lanes(grad.score_gradients(), Operands::kKey, group, first_key, count,
                         shape.depth, [&](const Expr& i, const Expr& d, const Expr& sum) {
                           const Expr row = head * Expr::index(shape.queries) + first_query + i;
                           const Expr offset = row * Expr::index(shape.depth) + d;
                           Expr guard = tiles.column_in_bounds(d, shape.depth);
                           if (shape.queries % AttentionTiles::kRows != 0) {
                             const Expr has_row = scalar::compare(ScalarOp::lt, i, count);
                             guard = guard ? scalar::logical_and(guard, has_row) : has_row;
                           }
                           const Expr so_far =
                               guard ? k.load_if(guard, dq, offset, 0) : k.load(dq, offset);
                           k.store(dq, offset, so_far + sum, guard);
                         });
  };
  const Expr groups = c.extent(shape.batch) * Expr::index(shape.groups);
  tiles.for_each_head(groups, clear_query_gradients, [&](const Expr& group, const Expr& first) {
    grad.write_key_value_gradients(
        group, first, k.result(1), k.result(2),
        [&](const Expr& head, const Expr& first_key, const Expr& first_query, const Expr& count) {
          add_query_gradients(head, group, first_key, first_query, count);
        });
  });
  return k.kernel();
}

}  // namespace

OpDef attention_grad_op() {
  return OpDef{
      .name = "attention_grad",
      .doc =
          "Gradients of attention with respect to q, k and v. Computes the scores once, where "
          "attention_grad_query and attention_grad_key_value compute them twice, but has only one "
          "block per head of k.",
      .inputs = attention_grad_inputs(),
      .attrs = attention_kernel_attrs(),
      .outputs = {{"dq", "like q, in the compute dtype"},
                  {"dk", "[B, G, S, D]"},
                  {"dv", "[B, G, S, E]"}},
      .infer =
          [](const InferCtx& c) {
            require_attention_grad_operands(c);
            const Type& q = c.in(Operands::kQuery);
            return std::vector{Type{compute_dtype(q.dtype), q.shape, {}}, c.in(Operands::kKey),
                               c.in(Operands::kValue)};
          },
      .grad = GradFn([](const GradCtx& c) {
        return attention_second_gradients(c, c.dout(0), c.dout(1), c.dout(2));
      }),
      .effects = Pure{},
      .amp = {Amp::kHalf, {Operands::kLogsumexp, Operands::kDelta}},
      .cost = [](const CostCtx& c) { return attention_cost(c, attention_grad_shape(c.in), 3, 2); },
      .in_place = {},
      .lower = Loops{attention_grad_kernel},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
