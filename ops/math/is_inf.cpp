#include <limits>

#include "ops/elementwise.h"

namespace fluid {

OpDef is_inf_op() {
  return OpDef{
      .name = "is_inf",
      .doc = "Whether x is infinite.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {{"detect_positive", true, "whether infinity counts"},
                {"detect_negative", true, "whether minus infinity counts"}},
      .outputs = {{"y", "bool, same shape as x"}},
      .infer = infer_float_predicate,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        const Expr x = c.in(0);
        const auto equals = [&](double value) {
          return scalar::compare(ScalarOp::eq, x, Expr::constant(x.dtype(), value));
        };
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        Expr found = Expr::constant(DType::boolean, 0);
        if (c.attr<bool>("detect_positive")) found = equals(kInfinity);
        if (c.attr<bool>("detect_negative")) found = scalar::logical_or(found, equals(-kInfinity));
        return std::vector{found};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
