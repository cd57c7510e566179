#include "ops/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ir/text.h"
#include "ops/arguments.h"
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

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string lower_case(std::string text) {
  for (char& ch : text) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
  return text;
}

std::string state_doc(const OptimizerState& state) {
  return state.setting.empty() ? "same type as param"
                               : "same type as param; only with `" + state.setting + "`";
}

std::vector<PortDef> inputs_of(const OptimizerDef& optimizer, bool with_scalars) {
  std::vector<PortDef> ports = {{"param", "float tensor"},
                                {"grad", "same type as param"},
                                {"lr", "float scalar: learning rate"},
                                {"update", "i64 scalar: number of completed updates"}};
  for (const OptimizerState& s : optimizer.states) {
    ports.push_back({.name = s.name, .doc = state_doc(s), .optional = !s.setting.empty()});
  }
  for (const OptimizerTensor& t : optimizer.tensors) {
    ports.push_back({t.name, "same shape as param: " + t.doc});
  }
  if (!with_scalars) return ports;
  for (const OptimizerScalar& s : optimizer.scalars) {
    ports.push_back({s.name, "float scalar: " + s.doc});
  }
  return ports;
}

std::vector<PortDef> outputs_of(const std::vector<OptimizerState>& states) {
  std::vector<PortDef> ports = {{"new_param", "same type as param"}};
  for (const OptimizerState& s : states) ports.push_back({"new_" + s.name, state_doc(s)});
  return ports;
}

void check_setting(const InferCtx& c, const OptimizerSetting& setting) {
  const Attr& value = *c.attrs().find(setting.name);
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    const auto low = static_cast<int64_t>(setting.low), high = static_cast<int64_t>(setting.high);
    c.require(*integer >= low && *integer < high,
              "attribute '" + setting.name + "' must lie in [" + std::to_string(low) + ", " +
                  std::to_string(high) + "), not be " + std::to_string(*integer));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    c.require(std::ranges::find(setting.choices, *text) != setting.choices.end(),
              "attribute '" + setting.name + "' must be one of " + joined(setting.choices) +
                  ", not '" + *text + "'");
  } else if (std::holds_alternative<bool>(value)) {
    return;
  } else if (std::isinf(setting.high)) {
    require_in_range(c, setting.name, setting.low);
  } else {
    require_in_range(c, setting.name, setting.low, setting.high);
  }
}

/// Checks the operands of an optimizer. `scalars`: number of scalar operands; 0 for an op of
/// optimizer_value_def(). Returns the number of states.
size_t check_operands(const InferCtx& c, const OptimizerDef& optimizer, size_t scalars) {
  for (const OptimizerSetting& s : optimizer.settings) check_setting(c, s);
  if (optimizer.check) optimizer.check(c);
  const size_t states = count_states(optimizer.states, c.attrs());
  const size_t tensors = optimizer.tensors.size();
  c.require(c.arity() == kFirstState + states + tensors + scalars,
            "needs " + std::to_string(states) + " states with its settings, got " +
                std::to_string(c.arity() - kFirstState - tensors - scalars));
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
  for (size_t i = kFirstState + states; i < kFirstState + states + tensors; ++i) {
    c.require(
        is_float(c.in(i).dtype) && c.in(i).shape == param.shape,
        "operand " + std::to_string(i) + " must have the parameter's shape, got " + c.in(i).str());
  }
  must_be_scalar(2, "learning rate");
  c.require(c.in(3) == Type{i64, {}, {}},
            "the update counter must be an i64 scalar, got " + c.in(3).str());
  for (size_t i = 0; i < scalars; ++i) {
    must_be_scalar(kFirstState + states + tensors + i, optimizer.scalars[i].name);
  }
  return states;
}

std::vector<AttrDef> attrs_of_settings(const std::vector<OptimizerSetting>& settings) {
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
  for (const OptimizerState& s : optimizer_.states) {
    if (!has_state(s, op_.attrs())) continue;
    if (s.name == name) return op_.in(operand);
    ++operand;
  }
  throw InternalError("the optimizer has no state '" + std::string(name) + "'");
}

Expr OptimizerCtx::is_first_update() const {
  return scalar::compare(ScalarOp::eq, op_.in(3), Expr::index(0));
}

Expr OptimizerCtx::tensor(size_t i) const {
  const size_t states = count_states(optimizer_.states, op_.attrs());
  return scalar::cast(op_.in(kFirstState + states + i), dtype());
}

Expr OptimizerCtx::scalar_operand(size_t i) const { return tensor(optimizer_.tensors.size() + i); }

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
      .inputs = inputs_of(*def, /*with_scalars=*/true),
      .attrs = attrs_of_settings(def->settings),
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
      .lower = Map{[def](const LowerCtx& c) { return def->update(OptimizerCtx(c, *def)); }},
      .kernels = {},
      .version = 1,
      .internal = true,
      .optimizer = OptimizerTraits{def->type, def->lr, def->states, def->scalars, def->tensors,
                                   def->non_matrix_optimizer},
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
      .inputs = inputs_of(*def, /*with_scalars=*/false),
      .attrs = attrs_of_settings(def->settings),
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
        return std::vector{value(OptimizerCtx(c, *def))};
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

bool reads_whole_parameters(const OpDef& optimizer) {
  return reads_norms(optimizer) || !optimizer.optimizer->tensors.empty();
}

Attrs non_matrix_settings(const OpDef& optimizer, const Attrs& given) {
  const Attrs settings = complete_attrs(optimizer, given, {});
  const std::string& name = optimizer.optimizer->non_matrix_optimizer;
  const OpDef& other = *find_optimizer(name);
  Attrs chosen;
  for (const AttrDef& a : *other.attrs) {
    const Attr* own = settings.find(name + "_" + a.name);
    if (own == nullptr) own = settings.find(a.name);
    if (own != nullptr) chosen.set(a.name, *own);
  }
  return complete_attrs(other, chosen, {});
}

double non_matrix_lr_scale(const OpDef& optimizer, const Attrs& settings) {
  return settings.get_or(optimizer.optimizer->non_matrix_optimizer + "_lr_scale", 1.0);
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
