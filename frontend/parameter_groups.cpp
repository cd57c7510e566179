#include "frontend/parameter_groups.h"

#include <cmath>

#include "frontend/lora.h"
#include "frontend/name_pattern.h"
#include "frontend/penalties.h"
#include "ir/error.h"
#include "ir/text.h"
#include "ops/optim/recipes.h"
#include "ops/random/initializer.h"
#include "ops/source/training_settings.h"
#include "ops/source_kind.h"
#include "ops/table.h"

namespace fluid {
namespace {

/// Applies `set` to each op of `ops` that `pattern` selects. Throws UserError if it selects none;
/// `what` names the ops in the message.
template <class F>
void for_each_selected(const std::vector<ir::Op*>& ops, const NamePattern& pattern,
                       const std::string& what, const Loc& loc, F set) {
  std::vector<std::string> names;
  bool found = false;
  for (ir::Op* op : ops) {
    names.push_back(op->symbol);
    if (!selects_parameter(pattern, *op)) continue;
    found = true;
    set(*op);
  }
  if (!found) {
    throw UserError(loc, "pattern '" + pattern.text() + "' matches no " + what +
                             pattern_suggestion(pattern.text(), names));
  }
}

/// Sets attribute `name` of `op`. Erases an attribute that has its default value, so that programs
/// with equal settings have equal text.
template <class T>
void set_or_erase(ir::Op& op, std::string_view name, const T& value, const T& fallback) {
  if (value == fallback) {
    op.attrs.erase(name);
  } else {
    op.attrs.set(name, value);
  }
}

/// A numeric setting, and its default value.
struct NumberSetting {
  const char* name;
  std::optional<double> value;
  double fallback;
};

std::vector<NumberSetting> number_settings(const ParameterGroup& group) {
  return {{"lr_scale", group.lr_scale, 1},
          {"decay_scale", group.decay_scale, 1},
          {"l1", group.l1, 0},
          {"l2", group.l2, 0},
          {"max_norm", group.max_norm, 0}};
}

/// Returns whether any numeric setting of the group is set. Throws UserError if a setting is
/// negative or not finite.
bool has_numbers(const ParameterGroup& group, const Loc& loc) {
  bool has_one = false;
  for (const auto& [name, value, fallback] : number_settings(group)) {
    has_one |= value.has_value();
    if (!value || (std::isfinite(*value) && *value >= 0)) continue;
    throw UserError(loc, "group '" + group.pattern + "': " + name +
                             " must be a number of 0 or more, not " + ir::float_text(*value));
  }
  return has_one;
}

/// Returns the running statistics: the states that ops such as batch_norm read in inference.
std::vector<ir::Op*> running_statistics(const ir::Graph& graph) {
  std::vector<ir::Op*> states;
  for (const auto& op : graph.ops) {
    if (def_of(*op).inference == nullptr) continue;
    for (const Value& v : op->operands) {
      const bool is_state = source_kind(*v.op()) == SourceKind::state;
      if (is_state && v.op()->symbol != kRandomState) states.push_back(v.op());
    }
  }
  return states;
}

void apply_group(ir::Graph& graph, const ParameterGroup& group, const Loc& loc) {
  const bool sets_numbers = has_numbers(group, loc);
  const NamePattern pattern(group.pattern);
  std::vector<ir::Op*> parameters, statistics;
  for (const auto& op : graph.ops) {
    if (source_kind(*op) == SourceKind::parameter) parameters.push_back(op.get());
  }
  if (group.trainable || group.init || sets_numbers || !group.freeze_statistics) {
    for_each_selected(parameters, pattern, "parameter", loc, [&](ir::Op& op) {
      if (group.trainable) set_or_erase(op, "trainable", *group.trainable, true);
      if (group.init) {
        group.init->check_shape(op.symbol, op.result().type(), loc);
        set_initializer(op, group.init->attrs(), loc);
      }
      if (group.decay_scale) op.attrs.erase("weight_decay");
      for (const auto& [name, value, fallback] : number_settings(group)) {
        if (value) set_or_erase(op, name, *value, fallback);
      }
    });
  }
  if (group.l1 || group.l2 || group.trainable) {
    for (ir::Op* train : recipes_of(graph)) set_penalties(*train);
  }
  if (!group.freeze_statistics) return;
  for_each_selected(running_statistics(graph), pattern, "running statistics", loc, [&](ir::Op& op) {
    set_or_erase(op, kFrozenAttribute, *group.freeze_statistics, false);
  });
}

}  // namespace

void set_parameter_groups(ir::Graph& graph, const std::vector<ParameterGroup>& groups,
                          const Loc& loc) {
  for (const ParameterGroup& group : groups) apply_group(graph, group, loc);
}

bool selects_parameter(const NamePattern& pattern, const ir::Op& param) {
  if (is_lora_adapter(param) && pattern.text().find("lora_") == std::string::npos) return false;
  return pattern.selects(param.symbol);
}

bool is_frozen_variable(const ir::Op& variable) {
  return !variable.attrs.get_or("trainable", true) ||
         variable.attrs.get_or(kFrozenAttribute, false);
}

void freeze_running_statistics(ir::Graph& graph) {
  for (ir::Op* state : running_statistics(graph)) state->attrs.set(kFrozenAttribute, true);
}

void set_parameter_groups(Program& program, const std::vector<ParameterGroup>& groups,
                          const Loc& loc) {
  set_parameter_groups(program.ir().main(), groups, loc);
}

}  // namespace fluid
