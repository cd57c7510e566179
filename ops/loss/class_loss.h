#pragma once

#include "ops/operators.h"

namespace fluid {

// Losses of class scores, with one class index per row: nll_loss, softmax_cross_entropy.
// Attribute `axis` is the class axis. Operand 2 holds the optional class weights. The weight of a
// row is the weight of its class, or 1 without class weights. Rows whose label is `ignore_index`
// have weight 0.

/// Definitions of attributes `axis`, `ignore_index` and `reduction`.
std::vector<AttrDef> class_loss_attrs();
/// Definition of the operand that holds the class weights.
PortDef class_weight_port();

/// Returns the shape of the rows: the shape of operand 0 without the class axis. Throws UserError
/// unless operand 0 is a float tensor with 1 or more classes along attribute `axis`. Also throws
/// UserError unless the class weights, if present, have shape [C] and operand 0's dtype.
Shape require_class_rows(const InferCtx& c);
/// Throws UserError unless operand 1 holds integer class indices and has shape `rows`, which is one
/// element per row. The error message contains `alternatives`, the other types that operand 1 may
/// have.
void require_class_indices(const InferCtx& c, const Shape& rows,
                           const std::string& alternatives = "");

/// The rows of class scores of a loss op, in the compute dtype.
class ClassRows {
 public:
  ClassRows(const ExpandCtx& c) : ClassRows(c.op()) {}  // NOLINT: implicit conversion
  ClassRows(const GradCtx& c) : ClassRows(c.op()) {}    // NOLINT: implicit conversion

  const Value& x() const { return x_; }
  const Shape& row_shape() const { return rows_; }
  int64_t num_classes() const { return x_.shape()[static_cast<size_t>(axis_)].size; }
  bool has_class_weights() const { return op_.operands.size() > 2; }
  /// Whether reduction "mean" divides by the sum of the row weights instead of the number of rows.
  bool divides_by_weights() const { return has_class_weights() || has_ignore_index(); }

  /// Reshapes `v` so that `v` broadcasts with x. `v` has one value per row.
  Value unsqueeze_class_axis(Value v) const;
  /// Returns the sum of `v` over the classes: one value per row. `v` has x's shape.
  Value sum_over_classes(Value v) const;
  /// Returns the class weights in a shape that broadcasts with x; null without class weights.
  Value class_weights() const;
  /// Returns the gradient of the class weights: the sum of `elements` over the rows. `elements`
  /// broadcasts to x's shape.
  Value gradient_of_class_weights(Value elements) const;

  /// Returns the element of `v` at the label of each row. `v` has x's shape; the result has extent
  /// 1 along the class axis. A label that is out of range and not `ignore_index` is an error.
  Value gather_label(Value v) const;
  /// Removes the class axis, of extent 1, from `v`. The result has one value per row.
  Value squeeze_class_axis(Value v) const { return reshape(v, rows_); }
  /// Returns the one-hot encoding of the labels, in x's shape.
  Value one_hot_labels() const;
  /// Returns the weight of each row; null if all weights are 1.
  Value row_weights() const;
  /// Sets the rows of `v` whose label is `ignore_index` to 0. `v` has one value per row.
  Value zero_ignored_rows(Value v) const;

  /// Applies attribute `reduction` to `loss`, the weighted loss of each row.
  Value apply_reduction(Value loss) const;
  /// Returns the gradient of the loss of each row, given the gradient `dloss` of the reduced loss.
  /// The result is one value per row, or a scalar. Rows whose label is `ignore_index` get 0.
  Value gradient_of_row_losses(Value dloss) const;
  /// A weighted mean divides by the sum of the row weights. Returns the gradient of the row weights
  /// through this divisor. Null if attribute `reduction` is not "mean". `loss` is the reduced loss,
  /// and `dloss` its gradient.
  Value gradient_of_divisor(Value dloss, Value loss) const;

 private:
  explicit ClassRows(const ir::Op& op);
  bool has_ignore_index() const { return !ignored_.empty(); }
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
