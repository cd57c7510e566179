#include "ops/loss/class_loss.h"

#include "ops/elementwise.h"
#include "ops/loss/loss_reduction.h"
#include "ops/nn/axis.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

/// Moves the last axis of `v` to position `axis`.
Value with_last_axis_at(Value v, int64_t axis) {
  const int64_t last = v.shape().rank() - 1;
  if (axis == last) return v;
  Ints perm;
  for (int64_t d = 0; d < last; ++d) perm.push_back(d);
  perm.insert(perm.begin() + axis, last);
  return transpose(v, {.perm = perm});
}

Value in_compute_dtype(Value v) { return cast(v, compute_dtype(v.dtype())); }

}  // namespace

std::vector<AttrDef> class_loss_attrs() {
  return {{"axis", int64_t{-1}, "axis of the classes; negative: counted from the end"},
          {"ignore_index", std::vector<int64_t>{},
           "label of rows whose loss and weight are 0; empty: none"},
          reduction_attr()};
}

PortDef class_weight_port() {
  return {.name = "weight", .doc = "weight of each class [C], x's dtype", .optional = true};
}

Shape require_class_rows(const InferCtx& c) {
  const Type& x = c.in(0);
  infer_along_axis(c);
  const int64_t axis = axis_of(c.attrs(), x.shape.rank());
  const Dim& classes = x.shape[static_cast<size_t>(axis)];
  c.require(!classes.batch, "axis " + std::to_string(c.attr<int64_t>("axis")) +
                                " of the classes is the batch dimension of " + x.str());
  c.require(classes.size != 0, "rows of zero classes: " + x.str());
  const Type weight{x.dtype, {classes}, {}};
  c.require(!c.has(2) || c.in(2) == weight, "weight must be " + weight.str() +
                                                ", one number per class" +
                                                (c.has(2) ? ", got " + c.in(2).str() : ""));
  c.require(c.attr<std::vector<int64_t>>("ignore_index").size() <= 1,
            "ignore_index must be one label or empty, not " + c.attr_text("ignore_index"));
  return reduced_shape(x.shape, axis, false);
}

void require_class_indices(const InferCtx& c, const Shape& rows, const std::string& alternatives) {
  const Type &x = c.in(0), &label = c.in(1);
  c.require(is_integer(label.dtype) && label.shape == rows, "expects integer labels " + rows.str() +
                                                                alternatives + " for rows " +
                                                                x.str() + ", got " + label.str());
  const auto& ignored = c.attr<std::vector<int64_t>>("ignore_index");
  if (ignored.empty()) return;
  // The label is compared with a constant, and constants are f64.
  const auto constant = static_cast<double>(ignored[0]);
  c.require(is_representable(constant, label.dtype) && static_cast<int64_t>(constant) == ignored[0],
            "ignore_index must be representable in the labels' dtype " +
                std::string(name_of(label.dtype)) + " and in f64, not be " +
                std::to_string(ignored[0]));
}

ClassRows::ClassRows(const ir::Op& op)
    : op_(op),
      x_(in_compute_dtype(op.operands[0])),
      axis_(axis_of(op.attrs, x_.shape().rank())),
      rows_(reduced_shape(x_.shape(), axis_, false)),
      ignored_(op.attrs.get<std::vector<int64_t>>("ignore_index")) {}

Value ClassRows::unsqueeze_class_axis(Value v) const {
  return reshape(v, reduced_shape(x_.shape(), axis_, true));
}

Value ClassRows::sum_over_classes(Value v) const { return sum(v, {.axes = axis_}); }

Value ClassRows::class_weights() const {
  if (!has_class_weights()) return {};
  Shape shape(static_cast<size_t>(x_.shape().rank() - axis_), Dim(1));
  shape[0] = num_classes();
  return reshape(in_compute_dtype(op_.operands[2]), shape);
}

Value ClassRows::gradient_of_class_weights(Value elements) const {
  const Value given = op_.operands[2];
  const Value full = broadcast_to(elements, x_.shape());
  const Value total = sum_to(full, class_weights().shape());
  return cast(reshape(total, given.shape()), given.dtype());
}

Value ClassRows::is_ignored() const {
  return equal(label(), scalar_like(label(), static_cast<double>(ignored_[0])));
}

Value ClassRows::gather_label(Value v) const {
  const Value in_range =
      has_ignore_index() ? where(is_ignored(), scalar_like(label(), 0), label()) : label();
  return take_along_axis(v, unsqueeze_class_axis(in_range),
                         {.axis = op_.attrs.get<int64_t>("axis")});
}

Value ClassRows::one_hot_labels() const {
  Shape shape = rows_;
  shape.push_back(num_classes());
  const Value hot = one_hot(label(), {.to = Type{x_.dtype(), shape, {}}});
  return with_last_axis_at(hot, axis_);
}

Value ClassRows::row_weights() const {
  if (has_class_weights()) {
    return zero_ignored_rows(
        squeeze_class_axis(gather_label(broadcast_to(class_weights(), x_.shape()))));
  }
  if (!has_ignore_index()) return {};
  return where(is_ignored(), scalar_like(x_, 0), scalar_like(x_, 1));
}

Value ClassRows::zero_ignored_rows(Value v) const {
  return has_ignore_index() ? where(is_ignored(), scalar_like(v, 0), v) : v;
}

Value ClassRows::total_weight() const { return sum(row_weights()); }

Value ClassRows::apply_reduction(Value loss) const {
  const DType dtype = op_.operands[0].dtype();
  const bool mean = op_.attrs.get<std::string>("reduction") == "mean";
  if (mean && divides_by_weights()) return cast(sum(loss) / total_weight(), dtype);
  return reduced_loss(loss, op_.attrs, dtype);
}

Value ClassRows::gradient_of_row_losses(Value dloss) const {
  const bool mean = op_.attrs.get<std::string>("reduction") == "mean";
  if (mean && divides_by_weights())
    return zero_ignored_rows(in_compute_dtype(dloss) / total_weight());
  return zero_ignored_rows(gradient_of_unreduced_loss(dloss, rows_, op_.attrs));
}

Value ClassRows::gradient_of_divisor(Value dloss, Value loss) const {
  const bool mean = op_.attrs.get<std::string>("reduction") == "mean";
  if (!mean) return {};
  return zero_ignored_rows(-(in_compute_dtype(dloss) * in_compute_dtype(loss) / total_weight()));
}

}  // namespace fluid
