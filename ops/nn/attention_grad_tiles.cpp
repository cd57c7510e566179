#include "ops/nn/attention_grad.h"

namespace fluid {
namespace {

using Operands = AttentionGradOperands;

Type transposed(Type type) {
  std::swap(type.shape[2], type.shape[3]);
  return type;
}

}  // namespace

std::vector<PortDef> attention_grad_inputs() {
  return {{"q", "float [B, H, T, D]"},
          {"k", "[B, G, D, S]"},
          {"v", "[B, G, E, S]"},
          {"dy", "gradient of attention's result, [B, H, T, E]"},
          {"logsumexp", "attention's second result"},
          {"delta", "sum of dy * y over E, like logsumexp"}};
}

void require_attention_grad_operands(const InferCtx& c, size_t options) {
  const Type& q = c.in(Operands::kQuery);
  for (const int i : {Operands::kQuery, Operands::kKeyTransposed, Operands::kValueTransposed}) {
    c.require(c.in(i).shape.size() == 4, "expects tensors of rank 4, got " + c.in(i).str());
  }
  const Type k = transposed(c.in(Operands::kKeyTransposed));
  const Type v = transposed(c.in(Operands::kValueTransposed));
  require_attention_operands(c, q, k, v);
  const Type y = {q.dtype, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}, {}};
  c.require(c.in(Operands::kOutputGradient) == y,
            "expects dy " + y.str() + ", got " + c.in(Operands::kOutputGradient).str());
  for (const int i : {Operands::kLogsumexp, Operands::kDelta}) {
    const Type wide = attention_statistics_type(q), own = {q.dtype, wide.shape, {}};
    c.require(c.in(i) == wide || c.in(i) == own,
              "expects " + wide.str() + ", got " + c.in(i).str());
  }
  if (c.has(options)) require_attention_mask(c, c.in(options), q, k);
  require_random_key(c, options + 1);
}

AttentionShape attention_grad_shape(const std::vector<Type>& operands) {
  return attention_shape(operands[Operands::kQuery], transposed(operands[Operands::kKeyTransposed]),
                         transposed(operands[Operands::kValueTransposed]));
}

AttentionGradTiles::AttentionGradTiles(KernelWriter& writer, const LoopsCtx& c,
                                       const AttentionShape& shape, size_t options)
    : k_(writer),
      shape_(shape),
      tiles_(writer, c, shape, options),
      scale_(attention_scale(c.attrs(), shape.depth)),
      key_tiles_(tiles_.scratch(shape.depth * AttentionTiles::kKeys)),
      value_tiles_(tiles_.scratch(shape.value_depth * AttentionTiles::kKeys)),
      weights_(tiles_.scratch(AttentionTiles::kQueries * AttentionTiles::kKeys)),
      gradients_(tiles_.scratch(AttentionTiles::kQueries * AttentionTiles::kKeys)) {}

void AttentionGradTiles::compute_tile_offsets(const Expr& block) {
  key_tile_ = k_.let(block * Expr::index(shape_.depth * AttentionTiles::kKeys));
  value_tile_ = k_.let(block * Expr::index(shape_.value_depth * AttentionTiles::kKeys));
  score_tile_ = k_.let(block * Expr::index(AttentionTiles::kQueries * AttentionTiles::kKeys));
}

void AttentionGradTiles::load_keys(const Expr& group, const Expr& first_key, const Expr& count) {
  const auto copy = [&](size_t operand, int64_t depth, const KernelWriter::Array& to,
                        const Expr& tile) {
    k_.loop(Expr::index(0), Expr::index(depth), [&](const Expr& d) {
      k_.vector_loop(Expr::index(0), count, [&](const Expr& j) {
        const Expr from =
            (group * Expr::index(depth) + d) * Expr::index(shape_.keys) + first_key + j;
        k_.store(to, tile + d * Expr::index(AttentionTiles::kKeys) + j,
                 k_.load(k_.operand(operand), from));
      });
    });
  };
  copy(Operands::kKeyTransposed, shape_.depth, key_tiles_, key_tile_);
  copy(Operands::kValueTransposed, shape_.value_depth, value_tiles_, value_tile_);
}

