#include "executor/checkpoint/snapshot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <span>
#include <utility>

#include "executor/session/session.h"
#include "frontend/init.h"
#include "frontend/lora.h"
#include "frontend/penalties.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/print.h"
#include "ops/lora_attributes.h"
#include "ops/optim/recipes.h"
#include "ops/random/initializer.h"
#include "ops/source/kept_gradient.h"
#include "ops/source/training_settings.h"
#include "ops/source_kind.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr size_t kMaxListedAdapters = 8;  ///< maximum number of adapters in an error message

/// Index of the run counter in the random state tensor.
constexpr size_t kRunCounter = 1;

/// Throws UserError if another optimizer wrote the snapshot, because states of different optimizers
/// are incompatible even if their names are equal.
void check_optimizer(const Snapshot& from, const ir::Program& recorded, const std::string& where) {
  for (const ir::Op* train : recipes_of(recorded.main())) {
    const std::string recipe = recipe_name(*train);
    const auto theirs = from.options.find(recipe_state(recipe, "optimizer"));
    if (theirs == from.options.end()) continue;
    const std::string ours = ir::print(*train->attrs.find("optimizer"));
    if (theirs->second == ours) continue;
    throw UserError(fmt::format(
        "{}: its optimizer{} is {}, the program's is {}: resume with the same optimizer, or start "
        "a new run from saved parameters",
        where, recipe.empty() ? "" : " of recipe '" + recipe + "'", theirs->second, ours));
  }
}

/// Whether attribute `name` of recipe `train` was a number above 0 when the snapshot was taken.
bool was_set(const Snapshot& from, const ir::Op& train, const std::string& name) {
  const auto found = from.options.find(recipe_state(recipe_name(train), name));
  return found != from.options.end() && parse_number<double>(found->second).value_or(0) > 0;
}

bool is_set(const ir::Op& train, const std::string& name) {
  const Attr* value = train.attrs.find(name);
  return value != nullptr && parse_number<double>(ir::print(*value)).value_or(0) > 0;
}

/// Returns a note for the error about a missing or unexpected optimizer state: the recipes keep
/// other averages or have other lookahead than those of the snapshot. Returns "" if neither is the
/// reason. `state`: name of the optimizer state.
std::string averages_note(const Snapshot& from, const ir::Program& recorded,
                          std::string_view state) {
  struct Kind {
    std::string_view suffix;
    const char* attribute;
    const char* text;
  };
  constexpr Kind kKinds[] = {{".ema", "ema_decay", "averaging by ema"},
                             {".swa", "swa_start", "averaging by swa"},
                             {".slow", "lookahead_every", "lookahead"}};
  for (const ir::Op* train : recipes_of(recorded.main())) {
    if (!state.starts_with(recipe_state(recipe_name(*train), ""))) continue;
    for (const auto& [suffix, attribute, text] : kKinds) {
      const bool before = was_set(from, *train, attribute), now = is_set(*train, attribute);
      if (!state.ends_with(suffix) || before == now) continue;
      return fmt::format(
          ": {} is {} in the checkpoint and {} now; resume with the same averages and lookahead, "
          "or start a new run from saved parameters",
          text, before ? "on" : "off", now ? "on" : "off");
    }
  }
  return "";
}

/// Returns a note for the error about a missing or unexpected optimizer state: its parameter is
/// frozen in the checkpoint or in the program. Returns "" if it is frozen in neither. `state`: name
/// of the optimizer state. `trains_now`: whether the program has the state.
std::string frozen_note(const Snapshot& from, const ir::Program& recorded, std::string_view state,
                        bool trains_now) {
  for (const ir::Op* train : recipes_of(recorded.main())) {
    for (const auto& op : recorded.main().ops) {
      const std::string prefix = recipe_state(recipe_name(*train), op->symbol + ".");
      // No state of the parameter's LoRA adapters, such as "fc0.w.lora_a.m".
      const auto is_of_parameter = [&](std::string_view name) {
        return name.starts_with(prefix) && name.find('.', prefix.size()) == std::string_view::npos;
      };
      if (source_kind(*op) != SourceKind::parameter || !is_of_parameter(state)) continue;
      if (op->attrs.get_or("trainable", true) != trains_now) continue;
      const bool trained = std::ranges::any_of(from.variables, [&](const SnapshotVariable& v) {
        return v.kind == VariableKind::optimizer && is_of_parameter(v.name);
      });
      if (trained == trains_now) continue;
      return fmt::format(
          ": parameter '{}' {} in the checkpoint and {} now; resume with the same groups, or start "
          "a new run from saved parameters",
          op->symbol, trained ? "trains" : "is frozen", trains_now ? "trains" : "is frozen");
    }
  }
  return "";
}

