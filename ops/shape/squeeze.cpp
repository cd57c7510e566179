#include <algorithm>

#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

std::vector<Type> infer_squeeze(const InferCtx& c) {
  const Shape& shape = c.in(0).shape;
  const Ints axes = normalized_axes(c, c.attr<std::vector<int64_t>>("axes"), shape.size());
  Type type{c.in(0).dtype, {}, {}};
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool listed = std::ranges::binary_search(axes, static_cast<int64_t>(d));
    if (!listed || !shape[d].is(1)) type.shape.push_back(shape[d]);
  }
  return {type};
}

}  // namespace

OpDef squeeze_op() {
  return OpDef{
      .name = "squeeze",
      .doc = "Removes those of the dimensions `axes` that have extent 1.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"axes", std::vector<int64_t>{},
                 "dimensions to remove; negative: counted from the end; empty: all"}},
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_squeeze,
      .grad = GradFn([](const GradCtx& c) { return Values{reshape(c.dout(0), c.in(0).shape())}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{.bytes = 0}; },
      .in_place = {{0, 0}},
      .lower = Alias{},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
