#include "ir/text.h"
#include "ops/elementwise.h"

namespace fluid {
namespace {

std::vector<Type> infer_arange(const InferCtx& c) {
  const Type& type = c.attr<Type>("type");
  c.require(type.shape.rank() == 1 && !type.shape[0].batch && type.dtype != DType::boolean,
            "attribute 'type' must be a numeric type [n], not " + type.str());
  require_finite(c, "start");
  require_finite(c, "step");
  if (is_float(type.dtype)) return {type};
  require_representable(c, "start", type.dtype);
  require_representable(c, "step", DType::i64);
  const auto steps = static_cast<double>(std::max<int64_t>(type.shape[0].size - 1, 0));
  const double last = c.attr<double>("start") + steps * c.attr<double>("step");
  c.require(is_representable(last, type.dtype), "the last element is not representable in " +
                                                    std::string(name_of(type.dtype)) + ": " +
                                                    ir::float_text(last));
  return {type};
}

}  // namespace

OpDef arange_op() {
  return OpDef{
      .name = "arange",
      .doc = "The numbers start, start + step, start + 2 * step, ...",
      .inputs = {},
      .attrs = {{"type", Type{}, "type [n] of the result", true},
                {"start", 0.0, "first element"},
                {"step", 1.0, "difference of consecutive elements"}},
      .outputs = {{"y", "of type `type`"}},
      .infer = infer_arange,
      .grad = GradFn([](const GradCtx&) { return Values{}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(2),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        // Floats are computed in f64, as in PyTorch: f32 cannot represent every index above 2^24.
        const DType dtype = c.out_type().dtype, wide = is_float(dtype) ? DType::f64 : DType::i64;
        const Expr i = scalar::cast(c.out_var(0), wide);
        const Expr y = i * Expr::constant(wide, c.attr<double>("step")) +
                       Expr::constant(wide, c.attr<double>("start"));
        return std::vector{scalar::cast(y, dtype)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
