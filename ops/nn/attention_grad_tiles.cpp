#include <limits>

#include "ops/nn/attention_grad.h"

namespace fluid {
namespace {

using Operands = AttentionGradOperands;

}  // namespace

std::vector<PortDef> attention_grad_inputs() {
  return with_mask_and_random_key({{"q", "float [B, H, T, D]"},
                                   {"k", "[B, G, S, D]"},
                                   {"v", "[B, G, S, E]"},
                                   {"dy", "gradient of attention's result, [B, H, T, E]"},
                                   {"logsumexp", "attention's second result"},
                                   {"delta", "sum of dy * y over E, like logsumexp"}});
}

void require_attention_grad_operands(const InferCtx& c) {
  const Type &q = c.in(Operands::kQuery), &k = c.in(Operands::kKey), &v = c.in(Operands::kValue);
  require_attention_operands(c, q, k, v);
  const Type y = {q.dtype, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}, {}};
  c.require(c.in(Operands::kOutputGradient) == y,
            "expects dy " + y.str() + ", got " + c.in(Operands::kOutputGradient).str());
  for (const int i : {Operands::kLogsumexp, Operands::kDelta}) {
    const Type wide = logsumexp_type(q), own = {q.dtype, wide.shape, {}};
    c.require(c.in(i) == wide || c.in(i) == own,
              "expects " + wide.str() + ", got " + c.in(i).str());
  }
  if (c.has(Operands::kMask)) require_attention_mask(c, c.in(Operands::kMask), q, k);
  require_random_key(c, Operands::kRandomKey);
}

AttentionShape attention_grad_shape(const std::vector<Type>& operands) {
  return attention_shape(operands[Operands::kQuery], operands[Operands::kKey],
                         operands[Operands::kValue]);
}

AttentionGradTiles::AttentionGradTiles(KernelWriter& writer, const LoopsCtx& c,
                                       const AttentionShape& shape,
                                       AttentionParallelDim parallel_dim)
    : k_(writer),
      shape_(shape),
      tiles_(writer, c, shape, Operands::kMask, parallel_dim),
      scale_(attention_scale(c.attrs(), shape.depth)),
      depth_tile_(tiles_.tile_per_strip(shape.depth)),
      value_tile_(tiles_.tile_per_strip(shape.value_depth)),
      weights_(tiles_.tile(AttentionTiles::kTileRows)),
      // The gradients share the memory of the weights, unless dv or dropout needs both tiles.
      gradients_(lanes_are_keys() || tiles_.has_dropout() ? tiles_.tile(AttentionTiles::kTileRows)
                                                          : weights_) {
  if (!lanes_are_keys()) return;
  key_sums_ = tiles_.row_tile_per_strip(shape.depth);
  value_sums_ = tiles_.row_tile_per_strip(shape.value_depth);
}

void AttentionGradTiles::load_lanes(const Expr& head, const Expr& first_lane) {
  const bool keys = lanes_are_keys();
  tiles_.load_transposed(depth_tile_, keys ? Operands::kKey : Operands::kQuery, head, first_lane,
                         shape_.depth);
  tiles_.load_transposed(value_tile_, keys ? Operands::kValue : Operands::kOutputGradient, head,
                         first_lane, shape_.value_depth);
}

void AttentionGradTiles::compute_score_tile(const Expr& head, const Expr& group,
                                            const Expr& first_row, const Expr& first_lane,
                                            const Expr& count) {
  const bool keys = lanes_are_keys();
  const auto multiply_rows = [&](size_t operand, const AttentionTiles::Tile& lanes, int64_t depth,
                                 const AttentionTiles::Sum& finish) {
    tiles_.matrix_product(
        count, tiles_.lanes(), Expr::index(depth),
        [&](const Expr& i, const Expr& d) {
          const Expr row =
              (keys ? head : group) * Expr::index(row_extent()) + clamped_row(first_row + i);
          return k_.load(k_.operand(operand), row * Expr::index(depth) + d);
        },
        [&](const Expr& d, const Expr& lane) { return tiles_.load(lanes, d, lane); }, finish);
  };
  multiply_rows(keys ? Operands::kQuery : Operands::kKey, depth_tile_, shape_.depth,
                [&](const Expr& i, const Expr& lane, const Expr& sum) {
                  const Expr row = clamped_row(first_row + i), column = first_lane + lane;
                  const Expr score =
                      tiles_.score(sum, head, keys ? row : column, keys ? column : row);
                  const Expr logsumexp = statistic(Operands::kLogsumexp, head, row, column);
                  tiles_.store(weights_, i, lane, scalar::unary(ScalarOp::exp, score - logsumexp));
                });
  multiply_rows(keys ? Operands::kOutputGradient : Operands::kValue, value_tile_,
                shape_.value_depth, [&](const Expr& i, const Expr& lane, const Expr& sum) {
                  const Expr row = clamped_row(first_row + i), column = first_lane + lane;
                  const Expr delta = statistic(Operands::kDelta, head, row, column);
                  tiles_.store(gradients_, i, lane,
                               tiles_.has_dropout()
                                   ? sum
                                   : tiles_.load(weights_, i, lane) * (sum - delta) * scale_);
                });
  if (tiles_.has_dropout()) apply_dropout(head, first_row, first_lane, count);
}

