#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

std::vector<Type> infer_argmax(const InferCtx& c) {
  require_numeric(c, 0);
  const Shape& shape = c.in(0).shape;
  const int64_t axis = normalized_axis(c, c.attr<int64_t>("axis"), shape.size());
  c.require(shape[static_cast<size_t>(axis)].size != 0,
            "no elements along axis " + std::to_string(axis) + " of " + c.in(0).str());
  return {{DType::i64, reduced_shape(shape, axis, c.attr<bool>("keep_dims"))}};
}

}  // namespace

OpDef argmax_op() {
  return OpDef{
      .name = "argmax",
      .doc = "Index of the first maximum along `axis`. NaN counts as the largest value.",
      .inputs = {{"x", "numeric tensor, not empty along `axis`"}},
      .attrs = {{"axis", int64_t{-1}, "axis to reduce; negative: counted from the end"},
                {"keep_dims", false, "keeps the reduced axis with extent 1"}},
      .outputs = {{"index", "i64"}},
      .infer = infer_argmax,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        const MaxIndexAttrs attrs{.axes = c.attr<int64_t>("axis"),
                                  .keep_dims = c.attr<bool>("keep_dims")};
        return Values{max_index(c.in(0), attrs)[1]};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
