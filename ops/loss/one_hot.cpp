#include "ops/op_def.h"

namespace fluid {

OpDef one_hot_op() {
  return OpDef{
      .name = "one_hot",
      .doc =
          "One-hot encoding of class indices: 1 at the index, 0 elsewhere. A label out of range "
          "gives a row of zeros.",
      .inputs = {{"label", "integer tensor"}},
      .attrs =
          {{"to", Type{},
            "type of the result, whose shape is label's shape followed by the number of classes",
            true}},
      .outputs = {{"y", "of type `to`"}},
      .infer =
          [](const InferCtx& c) {
            const Type& to = c.attr<Type>("to");
            Shape rows = to.shape;
            c.require(is_float(to.dtype) && !rows.empty() && !rows.back().batch,
                      "attribute 'to' must be a float type [..., C], not " + to.str());
            rows.pop_back();
            c.require(is_integer(c.in(0).dtype) && c.in(0).shape == rows,
                      "expects integer labels " + rows.str() + " for " + to.str() + ", got " +
                          c.in(0).str());
            return std::vector{to};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_out()}; },
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        std::vector<Expr> row = c.out_vars();
        const Expr column = row.back();
        row.pop_back();
        const Expr hit = scalar::compare(ScalarOp::eq, scalar::cast(c.read(0, row), i64), column);
        const DType dtype = compute_dtype(c.out_type().dtype);
        return std::vector{scalar::select(hit, Expr::constant(dtype, 1), Expr::constant(dtype, 0))};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
