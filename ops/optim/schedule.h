#pragma once

// A learning rate schedule is an op (update) -> learning rate in f64. `update` is an i64 scalar,
// the number of previous updates. The op is named "<schedule>_schedule"; its attribute `lr` is the
// initial learning rate. Schedules "plateau" and "manual", which the host adjusts between steps,
// have a second operand: element kFactor of the state variable kPlateau.

#include "ops/op_def.h"

namespace fluid {

/// Prefix of the attributes of a `train` op that are settings of the schedule.
inline constexpr std::string_view kSchedulePrefix = "schedule_";

/// Definition of a learning rate schedule. `check` validates the settings other than `lr`. `rate`
/// returns the f64 learning rate after `update` updates.
struct ScheduleDef {
  std::string name;
  std::string doc;
  std::vector<AttrDef> settings;
  std::vector<PortDef> operands = {};  ///< float scalars that follow operand `update`
  std::function<void(const InferCtx&)> check;
  std::function<Expr(const LowerCtx&, const Expr& update)> rate;
};
OpDef schedule_def(ScheduleDef schedule);

/// Returns the op of schedule `name`, or null for an unknown name.
const OpDef* find_schedule(const std::string& name);
/// Returns the names of all schedules, without the suffix "_schedule".
std::vector<std::string> schedule_names();

/// Returns `lr` and the schedule settings among the attributes of a `train` op. Removes
/// kSchedulePrefix from the names of the settings.
Attrs schedule_settings(const Attrs& train_attrs);

}  // namespace fluid
