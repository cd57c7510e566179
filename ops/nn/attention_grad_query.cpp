#include "ops/nn/attention_grad.h"

namespace fluid {
namespace {

using Operands = AttentionGradOperands;

/// Each block computes the gradients of some tiles of queries, summed over all key tiles.
kir::Kernel attention_grad_query_kernel(const LoopsCtx& c) {
  const AttentionShape shape = attention_grad_shape({c.in_type(0), c.in_type(1), c.in_type(2)});
  KernelWriter k(c);
  AttentionGradTiles grad(k, c, shape, Operands::kQueryOptions);
  AttentionTiles& tiles = grad.tiles();
  const auto sums = tiles.scratch(AttentionTiles::kQueries * shape.depth);  // [queries, D]
  const Expr queries = Expr::index(shape.queries), keys = Expr::index(shape.keys);
  const Expr depth = Expr::index(shape.depth);
  const Expr heads = c.extent(shape.batch) * Expr::index(shape.heads);
  tiles.for_each_tile(
      heads, shape.queries, AttentionTiles::kQueries,
      [&](const Expr& block, const Expr& head, const Expr& first) {
        grad.compute_tile_offsets(block);
        const Expr sum_tile = k.let(block * Expr::index(AttentionTiles::kQueries * shape.depth));
        const Expr group = k.let(scalar::floordiv(head, Expr::index(shape.heads_per_group())));
        k.vector_loop(
            Expr::index(0), Expr::index(AttentionTiles::kQueries * shape.depth),
            [&](const Expr& i) { k.store(sums, sum_tile + i, Expr::constant(tiles.dtype(), 0)); });
        const Expr end = tiles.num_visible_key_tiles(first + Expr::index(AttentionTiles::kQueries));
        k.loop(Expr::index(0), end, [&](const Expr& tile) {
          const Expr first_key = k.let(tile * Expr::index(AttentionTiles::kKeys));
          const Expr count =
              k.let(scalar::min(Expr::index(AttentionTiles::kKeys), keys - first_key));
          grad.load_keys(group, first_key, count);
          grad.compute_score_tile(head, first, first_key, count);
          tiles.matrix_product(
              AttentionTiles::kQueries, depth, count,
              [&](const Expr& i, const Expr& j) { return grad.score_gradient(i, j); },
              [&](const Expr& j, const Expr& d) {
                return k.load(k.operand(Operands::kKey),
                              (group * keys + first_key + j) * depth + d);
              },
              [&](const Expr& i, const Expr& d, const Expr& sum) {
                const Expr at = sum_tile + i * depth + d;
                k.store(sums, at, k.load(sums, at) + sum);
              });
        });
        const Expr count = scalar::min(Expr::index(AttentionTiles::kQueries), queries - first);
        k.vector_loop(Expr::index(0), count * depth, [&](const Expr& i) {
          k.store(k.result(), (head * queries + first) * depth + i, k.load(sums, sum_tile + i));
        });
      });
  return k.kernel();
}

std::vector<PortDef> inputs() {
  std::vector<PortDef> ports = attention_grad_inputs();
  ports.push_back({"key", "k of attention before its transposition, [B, G, S, D]"});
  return with_attention_options(ports);
}

}  // namespace

OpDef attention_grad_query_op() {
  return OpDef{
      .name = "attention_grad_query",
      .doc = "Gradient of attention with respect to q.",
      .inputs = inputs(),
      .attrs = attention_kernel_attrs(),
      .outputs = {{"dq", "like q"}},
      .infer =
          [](const InferCtx& c) {
            require_attention_grad_operands(c, Operands::kQueryOptions);
            Type key = c.in(Operands::kKeyTransposed);
            std::swap(key.shape[2], key.shape[3]);
            c.require(c.in(Operands::kKey) == key,
                      "expects key " + key.str() + ", got " + c.in(Operands::kKey).str());
            return std::vector{c.in(Operands::kQuery)};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kHalf, {Operands::kLogsumexp, Operands::kDelta}},
      .cost = [](const CostCtx& c) { return attention_cost(c, attention_grad_shape(c.in), 2, 1); },
      .in_place = {},
      .lower = Loops{attention_grad_query_kernel},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