/// Returns averages_note(), or frozen_note() if it is empty.
std::string reason_of_difference(const Snapshot& from, const ir::Program& recorded,
                                 std::string_view state, bool trains_now) {
  const std::string note = averages_note(from, recorded, state);
  return note.empty() ? frozen_note(from, recorded, state, trains_now) : note;
}

/// Lists at most kMaxListedAdapters of the adapters in `ours` that are not in `others`; "" if there
/// are none.
std::string adapters_text(const std::vector<std::string>& ours,
                          const std::vector<std::string>& others) {
  std::vector<std::string> differing;
  for (const std::string& adapter : ours) {
    if (std::ranges::find(others, adapter) == others.end()) {
      differing.push_back("'" + adapter + "'");
    }
  }
  const size_t listed = std::min(differing.size(), kMaxListedAdapters);
  return fmt::format(
      "{}{}", fmt::join(std::span(differing).first(listed), ", "),
      differing.size() > listed ? fmt::format(" and {} more", differing.size() - listed) : "");
}

/// Throws UserError if the LoRA adapters of the snapshot differ from those of the program.
void check_adapters(const Snapshot& from, const ir::Program& recorded, const std::string& where) {
  const std::vector<std::string> theirs = adapters_in_lora_metadata(from.metadata.lora);
  const std::vector<std::string> ours =
      adapters_in_lora_metadata(lora_metadata(recorded, [](const ir::Op&) { return false; }));
  if (theirs == ours) return;
  const char* remedy = theirs.empty() ? "without adapters"
                                      : "with the same --lora options, or with --adapters and the "
                                        "parameters.safetensors of the checkpoint";
  const std::string in_checkpoint = adapters_text(theirs, ours);
  const std::string in_program = adapters_text(ours, theirs);
  throw UserError(fmt::format("{}: its adapters differ: {}; resume {}", where,
                              in_program.empty()      ? "only the checkpoint has " + in_checkpoint
                              : in_checkpoint.empty() ? "only the program has " + in_program
                                                      : "the checkpoint has " + in_checkpoint +
                                                            ", the program " + in_program,
                              remedy));
}

/// Throws UserError if only weight penalties or initialisers differ.
void check_parameter_options(const Snapshot& from, const ir::Program& recorded,
                             const std::string& where) {
  if (from.program != recorded.name || from.model_hash != model_hash(recorded)) return;
  throw UserError(fmt::format(
      "{}: the weight penalties (l1, l2) or the initialisers of its parameters differ: resume with "
      "the same l1, l2 and init of each parameter, or start a new run from saved parameters",
      where));
}

void check_program(const Session& session, const Snapshot& from, const std::string& where) {
  if (from.program_hash == program_hash(session.recorded_program())) return;
  check_parameter_options(from, session.recorded_program(), where);
  const std::string& ours = session.recorded_program().name;
  std::string how = from.program == ours ? fmt::format("'{}' has changed since", ours)
                                         : fmt::format("'{}', not '{}'", from.program, ours);
  bool lacks_parameter = false;
  for (const SnapshotVariable& saved : from.variables) {
    if (saved.kind != VariableKind::recorded || session.variables().find(saved.name)) continue;
    if (has_lora_suffix(saved.name)) continue;
    how = fmt::format("its parameter '{}' is not in '{}'", saved.name, ours);
    lacks_parameter = true;
  }
  if (from.program == ours && !lacks_parameter) {
    check_adapters(from, session.recorded_program(), where);
  }
  throw UserError(fmt::format("{}: belongs to another program: {}", where, how));
}

void check_variables(Session& session, const Snapshot& from, const std::string& where) {
  const ir::Program& recorded = session.recorded_program();
  std::map<std::string_view, const SnapshotVariable*> all;
  for (const SnapshotVariable& saved : from.variables) all[saved.name] = &saved;
  for (const Variable& v : session.variables().all()) {
    const auto found = all.find(v.name);
    const SnapshotVariable* saved = found == all.end() ? nullptr : found->second;
    const bool needed = v.kind == VariableKind::recorded || v.kind == VariableKind::optimizer;
    if (saved == nullptr && needed) {
      throw UserError(fmt::format("{}: lacks '{}', which resuming training needs{}", where, v.name,
                                  reason_of_difference(from, recorded, v.name, true)));
    }
    if (saved == nullptr) continue;
    const Tensor ours = session.values().value(v);
    const bool fits = ours.dtype() == saved->value.dtype() ||
                      (is_float(ours.dtype()) && is_float(saved->value.dtype()));
    if (!fits || (v.shard ? v.shard->full_shape : ours.shape()) != saved->value.shape()) {
      throw UserError(fmt::format("{}: '{}' is {}, but the program's is {}", where, v.name,
                                  saved->value.str(), ours.str()));
    }
  }
  for (const SnapshotVariable& saved : from.variables) {
    if (saved.kind == VariableKind::optimizer && session.variables().find(saved.name) == nullptr) {
      throw UserError(fmt::format("{}: holds '{}', which this training does not use{}", where,
                                  saved.name,
                                  reason_of_difference(from, recorded, saved.name, false)));
    }
  }
}

}  // namespace