void AttentionGradTiles::compute_score_tile(const Expr& head, const Expr& first_query,
                                            const Expr& first_key, const Expr& count) {
  const auto query = [&](const Expr& i) { return clamped(first_query + i); };
  const auto row_of = [&](size_t operand, int64_t depth) {
    return [&, operand, depth](const Expr& i, const Expr& d) {
      return k_.load(k_.operand(operand),
                     (head * Expr::index(shape_.queries) + query(i)) * Expr::index(depth) + d);
    };
  };
  const auto column_of = [&](const KernelWriter::Array& array, const Expr& tile) {
    return [&, tile](const Expr& d, const Expr& j) {
      return k_.load(array, tile + d * Expr::index(AttentionTiles::kKeys) + j);
    };
  };
  tiles_.matrix_product(
      AttentionTiles::kQueries, count, Expr::index(shape_.depth),
      row_of(Operands::kQuery, shape_.depth), column_of(key_tiles_, key_tile_),
      [&](const Expr& i, const Expr& j, const Expr& sum) {
        const Expr score = tiles_.score(sum, head, query(i), first_key + j);
        const Expr p =
            scalar::unary(ScalarOp::exp, score - statistic(Operands::kLogsumexp, head, query(i)));
        const Expr exists =
            scalar::compare(ScalarOp::lt, first_query + i, Expr::index(shape_.queries));
        k_.store(weights_, score_tile_ + i * Expr::index(AttentionTiles::kKeys) + j,
                 scalar::select(exists, p, Expr::constant(tiles_.dtype(), 0)));
      });
  tiles_.matrix_product(
      AttentionTiles::kQueries, count, Expr::index(shape_.value_depth),
      row_of(Operands::kOutputGradient, shape_.value_depth), column_of(value_tiles_, value_tile_),
      [&](const Expr& i, const Expr& j, const Expr& sum) {
        const Expr delta = statistic(Operands::kDelta, head, query(i));
        k_.store(gradients_, score_tile_ + i * Expr::index(AttentionTiles::kKeys) + j,
                 tiles_.drops() ? sum : weight(i, j) * (sum - delta) * scale_);
      });
  if (tiles_.drops()) apply_dropout(head, first_query, first_key, count);
}

void AttentionGradTiles::apply_dropout(const Expr& head, const Expr& first_query,
                                       const Expr& first_key, const Expr& count) {
  k_.loop(Expr::index(0), Expr::index(AttentionTiles::kQueries), [&](const Expr& i) {
    const Expr query = k_.let(clamped(first_query + i));
    const Expr delta = k_.let(statistic(Operands::kDelta, head, query));
    k_.vector_loop(Expr::index(0), count, [&](const Expr& j) {
      const Expr at = score_tile_ + i * Expr::index(AttentionTiles::kKeys) + j;
      const Expr factor = k_.let(tiles_.dropout_factor(head, query, first_key + j));
      const Expr p = k_.let(weight(i, j));
      k_.store(gradients_, at, p * (factor * score_gradient(i, j) - delta) * scale_);
      k_.store(weights_, at, p * factor);
    });
  });
}

Expr AttentionGradTiles::clamped(const Expr& query) const {
  return scalar::min(query, Expr::index(shape_.queries - 1));
}

Expr AttentionGradTiles::statistic(size_t operand, const Expr& head, const Expr& query) const {
  return k_.load(k_.operand(operand), head * Expr::index(shape_.queries) + query);
}

Expr AttentionGradTiles::weight(const Expr& query, const Expr& key) const {
  return k_.load(weights_, score_tile_ + query * Expr::index(AttentionTiles::kKeys) + key);
}

Expr AttentionGradTiles::score_gradient(const Expr& query, const Expr& key) const {
  return k_.load(gradients_, score_tile_ + query * Expr::index(AttentionTiles::kKeys) + key);
}

}  // namespace fluid
