#include "ir/text.h"
#include "ops/loss/class_loss.h"
#include "ops/loss/loss_reduction.h"
#include "ops/operators.h"

namespace fluid {
namespace {

bool has_soft_labels(const ir::Op& op) { return is_float(op.operands[1].dtype()); }

std::vector<Type> infer_cross_entropy(const InferCtx& c) {
  const Shape rows = require_class_rows(c);
  const Type &x = c.in(0), &target = c.in(1);
  const double smoothing = c.attr<double>("label_smoothing");
  c.require(
      smoothing >= 0 && smoothing <= 1,
      "attribute 'label_smoothing' must lie between 0 and 1, not be " + ir::float_text(smoothing));
  if (target != x) {
    require_class_indices(c, rows, " or probabilities " + x.str());
  } else {
    c.require(c.attr<std::vector<int64_t>>("ignore_index").empty(),
              "ignore_index needs class indices, but the target holds probabilities " + x.str());
  }
  return {reduced_loss_type(c, {x.dtype, rows, {}})};
}

/// Terms of the cross-entropy of the softmax of each row.
class CrossEntropy {
 public:
  template <class Ctx>
  explicit CrossEntropy(const Ctx& c)
      : op_(c.op()), rows_(c), smoothing_(c.template attr<double>("label_smoothing")) {}

  const ClassRows& rows() const { return rows_; }

  /// Returns the loss of each row for a target of class indices: the row's weight times
  /// -log(softmax(x)[label]), with label smoothing.
  Value loss_of_indices() const {
    const Value x = rows_.x();
    const Value largest = max(x, {.axes = axis(), .keep_dims = true});
    const Value total = sum(exp(x - largest), {.axes = axis(), .keep_dims = true});
    const Value own = rows_.gather_label(x);
    Value loss = rows_.squeeze_class_axis(log(total) - (own - largest));
    if (const Value weights = rows_.row_weights()) loss = rows_.zero_ignored_rows(loss * weights);
    if (smoothing_ == 0) return loss;
    const Value uniform = rows_.sum_over_classes(weighted(losses()));
    return (1 - smoothing_) * loss + rows_.zero_ignored_rows(uniform * uniform_share());
  }

  /// Returns the loss of each row for a target of probabilities.
  Value loss_of_probabilities() const {
    return rows_.sum_over_classes(weighted(probabilities() * losses()));
  }

  /// Returns the gradient of x: d * (softmax(x) * sum(k) - k), where k is the factor of
  /// -log(softmax(x)) in the loss. `d` is the gradient of the loss of each row.
  Value dx(Value d) const {
    const Value k = weighted(probabilities());
    Value p = softmax(rows_.x(), {.axis = axis()});
    const bool sums_to_one = !has_soft_labels(op_) && !rows_.has_class_weights();
    if (!sums_to_one) p = p * rows_.unsqueeze_class_axis(rows_.sum_over_classes(k));
    const Value error = p - k;
    return error * of_elements(d);
  }

  /// Returns -log(softmax(x)), the loss of each class.
  Value losses() const { return -log_softmax(rows_.x(), {.axis = axis()}); }

  Value weighted(Value v) const {
    const Value weights = rows_.class_weights();
    return weights ? v * weights : v;
  }

  /// Returns the target probabilities after label smoothing.
  Value probabilities() const {
    const Value given =
        has_soft_labels(op_) ? cast(op_.operands[1], rows_.x().dtype()) : rows_.one_hot_labels();
    return smoothing_ == 0 ? given : (1 - smoothing_) * given + uniform_share();
  }

  /// Reshapes `v` so that `v` broadcasts with x. `v` has one value per row, or is a scalar.
  Value of_elements(Value v) const {
    return rows_.unsqueeze_class_axis(broadcast_to(v, rows_.row_shape()));
  }

  double smoothing() const { return smoothing_; }

 private:
  double uniform_share() const { return smoothing_ / static_cast<double>(rows_.num_classes()); }

  int64_t axis() const { return op_.attrs.get<int64_t>("axis"); }

  const ir::Op& op_;
  ClassRows rows_;
  double smoothing_;
};

Values expand_cross_entropy(const ExpandCtx& c) {
  const CrossEntropy entropy(c);
  if (!has_soft_labels(c.op())) return {entropy.rows().apply_reduction(entropy.loss_of_indices())};
  return {reduced_loss(entropy.loss_of_probabilities(), c.attrs(), c.in(0).dtype())};
}

Values cross_entropy_grad(const GradCtx& c) {
  const CrossEntropy entropy(c);
  const ClassRows& rows = entropy.rows();
  const bool soft = has_soft_labels(c.op());
  const Value d = soft ? gradient_of_unreduced_loss(c.dout(0), rows.row_shape(), c.attrs())
                       : rows.gradient_of_row_losses(c.dout(0));
  Values gradients = {cast(entropy.dx(d), c.in(0).dtype()), {}};
  if (soft) {
    const Value losses = entropy.weighted(entropy.losses()) * entropy.of_elements(d);
    gradients[1] = cast(losses * (1 - entropy.smoothing()), c.in(1).dtype());
  }
  if (!rows.has_class_weights()) return gradients;
  Value dweight = entropy.probabilities() * entropy.losses() * entropy.of_elements(d);
  const Value part = soft ? Value() : rows.gradient_of_divisor(c.dout(0), c.out(0));
  if (part) dweight = dweight + rows.one_hot_labels() * entropy.of_elements(part);
  gradients.push_back(rows.gradient_of_class_weights(dweight));
  return gradients;
}

}  // namespace

OpDef softmax_cross_entropy_op() {
  std::vector<AttrDef> attrs = class_loss_attrs();
  attrs.push_back({"label_smoothing", 0.0,
                   "in [0, 1]: share of the uniform distribution in the target distribution"});
  return OpDef{
      .name = "softmax_cross_entropy",
      .doc =
          "Cross-entropy of softmax(x) and the target, per row: -weight[label] * "
          "log(softmax(x)[label]) for class indices, -sum(weight * target * log(softmax(x))) for "
          "probabilities. It is cross_entropy of PyTorch. A label out of range raises an error. "
          "With class indices and weight or ignore_index, a mean divides by the sum of the weights "
          "of the rows; such a mean does not decompose into micro-batches or ranks.",
      .inputs = {{"x", "float logits, C classes along `axis`"},
                 {"target",
                  "integer class indices of x's shape without C, or probabilities of x's type"},
                 class_weight_port()},
      .attrs = attrs,
      .outputs = {{"loss", "one value per row, or a scalar"}},
      .infer = infer_cross_entropy,
      .grad = GradFn(cross_entropy_grad),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 12 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{expand_cross_entropy},
      .kernels = {},
      .version = 2,  // version 1 had no attributes and no operand `weight`
  };
}

}  // namespace fluid
