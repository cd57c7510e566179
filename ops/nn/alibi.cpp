#include "ops/nn/alibi.h"

#include <bit>

#include "ops/elementwise.h"

namespace fluid {
namespace {

/// ALiBi slope of head h. For H = 2^n heads, the slopes are 2^(-8 (h + 1) / H). Otherwise, let P =
/// 2^floor(log2 H). The first P heads have the slopes for P heads; the other heads have every
/// second slope for 2 P heads.
Expr alibi_slope(const Expr& head, int64_t heads, DType dtype) {
  const auto base = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  const auto slope = [&](const Expr& number, int64_t of) {
    return scalar::unary(ScalarOp::exp2,
                         scalar::cast(number, dtype) * (-8.0 / static_cast<double>(of)));
  };
  Expr first = slope(head + Expr::index(1), base);
  if (base == heads) return first;
  const Expr other = slope((head - Expr::index(base)) * 2.0 + 1.0, 2 * base);
  return scalar::select(scalar::compare(ScalarOp::lt, head, Expr::index(base)), first, other);
}

}  // namespace

Expr alibi_bias(const Expr& head, const Expr& query, const Expr& key, const AlibiShape& shape,
                DType dtype) {
  const Expr aligned = query + Expr::index(shape.keys - shape.queries);
  const Expr distance = scalar::unary(ScalarOp::abs, scalar::cast(key - aligned, dtype));
  return -(alibi_slope(head, std::max<int64_t>(shape.heads, 1), dtype) * distance);
}

OpDef alibi_op() {
  return OpDef{
      .name = "alibi",
      .doc =
          "Bias of attention with linear biases (ALiBi; Press, Smith and Lewis, 2022), an additive "
          "mask: y[h, q, k] = -slope[h] * |k - (q + K - Q)|. The last query is aligned with the "
          "last key. Attribute `alibi` of scaled_dot_product_attention adds the same bias without "
          "storing it.",
      .inputs = {},
      .attrs = {{"type", Type{}, "type [heads, Q, K] of the result", true}},
      .outputs = {{"y", "of type `type`"}},
      .infer =
          [](const InferCtx& c) {
            const Type& type = c.attr<Type>("type");
            c.require(is_float(type.dtype) && type.shape.rank() == 3 && !type.shape.has_batch(),
                      "attribute 'type' must be a float type [heads, Q, K], not " + type.str());
            return std::vector{type};
          },
      .grad = GradFn([](const GradCtx&) { return Values{}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(14),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        const Shape& shape = c.out_type().shape;
        return std::vector{alibi_bias(c.out_var(0), c.out_var(1), c.out_var(2),
                                      {shape[0].size, shape[1].size, shape[2].size},
                                      compute_dtype(c.out_type().dtype))};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
