#include "ops/nn/attention_grad.h"

namespace fluid {
namespace {

using Operands = AttentionGradOperands;

/// Each block computes the gradients of some tiles of keys and values, summed over all query tiles
/// and all query heads of the group.
kir::Kernel attention_grad_key_value_kernel(const LoopsCtx& c) {
  const AttentionShape shape = attention_grad_shape({c.in_type(0), c.in_type(1), c.in_type(2)});
  KernelWriter k(c);
  AttentionGradTiles grad(k, c, shape, Operands::kKeyValueOptions);
  AttentionTiles& tiles = grad.tiles();
  const Expr queries = Expr::index(shape.queries), keys = Expr::index(shape.keys);
  const Expr groups = c.extent(shape.batch) * Expr::index(shape.groups);
  struct Sums {
    KernelWriter::Array array;
    int64_t depth;
    Expr tile;
  };
  Sums key_sums{tiles.scratch(AttentionTiles::kKeys * shape.depth), shape.depth, {}};
  Sums value_sums{tiles.scratch(AttentionTiles::kKeys * shape.value_depth), shape.value_depth, {}};
  // Adds a^T b to `sums`, for a [query, key] and b [query, d]. b is operand number `operand`. The
  // product sums over `count` queries from `first` on.
  const auto add = [&](const Sums& sums, const AttentionTiles::Element& a, size_t operand,
                       const Expr& head, const Expr& first, const Expr& count) {
    const Expr depth = Expr::index(sums.depth);
    tiles.matrix_product(
        AttentionTiles::kKeys, depth, count, [&](const Expr& j, const Expr& i) { return a(i, j); },
        [&](const Expr& i, const Expr& d) {
          return k.load(k.operand(operand), (head * queries + first + i) * depth + d);
        },
        [&](const Expr& j, const Expr& d, const Expr& sum) {
          const Expr at = sums.tile + j * depth + d;
          k.store(sums.array, at, k.load(sums.array, at) + sum);
        });
  };
  tiles.for_each_tile(
      groups, shape.keys, AttentionTiles::kKeys,
      [&](const Expr& block, const Expr& group, const Expr& first_key) {
        grad.compute_tile_offsets(block);
        for (Sums* sums : {&key_sums, &value_sums}) {
          sums->tile = k.let(block * Expr::index(AttentionTiles::kKeys * sums->depth));
          k.vector_loop(Expr::index(0), Expr::index(AttentionTiles::kKeys * sums->depth),
                        [&](const Expr& i) {
                          k.store(sums->array, sums->tile + i, Expr::constant(tiles.dtype(), 0));
                        });
        }
        const Expr key_count =
            k.let(scalar::min(Expr::index(AttentionTiles::kKeys), keys - first_key));
        grad.load_keys(group, first_key, key_count);
        k.loop(Expr::index(0), Expr::index(shape.heads_per_group()), [&](const Expr& member) {
          const Expr head = k.let(group * Expr::index(shape.heads_per_group()) + member);
          const Expr begin =
              tiles.is_causal() ? scalar::floordiv(first_key, Expr::index(AttentionTiles::kQueries))
                                : Expr::index(0);
          const Expr end = scalar::floordiv(queries + Expr::index(AttentionTiles::kQueries - 1),
                                            Expr::index(AttentionTiles::kQueries));
          k.loop(begin, end, [&](const Expr& tile) {
            const Expr first = k.let(tile * Expr::index(AttentionTiles::kQueries));
            const Expr count =
                k.let(scalar::min(Expr::index(AttentionTiles::kQueries), queries - first));
            grad.compute_score_tile(head, first, first_key, key_count);
            add(
                value_sums, [&](const Expr& i, const Expr& j) { return grad.weight(i, j); },
                Operands::kOutputGradient, head, first, count);
            add(
                key_sums, [&](const Expr& i, const Expr& j) { return grad.score_gradient(i, j); },
                Operands::kQuery, head, first, count);
          });
        });
        for (size_t r = 0; r < 2; ++r) {
          const Sums& sums = r == 0 ? key_sums : value_sums;
          const Expr depth = Expr::index(sums.depth);
          k.vector_loop(Expr::index(0), key_count * depth, [&](const Expr& i) {
            k.store(k.result(r), (group * keys + first_key) * depth + i,
                    k.load(sums.array, sums.tile + i));
          });
        }
      });
  return k.kernel();
}

}  // namespace

OpDef attention_grad_key_value_op() {
  return OpDef{
      .name = "attention_grad_key_value",
      .doc = "Gradients of attention with respect to k and v, not transposed.",
      .inputs = with_attention_options(attention_grad_inputs()),
      .attrs = attention_kernel_attrs(),
      .outputs = {{"dk", "[B, G, S, D]"}, {"dv", "[B, G, S, E]"}},
      .infer =
          [](const InferCtx& c) {
            require_attention_grad_operands(c, Operands::kKeyValueOptions);
            Type key = c.in(Operands::kKeyTransposed), value = c.in(Operands::kValueTransposed);
            std::swap(key.shape[2], key.shape[3]);
            std::swap(value.shape[2], value.shape[3]);
            return std::vector{key, value};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kHalf, {Operands::kLogsumexp, Operands::kDelta}},
      .cost = [](const CostCtx& c) { return attention_cost(c, attention_grad_shape(c.in), 2, 2); },
      .in_place = {},
      .lower = Loops{attention_grad_key_value_kernel},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
