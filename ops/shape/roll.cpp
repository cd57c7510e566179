#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

/// Returns the shift along each dimension, in [0, extent). Shifts along one axis add up.
Ints shifts_of(const Attrs& attrs, const Shape& shape) {
  const auto& shifts = attrs.get<std::vector<int64_t>>("shifts");
  const auto& axes = attrs.get<std::vector<int64_t>>("axes");
  Ints total(shape.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(axes[i] < 0 ? axes[i] + shape.rank() : axes[i]);
    const int64_t extent = std::max<int64_t>(shape[d].size, 1);
    total[d] = ((total[d] + shifts[i] % extent) % extent + extent) % extent;
  }
  return total;
}

std::vector<Type> infer_roll(const InferCtx& c) {
  const Type& x = c.in(0);
  const auto& axes = c.attr<std::vector<int64_t>>("axes");
  c.require(c.attr<std::vector<int64_t>>("shifts").size() == axes.size(),
            "shifts and axes must be of one length, not " + c.attr_text("shifts") + " and " +
                c.attr_text("axes"));
  for (const int64_t axis : axes) {
    const auto d = static_cast<size_t>(normalized_axis(c, axis, x.shape.size()));
    c.require(!x.shape[d].batch, "the batch dimension of " + x.str() + " cannot be rolled");
  }
  return {x};
}

Values roll_grad(const GradCtx& c) {
  const Shape& shape = c.in(0).shape();
  const Ints shifts = shifts_of(c.attrs(), shape);
  Ints back, axes;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shifts[d] == 0) continue;
    back.push_back(-shifts[d]);
    axes.push_back(static_cast<int64_t>(d));
  }
  return {roll(c.dout(0), {.shifts = back, .axes = axes})};
}

}  // namespace

OpDef roll_op() {
  return OpDef{
      .name = "roll",
      .doc =
          "Moves the elements by `shifts` places along `axes`. Elements that leave at the end "
          "enter at the beginning.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {{"shifts", std::vector<int64_t>{}, "number of places per axis, of either sign",
                 true},
                {"axes", std::vector<int64_t>{},
                 "axes, not the batch dimension; negative: counted from the end", true}},
      .outputs = {{"y", "like x"}},
      .infer = infer_roll,
      .grad = GradFn(roll_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        const Shape& shape = c.in_type(0).shape;
        const Ints shifts = shifts_of(c.attrs(), shape);
        std::vector<Expr> index = c.out_vars();
        for (size_t d = 0; d < index.size(); ++d) {
          if (shifts[d] == 0) continue;
          const Expr extent = c.extent(shape[d]);
          index[d] = scalar::mod(index[d] + Expr::index(shape[d].size - shifts[d]), extent);
        }
        return std::vector{c.read(0, index)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