const SnapshotVariable* Snapshot::find(std::string_view name) const {
  const auto saved = std::ranges::find(variables, name, &SnapshotVariable::name);
  return saved == variables.end() ? nullptr : &*saved;
}

std::unique_ptr<ir::Program> strip_locations(const ir::Program& recorded) {
  std::unique_ptr<ir::Program> copy = recorded.clone();
  for (const auto& graph : copy->graphs) {
    for (const auto& op : graph->ops) op->loc = {};
  }
  return copy;
}

uint64_t program_hash(const ir::Program& recorded) {
  const std::unique_ptr<ir::Program> copy = strip_locations(recorded);
  const std::vector<ir::Op*> recipes = recipes_of(copy->main());
  copy->main().erase_if(
      [&](const ir::Op& op) { return std::ranges::find(recipes, &op) != recipes.end(); });
  for (const auto& op : copy->main().ops) {
    if (!is_variable(*op)) continue;
    for (const char* setting : kTrainingSettings) op->attrs.erase(setting);
    op->attrs.erase(kKeepGradient);
  }
  std::erase_if(copy->main().outputs,
                [](const ir::Output& o) { return o.name.starts_with(kDumpPrefix); });
  for (const auto& graph : copy->graphs) {
    for (size_t i = 0; i < graph->ops.size(); ++i) graph->ops[i]->id = static_cast<int64_t>(i);
  }
  const std::string text = ir::print(*copy);
  return XXH3_64bits(text.data(), text.size());
}

uint64_t model_hash(const ir::Program& recorded) {
  const std::unique_ptr<ir::Program> copy = recorded.clone();
  for (const auto& op : copy->main().ops) {
    if (source_kind(*op) != SourceKind::parameter) continue;
    for (const char* penalty : {"l1", "l2"}) op->attrs.erase(penalty);
    set_initializer(*op, Init::zeros().attrs(), op->loc);
  }
  for (ir::Op* train : recipes_of(copy->main())) set_penalties(*train);
  return program_hash(*copy);
}

Snapshot take_snapshot(Session& session, std::map<std::string, std::string> options,
                       const std::function<std::optional<Tensor>(const Variable&)>& value,
                       const std::vector<SnapshotVariable>& unused) {
  Snapshot snapshot;
  snapshot.program = session.recorded_program().name;
  snapshot.program_hash = program_hash(session.recorded_program());
  snapshot.model_hash = model_hash(session.recorded_program());
  snapshot.options = std::move(options);
  snapshot.tuning_record = session.device().tuning_record();
  for (const Variable& v : session.variables().all()) {
    if (!v.is_in_checkpoints()) continue;
    if (auto known = value(v)) snapshot.variables.push_back({v.name, v.kind, std::move(*known)});
  }
  for (const SnapshotVariable& v : unused) {
    if (session.variables().find(v.name) == nullptr) snapshot.variables.push_back(v);
  }
  std::ranges::sort(snapshot.variables, {}, &SnapshotVariable::name);
  return snapshot;
}

std::vector<SnapshotVariable> restore_snapshot(Session& session, Snapshot& from,
                                               const std::string& where) {
  check_program(session, from, where);
  check_optimizer(from, session.recorded_program(), where);
  check_variables(session, from, where);
  std::vector<SnapshotVariable> unused;
  for (SnapshotVariable& saved : from.variables) {
    const Tensor value = std::exchange(saved.value, Tensor());
    const Variable* v = session.variables().find(saved.name);
    if (v == nullptr && saved.kind == VariableKind::control) {
      unused.push_back({saved.name, saved.kind, value});
    }
    if (v == nullptr || !v->is_in_checkpoints()) continue;
    if (v->name == kRandomState) {
      Tensor ours = session.values().value(*v).copy();
      ours.as<int64_t>()[kRunCounter] = value.as<int64_t>()[kRunCounter];
      session.values().assign(*v, ours);
    } else {
      session.values().assign(*v, v->shard ? v->shard->local_shard(value) : value);
    }
  }
  return unused;
}

}  // namespace fluid
