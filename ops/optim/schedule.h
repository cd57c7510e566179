#pragma once

// A schedule is an op (update) -> learning rate, f64: `update` is the i64 number of updates done
// before. It is named "<schedule>_schedule", and its attribute `lr` is the recipe's. One that the
// epochs drive takes element kFactor of the state kPlateau besides.

#include "ops/op_def.h"

namespace fluid {

/// Of a schedule's settings among the attributes of a `train` op.
inline constexpr std::string_view kSchedulePrefix = "schedule_";

/// A schedule by its definition: checks beyond those of operand and `lr`, and its rate from the
/// number of updates as f64.
struct ScheduleDef {
  std::string name;
  std::string doc;
  std::vector<AttrDef> settings;
  std::vector<PortDef> operands = {};  ///< after `update`, float scalars
  std::function<void(const InferCtx&)> check;
  std::function<Expr(const LowerCtx&, const Expr& update)> rate;
};
OpDef schedule_op(ScheduleDef schedule);

/// The op of a recipe's schedule; null when there is none of that name.
const OpDef* find_schedule(const std::string& name);
/// Names of all schedules, as recipes have them.
std::vector<std::string> schedule_names();

/// The attributes of a `train` op that are its schedule's, as the schedule's op wants them.
Attrs schedule_settings(const Attrs& train);

}  // namespace fluid
