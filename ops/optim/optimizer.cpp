#include "ops/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ir/text.h"
#include "ops/table.h"

namespace fluid {
namespace {

// Index of the first state operand.
constexpr size_t kFirstState = 4;

/// Whether an optimizer has `state` with the given settings.
bool has_state(const OptimizerState& state, const Attrs& settings) {
  if (state.setting.empty()) return true;
  const Attr& value = *settings.find(state.setting);
  const auto* flag = std::get_if<bool>(&value);
  return flag != nullptr ? *flag : std::get<double>(value) != 0;
}

size_t count_states(const std::vector<OptimizerState>& states, const Attrs& settings) {
  return static_cast<size_t>(
      std::ranges::count_if(states, [&](const auto& s) { return has_state(s, settings); }));
}

std::string lower_case(std::string text) {
  for (char& ch : text) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
  return text;
}

std::string state_doc(const OptimizerState& state) {
  return state.setting.empty() ? "same type as param"
                               : "same type as param; only with `" + state.setting + "`";
}

std::vector<PortDef> inputs_of(const std::vector<OptimizerState>& states,
                               const std::vector<OptimizerScalar>& scalars) {
  std::vector<PortDef> ports = {{"param", "float tensor"},
                                {"grad", "same type as param"},
                                {"lr", "float scalar: learning rate"},
                                {"update", "i64 scalar: number of completed updates"}};
  for (const OptimizerState& s : states) {
    ports.push_back({.name = s.name, .doc = state_doc(s), .optional = !s.setting.empty()});
  }
  for (const OptimizerScalar& s : scalars) ports.push_back({s.name, "float scalar: " + s.doc});
  return ports;
}

std::vector<PortDef> outputs_of(const std::vector<OptimizerState>& states) {
  std::vector<PortDef> ports = {{"new_param", "same type as param"}};
  for (const OptimizerState& s : states) ports.push_back({"new_" + s.name, state_doc(s)});
  return ports;
}

void check_setting(const InferCtx& c, const OptimizerSetting& setting) {
  if (std::holds_alternative<bool>(setting.fallback)) return;
  if (std::isinf(setting.high)) {
    require_in_range(c, setting.name, setting.low);
  } else {
    require_in_range(c, setting.name, setting.low, setting.high);
  }
}

/// Checks the operands of an optimizer, or of an op that computes a value for its norm, which has
/// no `scalars`. Returns the number of states.
size_t check_operands(const InferCtx& c, const OptimizerDef& optimizer, size_t scalars) {
  for (const OptimizerSetting& s : optimizer.settings) check_setting(c, s);
  const size_t states = count_states(optimizer.states, c.attrs());
  c.require(c.arity() == kFirstState + states + scalars,
            "needs " + std::to_string(states) + " states with its settings, got " +
                std::to_string(c.arity() - kFirstState - scalars));
  const Type& param = c.in(0);
  c.require(is_float(param.dtype), "expects a float parameter, got " + param.str());
  const auto must_be_like_param = [&](size_t i) {
    c.require(c.in(i) == param, "operand " + std::to_string(i) +
                                    " must be of the parameter's type " + param.str() + ", got " +
                                    c.in(i).str());
  };
  const auto must_be_scalar = [&](size_t i, const std::string& what) {
    c.require(is_float(c.in(i).dtype) && c.in(i).shape.empty(),
              "the " + what + " must be a float scalar, got " + c.in(i).str());
  };
  must_be_like_param(1);
  for (size_t i = 0; i < states; ++i) must_be_like_param(kFirstState + i);
  must_be_scalar(2, "learning rate");
  c.require(c.in(3) == Type{i64, {}, {}},
            "the update counter must be an i64 scalar, got " + c.in(3).str());
  for (size_t i = 0; i < scalars; ++i) {
    must_be_scalar(kFirstState + states + i, optimizer.scalars[i].name);
  }
  return states;
}

std::vector<AttrDef> attrs_of(const std::vector<OptimizerSetting>& settings) {
  std::vector<AttrDef> attrs;
  for (const OptimizerSetting& s : settings) attrs.push_back({s.name, s.fallback, s.doc});
  return attrs;
}

}  // namespace

OptimizerSetting l2_weight_decay(double fallback) {
  return {"weight_decay", fallback, "L2 penalty: weight_decay * param is added to the gradient"};
}

OptimizerSetting decoupled_weight_decay(double fallback) {
  return {"weight_decay", fallback,
          "decoupled weight decay: lr * weight_decay * param is subtracted from the parameter"};
}

Expr OptimizerCtx::l2_grad() const {
  const double decay = number("weight_decay");
  return decay == 0 ? grad() : grad() + param() * decay;
}

Expr OptimizerCtx::decayed_param() const {
  const double decay = number("weight_decay");
  return decay == 0 ? param() : param() * (1.0 - lr() * decay);
}

Expr OptimizerCtx::state(std::string_view name) const {
  size_t operand = kFirstState;
  for (const OptimizerState& s : states_) {
    if (!has_state(s, op_.attrs())) continue;
    if (s.name == name) return op_.in(operand);
    ++operand;
  }
  throw InternalError("the optimizer has no state '" + std::string(name) + "'");
}

Expr OptimizerCtx::scalar_operand(size_t i) const {
  return scalar::cast(op_.in(kFirstState + count_states(states_, op_.attrs()) + i), dtype());
}

OpDef optimizer_def(OptimizerDef optimizer) {
  const auto def = std::make_shared<const OptimizerDef>(std::move(optimizer));
  Updates updates{{{0, 0}}};
  std::vector<InPlace> in_place = {{.out = 0, .in = 0}};
  for (int i = 0; i < static_cast<int>(def->states.size()); ++i) {
    const int operand = static_cast<int>(kFirstState) + i;
    updates.results.emplace_back(1 + i, operand);
    in_place.push_back({.out = 1 + i, .in = operand});
  }
  return OpDef{
      .name = lower_case(def->type),
      .doc = def->doc,
      .inputs = inputs_of(def->states, def->scalars),
      .attrs = attrs_of(def->settings),
      .outputs = outputs_of(def->states),
      .infer =
          [def](const InferCtx& c) {
            return std::vector<Type>(1 + check_operands(c, *def, def->scalars.size()), c.in(0));
          },
      .grad = NoGrad{},
      .effects = std::move(updates),
      .amp = {Amp::kF32},
      .cost = [flops =
                   def->flops](const CostCtx& c) { return Cost{.flops = flops * c.numel_out()}; },
      .in_place = std::move(in_place),
      .lower = Map{[def](const LowerCtx& c) { return def->update(OptimizerCtx(c, def->states)); }},
      .kernels = {},
      .version = 1,
      .internal = true,
      .optimizer = OptimizerTraits{def->type, def->lr, def->states, def->scalars},
  };
}

OpDef optimizer_value_def(const OptimizerDef& optimizer, std::string name, std::string doc,
                          std::function<Expr(const OptimizerCtx&)> value) {
  const auto def = std::make_shared<const OptimizerDef>(optimizer);
  std::vector<InPlace> in_place = {{.out = 0, .in = 0}, {.out = 0, .in = 1}};
  for (size_t i = 0; i < def->states.size(); ++i) {
    in_place.push_back({.out = 0, .in = static_cast<int>(kFirstState + i)});
  }
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = inputs_of(def->states, {}),
      .attrs = attrs_of(def->settings),
      .outputs = {{"value", "same type as param"}},
      .infer =
          [def](const InferCtx& c) {
            check_operands(c, *def, 0);
            return std::vector{c.in(0)};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [flops =
                   def->flops](const CostCtx& c) { return Cost{.flops = flops * c.numel_out()}; },
      .in_place = std::move(in_place),
      .lower = Map{[def, value = std::move(value)](const LowerCtx& c) {
        return std::vector{value(OptimizerCtx(c, def->states))};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

bool is_optimizer(const OpDef& def) { return def.optimizer.has_value(); }

const OpDef* find_optimizer(std::string_view name) {
  const OpDef* def = find_op(name);
  return def != nullptr && is_optimizer(*def) ? def : nullptr;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OpDef& def : op_table()) {
    if (is_optimizer(def)) names.push_back(*def.name);
  }
  return names;
}

std::vector<std::string> optimizer_states(const OpDef& optimizer, const Attrs& settings) {
  std::vector<std::string> names;
  for (const OptimizerState& s : optimizer.optimizer->states) {
    if (has_state(s, settings)) names.push_back(s.name);
  }
  return names;
}

bool reads_norms(const OpDef& optimizer) {
  return std::ranges::any_of(optimizer.optimizer->scalars,
                             [](const auto& s) { return !s.norm_of.empty(); });
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

Expr moving_average(const Expr& average, const Expr& x, double decay) {
  return average + (x - average) * (1 - decay);
}

Expr moving_average_of_squares(const Expr& average, const Expr& x, double decay) {
  return average * decay + x * x * (1 - decay);
}

// Computed by expm1: in the first steps decay^t is close to 1, so the f32 subtraction would lose
// precision by cancellation.
Expr bias_correction(double decay, const Expr& t) {
  if (decay == 0) return Expr::constant(t.dtype(), 1);
  return -scalar::unary(ScalarOp::expm1, t * std::log(decay));
}

Expr square_root(const Expr& x) { return scalar::unary(ScalarOp::sqrt, x); }

Expr ratio_or_1(const Expr& a, const Expr& b, const Expr& ratio) {
  const Expr zero = Expr::constant(a.dtype(), 0);
  const Expr positive = scalar::logical_and(scalar::compare(ScalarOp::gt, a, zero),
                                            scalar::compare(ScalarOp::gt, b, zero));
  return scalar::select(positive, ratio, Expr::constant(a.dtype(), 1));
}

}  // namespace fluid
