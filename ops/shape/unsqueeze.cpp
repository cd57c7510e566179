#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_unsqueeze(const InferCtx& c) {
  const auto& axes = c.attr<std::vector<int64_t>>("axes");
  const int64_t rank = c.in(0).shape.rank() + static_cast<int64_t>(axes.size());
  std::vector<bool> added(static_cast<size_t>(rank));
  for (const int64_t axis : axes) {
    c.require(axis >= -rank && axis < rank, "axis " + std::to_string(axis) +
                                                " is out of range for a result of rank " +
                                                std::to_string(rank));
    const auto d = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    c.require(!added[d], "axis " + std::to_string(axis) + " is given twice");
    added[d] = true;
  }
  Type type{c.in(0).dtype, {}, {}};
  auto next = c.in(0).shape.begin();
  for (const bool is_new : added) type.shape.push_back(is_new ? Dim(1) : *next++);
  return {type};
}

}  // namespace

OpDef unsqueeze_op() {
  return OpDef{
      .name = "unsqueeze",
      .doc = "Inserts dimensions of extent 1.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"axes", std::vector<int64_t>{},
                 "indices of the new dimensions in the result; negative: counted from the end",
                 true}},
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_unsqueeze,
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
