#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

std::vector<Type> infer_max_index(const InferCtx& c) {
  const Type value = infer_extremum(c)[0];
  return {value, {DType::i64, value.shape}};
}

}  // namespace

OpDef max_index_op() {
  return OpDef{
      .name = "max_index",
      .doc =
          "Maximum along `axes` and the index of the first maximum, row-major among the reduced "
          "elements. NaN counts as the largest value.",
      .inputs = {{"x", "numeric tensor, not empty along `axes`"}},
      .attrs = reduction_attrs(),
      .outputs = {{"value", "x's dtype"}, {"index", "i64, same shape as value"}},
      .infer = infer_max_index,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0)}; },
      .in_place = {},
      .lower = reduce_along(Combine::argmax, [](const Expr& x) { return x; }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
