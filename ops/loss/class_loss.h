#pragma once

#include "ops/operators.h"

namespace fluid {

// Losses of rows of class scores against one class index per row: nll_loss, softmax_cross_entropy.
// Attribute `axis` is the axis of the classes. The weight of a row is the weight of its class: 1
// without class weights, 0 where the label is `ignore_index`. Operand 2 holds the class weights.

/// Attributes `axis`, `ignore_index` and `reduction`.
std::vector<AttrDef> class_loss_attrs();
/// The operand of class weights.
PortDef class_weight_port();

/// Returns the shape of the rows: the shape of operand 0 without the classes. Throws UserError
/// unless operand 0 is a float tensor with 1 or more classes along attribute `axis`, and the class
/// weights, if given, are [C] and have its dtype.
Shape require_class_rows(const InferCtx& c);
/// Throws UserError unless operand 1 holds one integer class index for each of `rows`. `also` names
/// other operands that the op accepts.
void require_class_indices(const InferCtx& c, const Shape& rows, const std::string& also = "");

/// The rows of a loss, in the compute dtype.
class ClassRows {
 public:
  ClassRows(const ExpandCtx& c) : ClassRows(c.op()) {}  // NOLINT: implicit conversion
  ClassRows(const GradCtx& c) : ClassRows(c.op()) {}    // NOLINT: implicit conversion

  const Value& x() const { return x_; }
  const Shape& rows() const { return rows_; }
  int64_t classes() const { return x_.shape()[static_cast<size_t>(axis_)].size; }
  bool weighted() const { return op_.operands.size() > 2; }
  /// Whether a mean divides by the sum of the weights of the rows, not by their number.
  bool divides_by_weights() const { return weighted() || ignores(); }

  /// Reshapes `v`, which has one value per row, so that it broadcasts with x.
  Value per_row(Value v) const;
  /// Returns the sum of `v`, of x's shape, over the classes: one value per row.
  Value class_sum(Value v) const;
  /// The class weights, in a shape that broadcasts with x; null if not given.
  Value class_weights() const;
  /// Gradient of the class weights, from the gradients of the weights in each element of x.
  Value gradient_of_weights(Value elements) const;

  /// Returns the element of `v`, of x's shape, at the label of each row, with extent 1 along the
  /// classes. A label out of range raises an error, except `ignore_index`.
  Value at_label(Value v) const;
  /// Reshapes `v`, which has extent 1 along the classes, to one value per row.
  Value without_classes(Value v) const { return reshape(v, rows_); }
  /// Returns 1 at the label of each row and 0 elsewhere, in x's shape.
  Value one_hot_labels() const;
  /// Returns the weight of each row; null if all are 1.
  Value row_weights() const;
  /// Returns `v`, one value per row, with 0 for the rows that `ignore_index` excludes.
  Value counted(Value v) const;

  /// Applies attribute `reduction` to the loss of each row, which includes its weight.
  Value reduced(Value loss) const;
  /// Gradient of the rows' losses, for gradient `dloss` of the reduced loss: one value per row, or
  /// a scalar. Excluded rows get 0.
  Value gradient_of_rows(Value dloss) const;
  /// Part of the gradient of the weight of each row that comes from the divisor of a weighted mean
  /// `loss`; null if there is none.
  Value gradient_of_divisor(Value dloss, Value loss) const;

 private:
  explicit ClassRows(const ir::Op& op);
  bool ignores() const { return !ignored_.empty(); }
  Value label() const { return op_.operands[1]; }
  Value is_ignored() const;
  Value total_weight() const;

  const ir::Op& op_;
  Value x_;
  int64_t axis_;
  Shape rows_;
  std::vector<int64_t> ignored_;  ///< attribute `ignore_index`: one label, or empty
};

}  // namespace fluid
