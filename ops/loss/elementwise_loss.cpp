#include "ops/loss/elementwise_loss.h"

#include "ir/text.h"
#include "ops/loss/loss_reduction.h"
#include "ops/operators.h"

namespace fluid {

void require_equal_float_types(const InferCtx& c) {
  c.require(
      is_float(c.in(0).dtype) && c.in(0) == c.in(1),
      "expects two float tensors of equal type, got " + c.in(0).str() + " and " + c.in(1).str());
}

void require_positive(const InferCtx& c, std::string_view name) {
  const auto value = c.attr<double>(name);
  c.require(value > 0,
            "attribute '" + std::string(name) + "' must be positive, not " + ir::float_text(value));
}

void require_not_negative(const InferCtx& c, std::string_view name) {
  const auto value = c.attr<double>(name);
  c.require(value >= 0, "attribute '" + std::string(name) + "' must not be negative, but is " +
                            ir::float_text(value));
}

Value softplus_of_negative(Value x) { return log1p(exp(-abs(x))) + maximum(-x, scalar_like(x, 0)); }

OpDef elementwise_loss_def(ElementwiseLoss loss) {
  loss.attrs.push_back(reduction_attr());
  const auto wide = [](Value v) { return cast(v, compute_dtype(v.dtype())); };
  return OpDef{
      .name = std::move(loss.name),
      .doc = std::move(loss.doc),
      .inputs = {std::move(loss.x), std::move(loss.target)},
      .attrs = std::move(loss.attrs),
      .outputs = {{"loss", "same type as x, or a scalar"}},
      .infer =
          [check = std::move(loss.check)](const InferCtx& c) {
            require_equal_float_types(c);
            check(c);
            return std::vector{reduced_loss_type(c, c.in(0))};
          },
      .grad = GradFn([wide, derivatives = std::move(loss.derivatives)](const GradCtx& c) {
        const Value d = gradient_of_unreduced_loss(c.dout(0), c.in(0).shape(), c.attrs());
        Values gradients = derivatives(wide(c.in(0)), wide(c.in(1)), c.attrs());
        for (Value& g : gradients) g = cast(g * d, c.in(0).dtype());
        return gradients;
      }),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [flops =
                   loss.flops](const CostCtx& c) { return Cost{.flops = flops * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[wide, elements = std::move(loss.loss)](const ExpandCtx& c) {
        const Value loss = elements(wide(c.in(0)), wide(c.in(1)), c.attrs());
        return Values{reduced_loss(loss, c.attrs(), c.in(0).dtype())};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
