#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_flatten(const InferCtx& c) {
  const Shape& shape = c.in(0).shape;
  const int64_t axis = c.attr<int64_t>("axis");
  c.require(axis >= 0 && axis <= shape.rank(),
            "axis " + std::to_string(axis) + " is out of range for " + c.in(0).str());
  Shape flat(shape.begin(), shape.begin() + axis);
  flat.push_back(Shape(shape.begin() + axis, shape.end()).numel());
  return {{c.in(0).dtype, flat}};
}

}  // namespace

OpDef flatten_op() {
  return OpDef{
      .name = "flatten",
      .doc = "Merges the dimensions of x from `axis` on into one.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"axis", int64_t{1}, "first dimension to merge"}},
      .outputs = {{"y", "x's dtype, rank axis + 1"}},
      .infer = infer_flatten,
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
