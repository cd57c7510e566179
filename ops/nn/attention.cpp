#include "ops/nn/attention.h"

#include <limits>

namespace fluid {
namespace {

constexpr size_t kAttentionMask = 3;  // operand number of the optional mask

/// Returns the extents of attention. k is transposed to [B, G, D, S], so its last dimension holds
/// the keys.
AttentionShape shape_of(const Type& q, const Type& transposed_key, const Type& v) {
  AttentionShape shape = attention_shape(q, transposed_key, v);
  shape.keys = transposed_key.shape[3].size;
  return shape;
}

kir::Kernel attention_kernel(const LoopsCtx& c) {
  const AttentionShape shape = shape_of(c.in_type(0), c.in_type(1), c.in_type(2));
  const int64_t depth = shape.depth, value_depth = shape.value_depth;
  KernelWriter k(c);
  AttentionTiles tiles(k, c, shape, kAttentionMask);
  const DType dtype = tiles.dtype();
  const auto q = k.operand(0), key = k.operand(1), value = k.operand(2);
  const auto key_tiles = tiles.scratch(depth * AttentionTiles::kKeys);  // [D, keys]
  const auto scores =
      tiles.scratch(AttentionTiles::kQueries * AttentionTiles::kKeys);      // [queries, keys]
  const auto sums = tiles.scratch(AttentionTiles::kQueries * value_depth);  // [queries, E]
  const auto rows = tiles.scratch(3 * AttentionTiles::kQueries);  // per query: max, sum, correction
  const Expr queries = Expr::index(shape.queries), keys = Expr::index(shape.keys);
  const auto number = [&](double v) { return Expr::constant(dtype, v); };
  const auto for_each_query = [&](const KernelWriter::LoopBody& body) {
    k.loop(Expr::index(0), Expr::index(AttentionTiles::kQueries), body);
  };

  const Expr heads = c.extent(shape.batch) * Expr::index(shape.heads);
  tiles.for_each_tile(
      heads, shape.queries, AttentionTiles::kQueries,
      [&](const Expr& block, const Expr& head, const Expr& first) {
        const Expr key_tile = k.let(block * Expr::index(depth * AttentionTiles::kKeys));
        const Expr score_tile =
            k.let(block * Expr::index(AttentionTiles::kQueries * AttentionTiles::kKeys));
        const Expr sum_tile = k.let(block * Expr::index(AttentionTiles::kQueries * value_depth));
        const Expr row_tile = k.let(block * Expr::index(3 * AttentionTiles::kQueries));
        const auto row = [&](int64_t which, const Expr& i) {
          return row_tile + Expr::index(which * AttentionTiles::kQueries) + i;
        };
        const Expr group = k.let(scalar::floordiv(head, Expr::index(shape.heads_per_group())));
        const auto clamped = [&](const Expr& i) {  // index of a query; past the end: the last query
          return scalar::min(first + i, queries - Expr::index(1));
        };
        k.vector_loop(Expr::index(0), Expr::index(AttentionTiles::kQueries * value_depth),
                      [&](const Expr& i) { k.store(sums, sum_tile + i, number(0)); });
        k.vector_loop(Expr::index(0), Expr::index(AttentionTiles::kQueries), [&](const Expr& i) {
          k.store(rows, row(0, i), number(-std::numeric_limits<double>::infinity()));
          k.store(rows, row(1, i), number(0));
        });
        const Expr end = tiles.num_visible_key_tiles(first + Expr::index(AttentionTiles::kQueries));
        k.loop(Expr::index(0), end, [&](const Expr& tile) {
          const Expr first_key = k.let(tile * Expr::index(AttentionTiles::kKeys));
          const Expr count =
              k.let(scalar::min(Expr::index(AttentionTiles::kKeys), keys - first_key));
          k.loop(Expr::index(0), Expr::index(depth), [&](const Expr& d) {
            k.vector_loop(Expr::index(0), count, [&](const Expr& j) {
              k.store(key_tiles, key_tile + d * Expr::index(AttentionTiles::kKeys) + j,
                      k.load(key, (group * Expr::index(depth) + d) * keys + first_key + j));
            });
          });
          tiles.matrix_product(
              AttentionTiles::kQueries, count, Expr::index(depth),
              [&](const Expr& i, const Expr& d) {
                return k.load(q, (head * queries + clamped(i)) * Expr::index(depth) + d);
              },
              [&](const Expr& d, const Expr& j) {
                return k.load(key_tiles, key_tile + d * Expr::index(AttentionTiles::kKeys) + j);
              },
              [&](const Expr& i, const Expr& j, const Expr& sum) {
                k.store(scores, score_tile + i * Expr::index(AttentionTiles::kKeys) + j,
                        tiles.score(sum, head, clamped(i), first_key + j));
              });
          for_each_query([&](const Expr& i) {
            const auto score = [&](const Expr& j) {
              return score_tile + i * Expr::index(AttentionTiles::kKeys) + j;
            };
            const auto largest = k.lane_accumulators(dtype, Combine::max);
            k.vector_loop(Expr::index(0), count,
                          [&](const Expr& j) { k.accumulate(largest, k.load(scores, score(j))); });
            const Expr old = k.let(k.load(rows, row(0, i)));
            const Expr maximum = k.let(scalar::max(old, k.total(largest)));
            // The maximum is -inf if all keys so far are masked for this query.
            const Expr sees = scalar::compare(ScalarOp::ne, maximum,
                                              number(-std::numeric_limits<double>::infinity()));
            const Expr shift = k.let(scalar::select(sees, maximum, number(0)));
            const Expr correction = k.let(scalar::unary(ScalarOp::exp, old - shift));
            const auto total = k.lane_accumulators(dtype);
            k.vector_loop(Expr::index(0), count, [&](const Expr& j) {
              const Expr p = k.let(scalar::unary(ScalarOp::exp, k.load(scores, score(j)) - shift));
              const Expr weight =
                  tiles.drops() ? p * tiles.dropout_factor(head, clamped(i), first_key + j) : p;
              k.store(scores, score(j), weight);
              k.accumulate(total, p);
            });
            const Expr sum = k.let(k.load(rows, row(1, i)) * correction + k.total(total));
            k.store(rows, row(0, i), maximum);
            k.store(rows, row(1, i), sum);
            k.store(rows, row(2, i), correction);
          });
          tiles.matrix_product(
              AttentionTiles::kQueries, Expr::index(value_depth), count,
              [&](const Expr& i, const Expr& j) {
                return k.load(scores, score_tile + i * Expr::index(AttentionTiles::kKeys) + j);
              },
              [&](const Expr& j, const Expr& e) {
                return k.load(value, (group * keys + first_key + j) * Expr::index(value_depth) + e);
              },
              [&](const Expr& i, const Expr& e, const Expr& sum) {
                const Expr at = sum_tile + i * Expr::index(value_depth) + e;
                k.store(sums, at, k.load(sums, at) * k.load(rows, row(2, i)) + sum);
              });
        });
        k.loop(
            Expr::index(0), scalar::min(Expr::index(AttentionTiles::kQueries), queries - first),
            [&](const Expr& i) {
              const Expr total = k.let(k.load(rows, row(1, i)));
              const Expr sees = k.let(scalar::compare(ScalarOp::ne, total, number(0)));
              const Expr query = k.let(head * queries + first + i);
              k.vector_loop(Expr::index(0), Expr::index(value_depth), [&](const Expr& e) {
                const Expr mean = k.load(sums, sum_tile + i * Expr::index(value_depth) + e) / total;
                k.store(k.result(0), query * Expr::index(value_depth) + e,
                        scalar::select(sees, mean, number(0)));
              });
              const Expr logsumexp = k.load(rows, row(0, i)) + scalar::unary(ScalarOp::log, total);
              k.store(
                  k.result(1), query,
                  scalar::select(sees, logsumexp, number(std::numeric_limits<double>::infinity())));
            });
      });
  return k.kernel();
}

}  // namespace

OpDef attention_op() {
  return OpDef{
      .name = "attention",
      .doc =
          "scaled_dot_product_attention with transposed keys, and with dropout of the softmax "
          "weights if it has a random key. Computes tiles of the scores, which it never stores as "
          "a whole.",
      .inputs = with_attention_options({{"q", "float [B, H, T, D]"},
                                        {"k", "same dtype, [B, G, D, S]"},
                                        {"v", "same dtype, [B, G, S, E]"}}),
      .attrs = attention_kernel_attrs(),
      .outputs = {{.name = "y", .doc = "[B, H, T, E]"},
                  {.name = "logsumexp",
                   .doc = "log of the sum of exp(score) per query, [B, H, T]; inf for a query that "
                          "sees no key",
                   .auxiliary = true}},
      .infer =
          [](const InferCtx& c) {
            const Type& q = c.in(0);
            Type key = c.in(1);
            c.require(key.shape.size() == 4, "expects k [B, G, D, S], got " + key.str());
            std::swap(key.shape[2], key.shape[3]);
            require_attention_operands(c, q, key, c.in(2));
            if (c.has(kAttentionMask)) require_attention_mask(c, c.in(kAttentionMask), q, key);
            require_random_key(c, kAttentionMask + 1);
            const Shape y = {q.shape[0], q.shape[1], q.shape[2], c.in(2).shape[3]};
            return std::vector{Type{q.dtype, y, {}}, attention_statistics_type(q)};
          },
      .grad = NoGrad{},  // scaled_dot_product_attention(_dropout) has the gradient
      .effects = Pure{},
      .amp = {Amp::kHalf},
      .cost =
          [](const CostCtx& c) {
            return attention_cost(c, shape_of(c.in[0], c.in[1], c.in[2]), 1, 1);
          },
      .in_place = {},
      .lower = Loops{attention_kernel},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
