#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Definition of an elementwise loss of x and target, which have the same float type.
struct ElementwiseLoss {
  std::string name;
  std::string doc;
  PortDef x = {"x", "float tensor"};
  PortDef target = {"target", "same type as x"};
  std::vector<AttrDef> attrs = {};  ///< attributes besides `reduction`
  /// Throws UserError for invalid attributes.
  std::function<void(const InferCtx&)> check = [](const InferCtx&) {};
  /// Returns the loss of each element. x and target are f32 or wider.
  std::function<Value(Value x, Value target, const Attrs&)> loss;
  /// Returns the derivatives of the loss with respect to x and to target.
  std::function<Values(Value x, Value target, const Attrs&)> derivatives;
  double flops = 1;  ///< floating-point operations per element
};

/// OpDef of an elementwise loss with attribute `reduction`.
OpDef elementwise_loss_def(ElementwiseLoss loss);

/// Throws UserError unless operands 0 and 1 are float tensors of the same type.
void require_equal_float_types(const InferCtx& c);
/// Throws UserError unless float attribute `name` is > 0 (require_positive) or >= 0
/// (require_not_negative).
void require_positive(const InferCtx& c, std::string_view name);
void require_not_negative(const InferCtx& c, std::string_view name);

/// Returns log(1 + exp(-x)), computed without overflow: the cross-entropy of sigmoid(x) and the
/// target 1.
Value softplus_of_negative(Value x);

}  // namespace fluid
