#include "ops/loss/class_loss.h"
#include "ops/loss/loss_reduction.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_nll_loss(const InferCtx& c) {
  const Shape rows = require_class_rows(c);
  require_class_indices(c, rows);
  return {reduced_loss_type(c, {c.in(0).dtype, rows, {}})};
}

Values expand_nll_loss(const ExpandCtx& c) {
  const ClassRows rows = c;
  const Value loss = -rows.squeeze_class_axis(rows.gather_label(rows.x()));
  const Value weights = rows.row_weights();
  return {rows.apply_reduction(weights ? rows.zero_ignored_rows(loss * weights) : loss)};
}

Values nll_loss_grad(const GradCtx& c) {
  const ClassRows rows = c;
  const Value d = rows.gradient_of_row_losses(c.dout(0));
  const Value hot = rows.one_hot_labels();
  const auto of_elements = [&](Value of_rows) {
    return rows.unsqueeze_class_axis(broadcast_to(of_rows, rows.row_shape()));
  };
  const Value weight = rows.class_weights();
  const Value dx = -(weight ? hot * weight : hot) * of_elements(d);
  Values gradients = {cast(dx, c.in(0).dtype()), {}};
  if (!weight) return gradients;
  Value per_row = -(d * rows.squeeze_class_axis(rows.gather_label(rows.x())));
  if (const Value part = rows.gradient_of_divisor(c.dout(0), c.out(0))) per_row = per_row + part;
  gradients.push_back(rows.gradient_of_class_weights(hot * of_elements(per_row)));
  return gradients;
}

}  // namespace

OpDef nll_loss_op() {
  return OpDef{
      .name = "nll_loss",
      .doc =
          "Negative log-likelihood -weight[label] * x[label] of each row of log-probabilities x. A "
          "label out of range raises an error. With weight or ignore_index, a mean divides by the "
          "sum of the weights of the rows; such a mean does not decompose into micro-batches or "
          "ranks.",
      .inputs = {{"x", "float log-probabilities, C classes along `axis`"},
                 {"label", "integer class indices, x's shape without C"},
                 class_weight_port()},
      .attrs = class_loss_attrs(),
      .outputs = {{"loss", "one value per row, or a scalar"}},
      .infer = infer_nll_loss,
      .grad = GradFn(nll_loss_grad),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(1)}; },
      .in_place = {},
      .lower = Expand{expand_nll_loss},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
