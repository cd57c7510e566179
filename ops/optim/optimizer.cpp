#include "ops/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "ir/text.h"

namespace fluid {

bool is_optimizer(const OpDef& def) {
  const std::vector<PortDef> first = optimizer_inputs();
  return std::holds_alternative<Updates>(*def.effects) &&
         std::ranges::equal(first, std::views::take(*def.inputs, first.size()), {}, &PortDef::name,
                            &PortDef::name);
}

std::vector<PortDef> optimizer_inputs(const std::vector<PortDef>& states) {
  std::vector<PortDef> ports = {{"param", "float tensor"},
                                {"grad", "same type as param"},
                                {"lr", "float scalar: learning rate"},
                                {"update", "i64 scalar: number of completed updates"}};
  ports.insert(ports.end(), states.begin(), states.end());
  return ports;
}

std::vector<Type> infer_optimizer(const InferCtx& c) {
  const Type& param = c.in(0);
  c.require(is_float(param.dtype), "expects a float parameter, got " + param.str());
  for (size_t i = 1; i < c.arity(); ++i) {
    if (i == 2 || i == 3) continue;
    c.require(c.in(i) == param, "operand " + std::to_string(i) +
                                    " must be of the parameter's type " + param.str() + ", got " +
                                    c.in(i).str());
  }
  c.require(is_float(c.in(2).dtype) && c.in(2).shape.empty(),
            "the learning rate must be a float scalar, got " + c.in(2).str());
  c.require(c.in(3) == Type{i64, {}, {}},
            "the update counter must be an i64 scalar, got " + c.in(3).str());
  return std::vector<Type>(c.arity() - 3, param);
}

void require_in_range(const InferCtx& c, std::string_view name, double low) {
  const double value = c.attr<double>(name);
  c.require(std::isfinite(value) && value >= low,
            "attribute '" + std::string(name) + "' must be a number of " + ir::float_text(low) +
                " or more, not " + ir::float_text(value));
}

void require_in_range(const InferCtx& c, std::string_view name, double low, double high) {
  const double value = c.attr<double>(name);
  c.require(value >= low && value < high, "attribute '" + std::string(name) + "' must lie in [" +
                                              ir::float_text(low) + ", " + ir::float_text(high) +
                                              "), not be " + ir::float_text(value));
}

OptimizerOperands optimizer_operands(const LowerCtx& c, bool l2_decay) {
  const DType dtype = compute_dtype(c.in_type(0).dtype);
  const double weight_decay = l2_decay ? c.attr<double>("weight_decay") : 0;
  const Expr param = c.in(0);
  const Expr grad = weight_decay == 0 ? c.in(1) : c.in(1) + param * weight_decay;
  return {param, grad, scalar::cast(c.in(2), dtype)};
}

}  // namespace fluid
