#include "ops/nn/attention.h"

#include <limits>

namespace fluid {
namespace {

constexpr size_t kAttentionMask = 3;  // operand index of the optional mask

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Rows of the tile that holds the softmax statistics of a tile of queries. kMaximum: running
/// maximum of the scores. kShift: kMaximum, or 0 if kMaximum is -inf. kSum: running sum of
/// exp(score - kShift). kCorrection: factor that rescales the sums over the earlier keys to the new
/// kShift.
enum Statistic : int64_t { kMaximum, kSum, kShift, kCorrection, kStatistics };

kir::Kernel attention_kernel(const LoopsCtx& c) {
  const AttentionShape shape = attention_shape(c.in_type(0), c.in_type(1), c.in_type(2));
  const int64_t depth = shape.depth, value_depth = shape.value_depth;
  KernelWriter k(c);
  AttentionTiles tiles(k, c, shape, kAttentionMask, AttentionParallelDim::query);
  const DType dtype = tiles.dtype();
  const auto key = k.operand(1);
  // On a GPU, the keys of a tile are distributed over several threads.
  const int64_t parts = c.device() == KernelDevice::cpu ? 1 : 4;
  const auto query_tile = tiles.tile_per_strip(depth);        // [D, queries]
  const auto scores = tiles.tile(AttentionTiles::kTileRows);  // [keys, queries]
  const auto sums = tiles.row_tile_per_strip(value_depth);    // [queries, E]
  const auto statistics = tiles.tile_per_strip(kStatistics);
  const auto partials = tiles.tile(parts);
  const Expr queries = Expr::index(shape.queries), keys = Expr::index(shape.keys);
  const Expr lanes = Expr::index(tiles.lanes());
  const auto number = [&](double v) { return Expr::constant(dtype, v); };
  const auto for_each_query = [&](const KernelWriter::LoopBody& body) {
    k.vector_loop(Expr::index(0), lanes, body);
  };
  const auto statistic = [&](int64_t which, const Expr& lane) {
    return k.let(tiles.load(statistics, Expr::index(which), lane));
  };
  const auto set_statistic = [&](int64_t which, const Expr& lane, const Expr& to) {
    tiles.store(statistics, Expr::index(which), lane, to);
  };
  const auto sees_keys = [&](const Expr& total) {
    return scalar::compare(ScalarOp::ne, total, number(0));
  };

  // Replaces the first `count` rows of `scores` by the softmax weights exp(score - maximum), and
  // updates the statistics.
  const auto update_softmax = [&](const Expr& head, const Expr& first, const Expr& first_key,
                                  const Expr& count) {
    const auto for_each_key = [&](const Expr& part, const KernelWriter::LoopBody& body) {
      const Expr size = Expr::index(AttentionTiles::kTileRows / parts);
      const Expr begin = part * size;
      k.loop(begin, scalar::min(begin + size, count), body);
    };
    tiles.for_each_element(
        Expr::index(parts), tiles.lanes(), [&](const Expr& part, const Expr& lane) {
          const auto largest = k.accumulators(dtype, Combine::max);
          for_each_key(part,
                       [&](const Expr& j) { k.accumulate(largest, tiles.load(scores, j, lane)); });
          tiles.store(partials, part, lane, k.read(largest));
        });
    for_each_query([&](const Expr& lane) {
      const Expr old = statistic(kMaximum, lane);
      Expr maximum = old;
      for (int64_t i = 0; i < parts; ++i) {
        maximum = k.let(scalar::max(maximum, tiles.load(partials, Expr::index(i), lane)));
      }
      // The maximum is -inf if all keys so far are masked for this query.
      const Expr sees = scalar::compare(ScalarOp::ne, maximum, number(-kInfinity));
      const Expr shift = k.let(scalar::select(sees, maximum, number(0)));
      set_statistic(kMaximum, lane, maximum);
      set_statistic(kShift, lane, shift);
      set_statistic(kCorrection, lane, scalar::unary(ScalarOp::exp, old - shift));
    });
    tiles.for_each_element(
        Expr::index(parts), tiles.lanes(), [&](const Expr& part, const Expr& lane) {
          const Expr shift = statistic(kShift, lane);
          const auto total = k.accumulators(dtype);
          for_each_key(part, [&](const Expr& j) {
            const Expr p = k.let(scalar::unary(ScalarOp::exp, tiles.load(scores, j, lane) - shift));
            const Expr weight = tiles.has_dropout()
                                    ? p * tiles.dropout_factor(head, first + lane, first_key + j)
                                    : p;
            tiles.store(scores, j, lane, weight);
            k.accumulate(total, p);
          });
          tiles.store(partials, part, lane, k.read(total));
        });
    for_each_query([&](const Expr& lane) {
      Expr sum = statistic(kSum, lane) * statistic(kCorrection, lane);
      for (int64_t i = 0; i < parts; ++i) sum = sum + tiles.load(partials, Expr::index(i), lane);
      set_statistic(kSum, lane, sum);
    });
  };

  const Expr heads = c.extent(shape.batch) * Expr::index(shape.heads);
  tiles.for_each_block(heads, [&](const Expr& head, const Expr& first) {
    const Expr group = k.let(scalar::floordiv(head, Expr::index(shape.heads_per_group())));
    tiles.for_each_strip(first, [&](const Expr& first_query) {
      tiles.load_transposed(query_tile, 0, head, first_query, depth);
      tiles.fill(sums, 0);
      for_each_query([&](const Expr& lane) {
        set_statistic(kMaximum, lane, number(-kInfinity));
        set_statistic(kSum, lane, number(0));
      });
    });
    tiles.for_each_tile(
        first, [&](const Expr& first_query, const Expr& first_key, const Expr& count) {
          const auto clamped_key = [&](const Expr& j) {
            return AttentionTiles::clamped_row(first_key + j, shape.keys);
          };
          tiles.matrix_product(
              count, tiles.lanes(), Expr::index(depth),
              [&](const Expr& j, const Expr& d) {
                return k.load(key, (group * keys + clamped_key(j)) * Expr::index(depth) + d);
              },
              [&](const Expr& d, const Expr& lane) { return tiles.load(query_tile, d, lane); },
              [&](const Expr& j, const Expr& lane, const Expr& sum) {
                tiles.store(scores, j, lane,
                            tiles.score(sum, head, first_query + lane, clamped_key(j)));
              });
          update_softmax(head, first_query, first_key, count);
          tiles.multiply_rows(
              scores, 2, group, first_key, count, value_depth,
              [&](const Expr& query, const Expr& e, const Expr& sum) {
                const Expr correction = tiles.load(statistics, Expr::index(kCorrection), query);
                tiles.store(sums, query, e, tiles.load(sums, query, e) * correction + sum);
              });
        });
    tiles.for_each_strip(first, [&](const Expr& first_query) {
      for_each_query([&](const Expr& lane) {
        set_statistic(kCorrection, lane, number(1) / statistic(kSum, lane));
      });
      k.vector_loop(
          Expr::index(0), scalar::min(lanes, queries - first_query), [&](const Expr& lane) {
            const Expr total = statistic(kSum, lane);
            const Expr logsumexp = statistic(kMaximum, lane) + scalar::unary(ScalarOp::log, total);
            k.store(k.result(1), head * queries + first_query + lane,
                    scalar::select(sees_keys(total), logsumexp, number(kInfinity)));
          });
      tiles.store_rows(sums, k.result(0), head, first_query, value_depth,
                       [&](const Expr& sum, const Expr& query) {
                         const Expr sees = sees_keys(statistic(kSum, query));
                         return scalar::select(sees, sum * statistic(kCorrection, query),
                                               number(0));
                       });
    });
  });
  return k.kernel();
}

}  // namespace

OpDef attention_op() {
  return OpDef{
      .name = "attention",
      .doc =
          "scaled_dot_product_attention, with dropout of the softmax weights if it has a random "
          "key. "
          "Computes tiles of the scores, which it never stores as a whole.",
      .inputs = with_mask_and_random_key({{"q", "float [B, H, T, D]"},
                                          {"k", "same dtype, [B, G, S, D]"},
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
            require_attention_operands(c, q, c.in(1), c.in(2));
            if (c.has(kAttentionMask)) require_attention_mask(c, c.in(kAttentionMask), q, c.in(1));
            require_random_key(c, kAttentionMask + 1);
            const Shape y = {q.shape[0], q.shape[1], q.shape[2], c.in(2).shape[3]};
            return std::vector{Type{q.dtype, y, {}}, logsumexp_type(q)};
          },
      .grad = NoGrad{},  // scaled_dot_product_attention(_dropout) defines the gradient
      .effects = Pure{},
      .amp = {Amp::kHalf},
      .cost =
          [](const CostCtx& c) {
            return attention_cost(c, attention_shape(c.in[0], c.in[1], c.in[2]), 1, 1);
          },
      .in_place = {},
      .lower = Loops{attention_kernel},
      .kernels = {},
      .version = 2,  // version 1 took transposed keys
      .internal = true,
  };
}

}  // namespace fluid
