#pragma once

// A learning rate schedule is an op (update) -> learning rate in f64. `update` is an i64 scalar,
// the number of previous updates. The op is named "<schedule>_schedule"; its attribute `lr` is the
// learning rate of the optimizer. Schedules "plateau" and "manual", which the host adjusts between
// steps, have a second operand: element kFactor of the state variable kPlateau.
//
// Warm-up precedes a schedule unless ScheduleDef::warms_up is set. During the first `warmup`
// updates, the learning rate is the first rate of the schedule times a factor. The factor rises
// from `warmup_start` to 1, or stays at `warmup_start` with `constant_warmup`. The schedule then
// starts, as in PyTorch's SequentialLR.
//
// To add a schedule, write one file that returns schedule_def(...). The C++ struct for minimize()
// and the options of `fluidrun train` follow from the definition.

#include <limits>

#include "ops/op_def.h"

namespace fluid {

/// Prefix of the attributes of a `train` op that are settings of the schedule.
inline constexpr std::string_view kSchedulePrefix = "schedule_";

/// Name of the schedule whose values replace the learning rate of the optimizer.
inline constexpr std::string_view kPiecewiseSchedule = "piecewise";

/// A setting of a schedule, which is an attribute of its op: a bool, an int, a double, a list or a
/// string. A number, or each element of a list, must lie in [low, high).
struct ScheduleSetting {
  std::string name;
  Attr fallback;
  std::string doc;
  bool required = false;
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  ///< valid values of a string; empty: any
};

/// Argument of ScheduleDef::rate. Expressions are in f64.
class ScheduleCtx {
 public:
  ScheduleCtx(const LowerCtx& op, Expr update, double warmup)
      : op_(op), update_(std::move(update)), warmup_(warmup) {}
  double lr() const { return op_.attr<double>("lr"); }
  /// Number of completed updates since the warm-up ended; 0 during the warm-up.
  const Expr& update() const { return update_; }
  /// Setting `name`, an int or a double.
  double number(std::string_view name) const;
  bool flag(std::string_view name) const { return op_.attr<bool>(name); }
  const std::vector<double>& numbers(std::string_view name) const {
    return op_.attr<std::vector<double>>(name);
  }
  /// Converts setting `name` from updates since the start of training to updates since the warm-up
  /// ended.
  double updates(std::string_view name) const { return number(name) - warmup_; }
  std::vector<double> list_of_updates(std::string_view name) const;
  /// Operand 1 of schedules "plateau" and "manual": current learning rate / initial learning rate.
  Expr factor() const { return scalar::cast(op_.in(1), f64); }

 private:
  const LowerCtx& op_;
  Expr update_;
  double warmup_;
};

/// Definition of a learning rate schedule.
struct ScheduleDef {
  std::string type;  ///< name of the C++ struct
  std::string name;
  std::string doc;
  std::vector<ScheduleSetting> settings = {};
  std::vector<PortDef> operands = {};  ///< float scalars that follow operand `update`
  /// Names of the settings that are update numbers, counted from the start of training: ints or
  /// lists of ints. Values must be above `warmup`; values in a list must increase.
  std::vector<std::string> update_settings = {};
  /// Whether `rate` includes the warm-up, so that the schedule has no `warmup` settings.
  bool warms_up = false;
  /// Additional checks of the settings, besides their ranges; may be null.
  std::function<void(const InferCtx&)> check = nullptr;
  std::function<Expr(const ScheduleCtx&)> rate;
};
OpDef schedule_def(ScheduleDef schedule);

/// Whether `def` defines a schedule.
bool is_schedule(const OpDef& def);
/// Name of a schedule: the name of its op without the suffix "_schedule".
std::string schedule_name(const OpDef& def);
/// Returns the op of schedule `name`, or null for an unknown name.
const OpDef* find_schedule(const std::string& name);
/// Returns the names of all schedules.
std::vector<std::string> schedule_names();

/// Returns `lr` and the schedule settings among the attributes of a `train` op. Removes
/// kSchedulePrefix from the names of the settings.
Attrs schedule_settings(const Attrs& train_attrs);

// Expressions that several schedules share.

/// Returns min(update / updates, 1), the completed fraction of a phase of `updates` updates.
Expr progress(const Expr& update, double updates);
/// Cosine interpolation from `from` at x = 0 to `to` at x = 1.
Expr cosine_between(double from, double to, const Expr& x);
/// Definition of setting `end`, the final learning rate.
ScheduleSetting final_rate();
/// Definition of setting `factor` of a decay.
ScheduleSetting decay_factor(double fallback);

}  // namespace fluid