void AttentionGradTiles::apply_dropout(const Expr& head, const Expr& first_row,
                                       const Expr& first_lane, const Expr& count) {
  tiles_.for_each_element(count, tiles_.lanes(), [&](const Expr& i, const Expr& lane) {
    const Expr row = first_row + i, column = first_lane + lane;
    const Expr delta = k_.let(statistic(Operands::kDelta, head, row, column));
    const Expr factor = k_.let(lanes_are_keys() ? tiles_.dropout_factor(head, row, column)
                                                : tiles_.dropout_factor(head, column, row));
    const Expr p = k_.let(tiles_.load(weights_, i, lane));
    tiles_.store(gradients_, i, lane,
                 p * (factor * tiles_.load(gradients_, i, lane) - delta) * scale_);
    if (lanes_are_keys()) tiles_.store(weights_, i, lane, p * factor);
  });
}

void AttentionGradTiles::add_product(const AttentionTiles::Tile& sums,
                                     const AttentionTiles::Tile& tile, size_t operand,
                                     const Expr& head, const Expr& first_row, const Expr& count,
                                     int64_t depth) {
  tiles_.multiply_rows(tile, operand, head, first_row, count, depth,
                       [&](const Expr& lane, const Expr& d, const Expr& sum) {
                         tiles_.store(sums, lane, d, tiles_.load(sums, lane, d) + sum);
                       });
}

void AttentionGradTiles::write_key_value_gradients(const Expr& group, const Expr& first,
                                                   const KernelWriter::Array& dk,
                                                   const KernelWriter::Array& dv,
                                                   const ScoreTile& tile) {
  tiles_.for_each_strip(first, [&](const Expr& first_key) {
    load_lanes(group, first_key);
    tiles_.fill(key_sums_, 0);
    tiles_.fill(value_sums_, 0);
  });
  const Expr members = Expr::index(shape_.heads_per_group());
  k_.loop(Expr::index(0), members, [&](const Expr& member) {
    const Expr head = k_.let(group * members + member);
    tiles_.for_each_tile(first, [&](const Expr& first_key, const Expr& first_query,
                                    const Expr& count) {
      compute_score_tile(head, group, first_query, first_key, count);
      add_product(value_sums_, weights_, Operands::kOutputGradient, head, first_query, count,
                  shape_.value_depth);
      add_product(key_sums_, gradients_, Operands::kQuery, head, first_query, count, shape_.depth);
      if (tile) tile(head, first_key, first_query, count);
    });
  });
  tiles_.for_each_strip(first, [&](const Expr& first_key) {
    tiles_.store_rows(key_sums_, dk, group, first_key, shape_.depth);
    tiles_.store_rows(value_sums_, dv, group, first_key, shape_.value_depth);
  });
}

Expr AttentionGradTiles::statistic(size_t operand, const Expr& head, const Expr& row,
                                   const Expr& lane) const {
  const Expr query = lanes_are_keys() ? row : lane;
  const Expr offset = head * Expr::index(shape_.queries) + query;
  const Expr guard = lanes_are_keys() ? Expr() : tiles_.in_bounds(lane);
  return guard ? k_.load_if(guard, k_.operand(operand), offset, 0)
               : k_.load(k_.operand(operand), offset);
}

}  // namespace fluid
