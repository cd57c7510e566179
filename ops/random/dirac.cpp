#include "ops/random/draw.h"

namespace fluid {
namespace {

void check_dirac(const InferCtx& c) {
  const Type& type = c.attr<Type>("type");
  const int64_t groups = c.attr<int64_t>("groups");
  c.require(is_float(type.dtype) && type.shape.rank() >= 3 && type.shape.is_constant(),
            "needs a convolution filter [out, in, taps...], not " + type.str());
  c.require(groups > 0 && type.shape[0].size % groups == 0,
            "attribute 'groups' must divide the " + type.shape[0].str() +
                " output channels, not be " + std::to_string(groups));
}

Expr equals(const Expr& a, const Expr& b) { return scalar::compare(ScalarOp::eq, a, b); }

}  // namespace

OpDef dirac_op() {
  return OpDef{
      .name = "dirac",
      .doc =
          "A convolution filter [out, in, taps...] that keeps its input, like "
          "torch.nn.init.dirac_: 1 at the central tap of output channel d and input channel d of "
          "each group, else 0.",
      .inputs = {},
      .attrs = {{"type", Type{}, "type of the result", true},
                {"groups", int64_t{1}, "number of groups of output channels"}},
      .outputs = {{"y", "of type `type`"}},
      .infer =
          [](const InferCtx& c) {
            check_dirac(c);
            return std::vector{c.attr<Type>("type")};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = 2 * c.numel_out()}; },
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        const Shape& shape = c.out_type().shape;
        const int64_t channels = shape[0].size / c.attr<int64_t>("groups");
        const Expr channel = scalar::mod(c.out_var(0), Expr::index(channels));
        Expr is_one = equals(channel, c.out_var(1));
        for (size_t d = 2; d < shape.size(); ++d) {
          const Expr center = Expr::index(shape[d].size / 2);
          is_one = scalar::logical_and(is_one, equals(c.out_var(d), center));
        }
        const DType dtype = compute_dtype(c.out_type().dtype);
        return std::vector{
            scalar::select(is_one, Expr::constant(dtype, 1), Expr::constant(dtype, 0))};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
