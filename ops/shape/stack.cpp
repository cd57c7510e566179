#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

int64_t new_axis(const Attrs& attrs, const Shape& operand) {
  const int64_t axis = attrs.get<int64_t>("axis");
  return axis < 0 ? axis + operand.rank() + 1 : axis;
}

std::vector<Type> infer_stack(const InferCtx& c) {
  Type type = c.in(0);
  for (const Type& t : c.ins()) {
    c.require(t == type, "operands " + type.str() + " and " + t.str() + " differ");
  }
  const int64_t given = c.attr<int64_t>("axis"), axis = new_axis(c.attrs(), type.shape);
  c.require(axis >= 0 && axis <= type.shape.rank(), "axis " + std::to_string(given) +
                                                        " is out of range for a result of rank " +
                                                        std::to_string(type.shape.rank() + 1));
  type.shape.insert(type.shape.begin() + axis, Dim(static_cast<int64_t>(c.arity())));
  return {type};
}

Values stack_grad(const GradCtx& c) {
  const Shape& shape = c.in(0).shape();
  const int64_t axis = new_axis(c.attrs(), shape);
  Values grads;
  for (int64_t i = 0; i < static_cast<int64_t>(c.arity()); ++i) {
    const Value layer = slice(c.dout(0), {.starts = i, .stops = i + 1, .axes = axis});
    grads.push_back(reshape(layer, shape));
  }
  return grads;
}

}  // namespace

OpDef stack_op() {
  return OpDef{
      .name = "stack",
      .doc = "Joins the operands along a new dimension `axis`.",
      .inputs = {{"xs", "tensors of one type", true}},
      .attrs = {{"axis", int64_t{0},
                 "index of the new dimension in the result; negative: counted from the end"}},
      .outputs = {{"y", "dtype of the operands, their rank + 1"}},
      .infer = infer_stack,
      .grad = GradFn(stack_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        const int64_t axis = new_axis(c.attrs(), c.in(0).shape());
        Shape layer = c.in(0).shape();
        layer.insert(layer.begin() + axis, Dim(1));
        Values layers;
        for (size_t i = 0; i < c.arity(); ++i) layers.push_back(reshape(c.in(i), layer));
        return Values{concat(layers, {.axis = axis})};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
