#include "ops/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "ir/text.h"
#include "ops/optim/optimizer.h"
#include "ops/table.h"

namespace fluid {
namespace {

constexpr std::string_view kSuffix = "_schedule";
constexpr const char* kWarmup = "warmup";
constexpr const char* kWarmupStart = "warmup_start";
constexpr const char* kConstantWarmup = "constant_warmup";

const std::vector<ScheduleSetting>& warmup_settings() {
  static const std::vector<ScheduleSetting> settings = {
      {kWarmup, int64_t{0}, "number of warm-up updates"},
      {kWarmupStart, 0.0, "factor of the learning rate from which the warm-up rises to 1"},
      {kConstantWarmup, false, "keeps the factor at `warmup_start` during the warm-up"}};
  return settings;
}

std::string range_text(const ScheduleSetting& s) {
  const bool integers = std::holds_alternative<int64_t>(s.fallback) ||
                        std::holds_alternative<std::vector<int64_t>>(s.fallback);
  const auto text = [&](double limit) {
    return integers ? std::to_string(static_cast<int64_t>(limit)) : ir::float_text(limit);
  };
  if (std::isinf(s.high)) return "be " + text(s.low) + " or more";
  return "lie in [" + text(s.low) + ", " + text(s.high) + ")";
}

void check_number(const InferCtx& c, const ScheduleSetting& s, double value) {
  c.require(std::isfinite(value) && value >= s.low && value < s.high,
            "attribute '" + s.name + "' must " + range_text(s) + ", not " + ir::float_text(value));
}

void check_schedule_setting(const InferCtx& c, const ScheduleSetting& s) {
  const Attr& value = *c.attrs().find(s.name);
  if (const auto* number = std::get_if<double>(&value)) {
    check_number(c, s, *number);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    c.require(
        *integer >= static_cast<int64_t>(s.low),
        "attribute '" + s.name + "' must " + range_text(s) + ", not " + std::to_string(*integer));
  } else if (const auto* list = std::get_if<std::vector<double>>(&value)) {
    for (const double element : *list) check_number(c, s, element);
  } else if (const auto* text = std::get_if<std::string>(&value); text && !s.choices.empty()) {
    std::string choices;
    for (const std::string& choice : s.choices) choices += (choices.empty() ? "" : " or ") + choice;
    c.require(std::ranges::find(s.choices, *text) != s.choices.end(),
              "attribute '" + s.name + "' must be " + choices + ", not '" + *text + "'");
  }
}

/// Checks setting `name`: its update numbers must increase and exceed `warmup`.
void check_updates(const InferCtx& c, const std::string& name, int64_t warmup) {
  const Attr& value = *c.attrs().find(name);
  if (const auto* update = std::get_if<int64_t>(&value)) {
    c.require(*update > warmup, "attribute '" + name + "' must be above 'warmup', " +
                                    std::to_string(warmup) + ", not " + std::to_string(*update));
    return;
  }
  int64_t before = warmup;
  for (const int64_t update : std::get<std::vector<int64_t>>(value)) {
    c.require(update > before, "attribute '" + name + "' must rise from above 'warmup', " +
                                   std::to_string(warmup) + ", but " + std::to_string(update) +
                                   " follows " + std::to_string(before));
    before = update;
  }
}

void check_settings(const InferCtx& c, const ScheduleDef& schedule) {
  require_in_range(c, "lr", 0);
  for (const ScheduleSetting& s : schedule.settings) check_schedule_setting(c, s);
  int64_t warmup = 0;
  if (!schedule.warms_up) {
    for (const ScheduleSetting& s : warmup_settings()) check_schedule_setting(c, s);
    warmup = c.attr<int64_t>(kWarmup);
    c.require(!c.attr<bool>(kConstantWarmup) || c.attr<double>(kWarmupStart) > 0,
              "attribute 'constant_warmup' needs a 'warmup_start' above 0");
  }
  for (const std::string& name : schedule.update_settings) check_updates(c, name, warmup);
  if (schedule.check) schedule.check(c);
}

std::vector<AttrDef> attrs_of(const ScheduleDef& schedule) {
  std::vector<AttrDef> attrs = {{"lr", 0.001, "learning rate of the optimizer", true}};
  for (const ScheduleSetting& s : schedule.settings) {
    attrs.push_back({s.name, s.fallback, s.doc, s.required});
  }
  if (schedule.warms_up) return attrs;
  for (const ScheduleSetting& s : warmup_settings()) attrs.push_back({s.name, s.fallback, s.doc});
  return attrs;
}

Expr rate_of(const ScheduleDef& schedule, const LowerCtx& c) {
  const Expr update = scalar::cast(c.in(0), f64);
  const double warmup = schedule.warms_up ? 0 : static_cast<double>(c.attr<int64_t>(kWarmup));
  if (warmup == 0) return schedule.rate(ScheduleCtx(c, update, 0));
  const Expr since = scalar::max(update - warmup, Expr::constant(f64, 0));
  const Expr rate = schedule.rate(ScheduleCtx(c, since, warmup));
  const double start = c.attr<double>(kWarmupStart);
  const Expr factor = c.attr<bool>(kConstantWarmup)
                          ? Expr::constant(f64, start)
                          : (update + 1.0) * ((1 - start) / warmup) + start;
  const Expr warms = scalar::compare(ScalarOp::lt, update, Expr::constant(f64, warmup));
  return scalar::select(warms, rate * factor, rate);
}

}  // namespace

double ScheduleCtx::number(std::string_view name) const {
  const Attr& value = *op_.attrs().find(name);
  const auto* integer = std::get_if<int64_t>(&value);
  return integer != nullptr ? static_cast<double>(*integer) : std::get<double>(value);
}

std::vector<double> ScheduleCtx::list_of_updates(std::string_view name) const {
  std::vector<double> updates;
  for (const int64_t u : op_.attr<std::vector<int64_t>>(name)) {
    updates.push_back(static_cast<double>(u) - warmup_);
  }
  return updates;
}

OpDef schedule_def(ScheduleDef definition) {
  const auto schedule = std::make_shared<const ScheduleDef>(std::move(definition));
  std::vector<PortDef> inputs = {{"update", "i64 scalar: number of completed updates"}};
  inputs.insert(inputs.end(), schedule->operands.begin(), schedule->operands.end());
  std::vector<InPlace> in_place;
  if (!schedule->operands.empty()) in_place.push_back({.out = 0, .in = 1});
  return OpDef{
      .name = schedule->name + std::string(kSuffix),
      .doc = schedule->doc,
      .inputs = std::move(inputs),
      .attrs = attrs_of(*schedule),
      .outputs = {{"rate", "f64 scalar: learning rate of this update"}},
      .infer =
          [schedule](const InferCtx& c) {
            c.require(c.in(0) == Type{i64, {}, {}},
                      "the update counter must be an i64 scalar, got " + c.in(0).str());
            for (size_t i = 1; i < c.arity(); ++i) {
              c.require(is_float(c.in(i).dtype) && c.in(i).shape.empty(),
                        "the factor must be a float scalar, got " + c.in(i).str());
            }
            check_settings(c, *schedule);
            return std::vector{Type{f64, {}, {}}};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{.flops = 8}; },
      .in_place = in_place,
      .lower = Map{[schedule](const LowerCtx& c) { return std::vector{rate_of(*schedule, c)}; }},
      .kernels = {},
      .version = 1,
      .internal = true,
      .schedule = ScheduleTraits{schedule->type},
  };
}

bool is_schedule(const OpDef& def) { return def.schedule.has_value(); }

std::string schedule_name(const OpDef& def) {
  return def.name->substr(0, def.name->size() - kSuffix.size());
}

const OpDef* find_schedule(const std::string& name) { return find_op(name + std::string(kSuffix)); }

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const OpDef& def : op_table()) {
    if (is_schedule(def)) names.push_back(schedule_name(def));
  }
  return names;
}

Attrs schedule_settings(const Attrs& train_attrs) {
  Attrs settings = {{"lr", train_attrs.get<double>("lr")}};
  for (const auto& [name, value] : train_attrs) {
    if (name.starts_with(kSchedulePrefix)) settings.set(name.substr(kSchedulePrefix.size()), value);
  }
  return settings;
}

Expr progress(const Expr& update, double updates) {
  return scalar::min(update / updates, Expr::constant(f64, 1));
}

Expr cosine_between(double from, double to, const Expr& x) {
  return (scalar::unary(ScalarOp::cos, x * std::numbers::pi) + 1.0) * (0.5 * (from - to)) + to;
}

ScheduleSetting final_rate() { return {"end", 0.0, "final learning rate"}; }

ScheduleSetting decay_factor(double fallback) {
  return {"factor", fallback, "factor of the learning rate at each decay"};
}

}  // namespace fluid
