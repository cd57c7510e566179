#pragma once

// An optimizer is an op (param, grad, lr, update, state..., tensor..., scalar...) -> (new param,
// new state...). `lr` is a float scalar; `update` is an i64 scalar, the number of previous updates.
// Operands 4 and up are optimizer states: variables of the parameter's type, initially 0, named
// after their ports. Tensors are computed from the whole parameter, such as an orthogonalized
// gradient. The last operands are float scalars, such as norms.
//
// To add an optimizer, write one file that returns optimizer_def(...). The C++ struct for
// minimize() and the options of `fluidrun train` follow from the definition.

#include <limits>

#include "ops/op_def.h"

namespace fluid {

/// A setting of an optimizer, which is an attribute of its op. A number must lie in [low, high).
struct OptimizerSetting {
  std::string name;
  Attr fallback;  ///< default value: a double, an int, a bool or a string
  std::string doc;
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  ///< allowed values of a string setting
};

/// Setting `weight_decay`: an L2 penalty.
OptimizerSetting l2_weight_decay(double fallback = 0);
/// Setting `weight_decay`: weight decay as in AdamW.
OptimizerSetting decoupled_weight_decay(double fallback);

struct OptimizerDef;

/// Argument of OptimizerDef::update. Expressions are in the compute dtype of the parameter.
class OptimizerCtx {
 public:
  OptimizerCtx(const LowerCtx& op, const OptimizerDef& optimizer)
      : op_(op), optimizer_(optimizer) {}
  DType dtype() const { return compute_dtype(op_.in_type(0).dtype); }
  Expr param() const { return op_.in(0); }
  Expr grad() const { return op_.in(1); }
  /// grad + weight_decay * param.
  Expr l2_grad() const;
  Expr lr() const { return scalar::cast(op_.in(2), dtype()); }
  /// param * (1 - lr * weight_decay).
  Expr decayed_param() const;
  /// Number of this update, counted from 1, as a value of dtype `type`.
  Expr update(DType type) const { return scalar::cast(op_.in(3) + 1.0, type); }
  /// State `name`. Throws InternalError if the settings disable it.
  Expr state(std::string_view name) const;
  /// Whether this is the first update, as a bool expression.
  Expr is_first_update() const;
  /// Tensor `i` of OptimizerDef::tensors.
  Expr tensor(size_t i) const;
  /// Scalar `i` of OptimizerDef::scalars.
  Expr scalar_operand(size_t i) const;
  double number(std::string_view name) const { return op_.attr<double>(name); }
  bool flag(std::string_view name) const { return op_.attr<bool>(name); }

 private:
  const LowerCtx& op_;
  const OptimizerDef& optimizer_;
};

/// Definition of an optimizer.
struct OptimizerDef {
  std::string type;  ///< name of the C++ struct; the op has the same name in lower case
  std::string doc;
  double lr = 0;  ///< default learning rate
  std::vector<OptimizerSetting> settings;
  std::vector<OptimizerState> states = {};
  std::vector<OptimizerScalar> scalars = {};
  std::vector<OptimizerTensor> tensors = {};
  /// Name of the optimizer for parameters that are not matrices; empty: this optimizer.
  /// Setting `<name>_s` of this optimizer is the value of setting `s` of optimizer `<name>`.
  /// Without `<name>_s`, both optimizers share `s`. Setting `<name>_lr_scale` scales the learning
  /// rate of optimizer `<name>`.
  std::string non_matrix_optimizer = {};
  double flops = 0;  ///< floating-point operations for one element
  /// Additional checks of the settings, besides their ranges; may be null.
  std::function<void(const InferCtx&)> check = nullptr;
  /// Returns the new parameter, then the new value of each state that the settings enable.
  std::function<std::vector<Expr>(const OptimizerCtx&)> update;
};
OpDef optimizer_def(OptimizerDef optimizer);
/// OpDef of an op that computes a tensor for OptimizerScalar::norm_of. The op has the attributes
/// and operands of `optimizer`, except the scalar operands. `value` returns an element of the
/// tensor.
OpDef optimizer_value_def(const OptimizerDef& optimizer, std::string name, std::string doc,
                          std::function<Expr(const OptimizerCtx&)> value);

/// Whether `def` defines an optimizer.
bool is_optimizer(const OpDef& def);
/// Returns the definition of optimizer `name`, or null for an unknown name.
const OpDef* find_optimizer(std::string_view name);
/// Returns the names of all optimizers.
std::vector<std::string> optimizer_names();

/// Returns the names of the states that an optimizer has with `settings`, its complete attributes.
std::vector<std::string> optimizer_states(const OpDef& optimizer, const Attrs& settings);

/// Whether an optimizer reads norms of whole parameters.
bool reads_norms(const OpDef& optimizer);
/// Whether an optimizer reads norms or tensors of whole parameters.
bool reads_whole_parameters(const OpDef& optimizer);

/// Throws UserError unless float attribute `name` lies in [low, high). The overload without `high`
/// checks for [low, infinity).
void require_in_range(const InferCtx& c, std::string_view name, double low);
void require_in_range(const InferCtx& c, std::string_view name, double low, double high);

/// Returns the complete settings of OptimizerDef::non_matrix_optimizer, from the settings `given`
/// of `optimizer`.
Attrs non_matrix_settings(const OpDef& optimizer, const Attrs& given);
/// Returns the learning rate scale of OptimizerDef::non_matrix_optimizer.
double non_matrix_lr_scale(const OpDef& optimizer, const Attrs& settings);

/// Returns the attributes of a `train` op that belong to its optimizer op.
Attrs optimizer_settings(const Attrs& train_attrs);

// Expressions that several optimizers share.

/// decay * average + (1 - decay) * x, computed as PyTorch's lerp does.
Expr moving_average(const Expr& average, const Expr& x, double decay);
/// decay * average + (1 - decay) * x^2.
Expr moving_average_of_squares(const Expr& average, const Expr& x, double decay);
/// 1 - decay^t, computed without cancellation.
Expr bias_correction(double decay, const Expr& t);
Expr square_root(const Expr& x);
/// Trust ratio of LARS or LAMB: `ratio` if the norms `a` and `b` are positive, else 1.
Expr ratio_or_1(const Expr& a, const Expr& b, const Expr& ratio);

}  // namespace fluid
