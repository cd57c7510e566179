#include "ops/loss/label.h"
#include "ops/operators.h"

namespace fluid {

OpDef take_along_axis_op() {
  return OpDef{
      .name = "take_along_axis",
      .doc =
          "Gathers one element per row at the index `label`. A label out of range raises an error; "
          "the read is clamped to the nearest class.",
      .inputs = {{"x", "float [..., C]"}, {"label", "integer, x's shape without C"}},
      .attrs = {},
      .outputs = {{"y", "label's shape"}},
      .infer =
          [](const InferCtx& c) {
            require_labels(c);
            return std::vector{Type{c.in(0).dtype, c.in(1).shape, {}}};
          },
      .grad = GradFn([](const GradCtx& c) {
        return Values{one_hot(c.in(1), {.to = c.in(0).type()}) * unsqueeze_last(c.dout(0)), {}};
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const double touched = c.numel_out() * static_cast<double>(size_of(c.out[0].dtype)) * 2;
            return Cost{.bytes =
                            touched + c.numel_in(1) * static_cast<double>(size_of(c.in[1].dtype))};
          },
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        std::vector<Expr> at = c.out_vars();
        at.push_back(scalar::cast(c.in(1), i64));
        return std::vector{c.read_checked(0, at)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
