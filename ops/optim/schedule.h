#pragma once

// A schedule is an op (update) -> learning rate in f64. `update` is the i64 number of previous
// updates. The op is named "<schedule>_schedule"; its attribute `lr` is the recipe's learning rate.
// A schedule that the host changes between steps also takes element kFactor of the state kPlateau.

#include "ops/op_def.h"

namespace fluid {

/// Prefix of the schedule's settings among the attributes of a `train` op.
inline constexpr std::string_view kSchedulePrefix = "schedule_";

/// Definition of a schedule. `check` checks the settings beyond `update` and `lr`. `rate` computes
/// the learning rate from the number of updates in f64.
struct ScheduleDef {
  std::string name;
  std::string doc;
  std::vector<AttrDef> settings;
  std::vector<PortDef> operands = {};  ///< after `update`, float scalars
  std::function<void(const InferCtx&)> check;
  std::function<Expr(const LowerCtx&, const Expr& update)> rate;
};
OpDef schedule_op(ScheduleDef schedule);

/// The op of schedule `name`; null for an unknown name.
const OpDef* find_schedule(const std::string& name);
/// Names of all schedules, without the suffix "_schedule".
std::vector<std::string> schedule_names();

/// The attributes of a `train` op that belong to its schedule, without kSchedulePrefix, and `lr`.
Attrs schedule_settings(const Attrs& train);

}  // namespace fluid
